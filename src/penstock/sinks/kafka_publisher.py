"""Publishes parts of checkpoints to Kafka, each in one transaction, and once, whoever tries and however often.

The transaction that has a part's messages also has its marker: (run, sink, part) and the checkpoint, to a compacted
topic. Whoever wants to publish first makes the part's transactional id its own, so that all others who have it are
fenced; then it reads the markers, and publishes what is beyond them. If it is fenced itself, it begins anew with that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from penstock.common.kafka import QUIET, Cluster, Complaints, Settings, Topic, made
from penstock.common.storage import Storage
from penstock.errors import EngineError, InputError
from penstock.sinks import staging
from penstock.sinks.staging import Message, Staged
from penstock.sinks.waiting import Waiting

Part = int | str
Marks = dict[Part, int]
Answer = TypeVar("Answer")

WHOLE = "whole"  # the part of a single committer
ATTEMPT = "attempt"  # not a part: which attempt may publish
IDS = "penstock-"  # what transactional ids begin with
ANSWER_S = 30.0
COMMIT_S = 120.0
QUEUE_FULL_S = 0.1
HOPELESS = ("AUTHORIZATION", "_AUTHENTICATION", "MSG_SIZE_TOO_LARGE", "INVALID_CONFIG", "_INVALID_ARG")
REFUSED = ("AUTHORIZATION", "POLICY_VIOLATION", "INVALID", "UNSUPPORTED")
MARKERS = {  # settings of the topic: its past is soon gone
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}
OWN = {  # for parts; a transaction that nobody goes on with holds readers back until it times out, or is fenced
    "transaction.timeout.ms": 120_000,
    "linger.ms": 5,
    "queue.buffering.max.kbytes": 65_536,
}


_PRODUCERS = (  # settings that a consumer does not know
    *("acks", "batch", "compression", "delivery", "enable.gapless", "enable.idempotence", "linger", "message."),
    *("partitioner", "queue.buffering", "request.required", "sticky", "transaction"),
)


class Lost(Exception):  # noqa: N818 - what happened, and not yet an error
    """What was tried may have worked or not; it is safe to begin anew."""


def word_of(error: Any) -> str:
    """What Kafka says, with the name of the error: `_TRANSPORT: broker down`."""
    return f"{error.name()}: {error.str()}"


class Markers:
    """The topic that says which checkpoint of each part was published last, for all runs that publish to a topic."""

    def __init__(self, thing: str, settings: Settings, topic: str, owner: tuple[str, str]) -> None:
        self.thing = thing
        self._settings = settings
        self._owner = owner
        self.topic = topic

    def make(self) -> None:
        """Create it where it is not there."""
        kafka, admin = import_module("confluent_kafka"), import_module("confluent_kafka.admin")
        client = made(self.thing, admin.AdminClient, {**QUIET, **without_producers(self._settings)})
        new = admin.NewTopic(self.topic, num_partitions=1, replication_factor=-1, config=MARKERS)
        try:
            client.create_topics([new])[self.topic].result(ANSWER_S)
        except kafka.KafkaException as error:
            word = error.args[0].name()
            if any(one in word for one in REFUSED):
                if not self._described(
                    self._cluster()
                ).partitions:  # who may not create it is not told that it is there
                    told = "must be there, compacted, or we must be let create it"
                    raise InputError(f"{self.thing}: topic {self.topic!r} {told}; {word_of(error.args[0])}") from None
            elif word != "TOPIC_ALREADY_EXISTS":
                raise Lost(word_of(error.args[0])) from None

    def look(self) -> None:
        """See that it is there, as it may take a moment; its end may lie behind a transaction that was left open."""
        self._partitions(self._cluster())

    def _partitions(self, cluster: Cluster) -> int:
        topic = self._described(cluster)
        if not topic.partitions:
            raise Lost(f"topic {self.topic!r}: {topic.told or 'not there yet'}")
        return topic.partitions

    def _described(self, cluster: Cluster) -> Topic:
        kafka: Any = import_module("confluent_kafka")
        try:
            return cluster.described([self.topic])[self.topic]
        except kafka.KafkaException as error:
            raise Lost(word_of(error.args[0])) from None

    def _cluster(self) -> Cluster:
        return Cluster(self.thing, without_producers(self._settings))

    def message(self, part: Part, number: int) -> Message:
        """A marker, as it is published."""
        return Message("", msgspec.json.encode(number), msgspec.json.encode([*self._owner, part]))

    def read(self) -> Marks:
        """All that was committed before this call: by part, the last checkpoint; and the attempt that may publish."""
        kafka: Any = import_module("confluent_kafka")
        try:
            return self._read()
        except kafka.KafkaException as error:
            raise Lost(word_of(error.args[0])) from None

    def _read(self) -> Marks:
        kafka: Any = import_module("confluent_kafka")
        cluster = self._cluster()
        starts = {(self.topic, number): "latest" for number in range(self._partitions(cluster))}
        left = {number: end for (_, number), end in cluster.offsets(starts, committed=False).items() if end > 0}
        own = {"group.id": "penstock-markers", "enable.auto.commit": False, "isolation.level": "read_committed"}
        own |= {"enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}
        consumer = made(self.thing, kafka.Consumer, {**QUIET, **without_producers(self._settings), **own})
        try:
            consumer.list_topics(self.topic, timeout=ANSWER_S)  # else it would find the leaders a second later
            consumer.assign([kafka.TopicPartition(self.topic, number, 0) for number in left])
            return self._take(consumer, left)
        finally:
            consumer.close()

    def _take(self, consumer: Any, left: dict[int, int]) -> Marks:
        """Read until each partition's end, which may lie behind transactions that are still open."""
        kafka: Any = import_module("confluent_kafka")
        found: Marks = {}
        while left:
            record = consumer.poll(ANSWER_S)
            if record is None:
                raise Lost(f"topic {self.topic!r}: no answer within {ANSWER_S:g} s")
            if record.error() is None:
                *owner, part = msgspec.json.decode(record.key())
                if tuple(owner) == self._owner and record.value() is not None:
                    found[part] = int(msgspec.json.decode(record.value()))
            elif record.error().code() == kafka.KafkaError._PARTITION_EOF:
                if record.offset() >= left[record.partition()]:
                    del left[record.partition()]
            elif record.error().code() != kafka.KafkaError.GROUP_AUTHORIZATION_FAILED:  # we only have to name a group
                raise Lost(word_of(record.error()))
        return found


def without_producers(settings: Settings) -> dict[str, Any]:
    """The settings without those that only producers know."""
    return {name: value for name, value in settings.items() if not name.startswith(_PRODUCERS)}


class Publisher:
    """Publishes under one transactional id: that of one part, or, for all parts in one transaction, `whole`."""

    def __init__(self, markers: Markers, topic: str, settings: Settings, name: str, attempt: int) -> None:
        self._markers = markers
        self._topic = topic
        self._settings = settings
        self._name = name
        self._attempt = attempt
        self._producer: Any = None
        self._failed: Any = None  # why the first message could not be delivered
        self.done: Marks | None = None  # read since the transactional id is ours

    def publish(self, staged: Mapping[Part, Sequence[Staged]], folder: Storage, marks: Marks) -> None:
        """Publish what these files hold beyond the markers, and the new marks, in one transaction."""
        done = self._own()
        if (latest := done.get(ATTEMPT, 0)) > self._attempt:
            told = f"must be published by attempt {latest} or a later one; got {self._attempt}"
            raise EngineError(f"{self._name}: {told}")
        by_part = {part: max(done.get(part, 0), done.get(WHOLE, 0)) for part in staged}
        new = [one for part, files in staged.items() for one in files if one.checkpoint > by_part[part]]
        if not new and ATTEMPT not in marks:
            return
        self._try(lambda: self._producer.begin_transaction())
        for one in new:
            for messages in staging.read(folder, one):
                self._produce(messages)
        self._mark(marks)
        self.done = done | marks

    def _own(self) -> Marks:
        """What is published, read when nobody else can publish under our id any more."""
        if self._producer is None:
            self.fence()
        if self.done is None:
            self.done = self._markers.read()
        return self.done

    def fence(self) -> None:
        """Make the transactional id ours; what another one had begun with it is taken back."""
        kafka: Any = import_module("confluent_kafka")
        own = {"transactional.id": self._name, "error_cb": Complaints(self._name)}
        self.close()
        self._failed, self.done = None, None
        self._producer = made(self._name, kafka.Producer, {**QUIET, **OWN, **self._settings, **own})
        self._try(lambda: self._producer.init_transactions(ANSWER_S))

    def check(self) -> None:
        """See that we may have such an id at all."""
        try:
            self.fence()
        except EngineError as error:
            if "TRANSACTIONAL_ID_AUTHORIZATION" not in str(error):
                raise
            raise InputError(f"{self._markers.thing}: no right to write with transactional ids {IDS}…") from None
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the producer; what it had begun and not committed is taken back when the next one comes."""
        kafka: Any = import_module("confluent_kafka")
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(kafka.KafkaException):  # one that is fenced says so to whatever it is asked
                producer.purge()
                producer.flush(0)

    def _produce(self, messages: Sequence[Message]) -> None:
        self._try(lambda: self._send(self._topic, messages))
        if self._failed is not None:
            self._lose(self._failed)

    def _mark(self, marks: Marks) -> None:
        """Put the markers behind what was published, and commit both."""
        markers = [self._markers.message(part, number) for part, number in marks.items()]
        self._try(lambda: self._send(self._markers.topic, markers))
        self._try(lambda: self._producer.commit_transaction(COMMIT_S))

    def _send(self, topic: str, messages: Sequence[Message]) -> None:
        for message in messages:
            send(self._producer, topic, message, self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: Any, _message: object) -> None:
        self._failed = self._failed or error

    def _try(self, call: Callable[[], object]) -> None:
        kafka: Any = import_module("confluent_kafka")
        try:
            call()
        except kafka.KafkaException as error:
            self._lose(self._failed or error.args[0])

    def _lose(self, error: Any) -> None:
        """Nobody knows what was committed: to be begun anew, unless that would not help."""
        self.close()
        if any(word in error.name() for word in HOPELESS):
            raise EngineError(f"{self._name}: {word_of(error)}") from None
        raise Lost(word_of(error)) from None


def patiently(waiting: Waiting, work: Callable[[], Answer]) -> Answer:
    """Do it until it is done; brokers that are away are waited for."""
    while True:
        try:
            answer = work()
        except Lost as lost:
            waiting.pause(lost)
        else:
            waiting.over()
            return answer


def send(producer: Any, topic: str, message: Message, told: Callable[[Any, Any], None]) -> None:
    """Produce one message; while the queue is full, wait: that is the back-pressure."""
    headers = list(message.headers)
    while True:
        try:
            producer.produce(topic, message.value, message.key, headers=headers, on_delivery=told)
        except BufferError:
            producer.poll(QUEUE_FULL_S)
        else:
            return
