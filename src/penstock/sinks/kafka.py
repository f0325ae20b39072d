"""A sink that publishes events to a topic of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

import msgspec

from penstock.common.checks import choice
from penstock.common.kafka import CHECK_S, QUIET, Cluster, Complaints, KafkaUrl, Settings, made, need_client
from penstock.errors import EngineError, InputError
from penstock.sinks import staging
from penstock.sinks.base import LEVELS, Recovery
from penstock.sinks.kafka_publisher import (
    ATTEMPT,
    IDS,
    WHOLE,
    Markers,
    Part,
    Publisher,
    patiently,
    send,
    without_producers,
    word_of,
)
from penstock.sinks.staging import Message, Staged, Staging
from penstock.sinks.waiting import PATIENCE_S, Waiting
from penstock.topology import Context

FLUSH_S = 1.0
FENCED_AT_ONCE = 16
# Not idempotent: librdkafka then has five requests on their way at most, and polls without a pause while more is to be
# sent, which takes a core from the broker that it waits for.
DIRECT = {"enable.idempotence": False, "linger.ms": 1, "queue.buffering.max.messages": 10_000}
_URL_OPTIONS = ("level", "key", "committer", "patience_s")


class KafkaSink:
    """One message an event: JSON, with `key` and `headers` as said, and event id and run in headers of their own.

    What readers of the topic see, by `level`:

    - `at_least_once`: events soon after they come; after a failure some of them again, perhaps in another order, under
      other ids or with other values. All of a checkpoint has been acknowledged before that counts as prepared.
    - `committed`: with `read_committed`, each event once, when its checkpoint is committed: one transaction for each
      checkpoint and replica, or, with `committer=1`, for each checkpoint, published by one replica for all.
      Until then events wait in the run's folder. The topic `<topic>-checkpoints` has how far each part is.

    `key` is a field's name or a function of the event; `headers` a mapping, or a function that gives one. `settings`
    are librdkafka's; in them `${env:NAME}` and `${file:/path}` stand for secrets. A broker that is away is waited
    for, up to `patience_s`.

    >>> KafkaSink("localhost:9092", "counts", level="latest")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    penstock.errors.InputError: kafka sink 'counts': level latest would take back what is in the topic already, ...
    >>> KafkaSink.from_url("kafka://localhost:9092/counts?level=committed&compression.type=lz4")
    kafka sink 'counts' at localhost:9092
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        *,
        level: str = "at_least_once",
        key: str | Callable[[Any], Any] | None = None,
        headers: Mapping[str, str | bytes] | Callable[[Any], Mapping[str, str | bytes]] | None = None,
        settings: Settings | None = None,
        committer: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._thing = f"kafka sink {topic!r}"
        self.level = choice(self._thing, "level", level, LEVELS)
        if level == "latest":
            told = "would take back what is in the topic already, which cannot be; take committed"
            raise InputError(f"{self._thing}: level latest {told}")
        if committer is not None and (committer != 1 or level != "committed"):
            raise InputError(f"{self._thing}: committer must be 1, with level committed, or none; got {committer!r}")
        need_client(self._thing)
        self._topic = topic
        self._brokers = brokers
        self._key = _reader(key)
        self._headers = _headers_of(headers)
        self._settings = {**(settings or {}), "bootstrap.servers": brokers}
        self._whole = committer is not None
        self._patience_s = patience_s
        self._context: Context | None = None
        self._staging: Staging | None = None
        self._publisher: Publisher | None = None
        self._producer: Any = None
        self._failed: Any = None

    @classmethod
    def from_url(cls, url: str) -> KafkaSink:
        """`kafka://host:9092/topic?level=…&key=…`; names with a dot are settings of librdkafka."""
        brokers, topic, options, settings = KafkaUrl.parse("kafka sink", url, _URL_OPTIONS)
        numbers = {name: _number(topic, name, options[name]) for name in _NUMBERS if name in options}
        given: dict[str, Any] = {**options, **numbers}
        return cls(brokers, topic, settings=settings, **given)

    def __repr__(self) -> str:
        return f"{self._thing} at {self._brokers}"

    def check(self) -> None:
        """Raise an InputError unless a broker answers, takes the login, and lets us write to the topic."""
        cluster = Cluster(self._thing, without_producers(self._settings), aloud=False)
        cluster.check([self._topic], "WRITE")
        kafka: Any = import_module("confluent_kafka")
        own = {"transactional.id": self._topic} if self.level == "committed" else {}
        made(self._thing, kafka.Producer, {**QUIET, **self._settings, **own})  # tells of settings that cannot be
        if self.level == "committed":
            markers = self._markers("", "")
            patiently(Waiting(self, CHECK_S), markers.make)
            patiently(Waiting(self, CHECK_S), markers.look)
            for right in ("READ", "WRITE"):
                cluster.check([markers.topic], right)
            publisher = Publisher(markers, self._topic, self._settings, f"{IDS}check-{self._topic}", attempt=0)
            patiently(Waiting(self, CHECK_S), publisher.check)

    def recover(self, recovery: Recovery) -> None:
        """Fence off earlier attempts, publish what was committed and is not there yet, and remove what was not."""
        staged: dict[Part, list[Staged]] = {part: staging.of_part(one) for part, one in sorted(recovery.parts.items())}
        if self.level == "committed" or any(staged.values()):
            self._complete(recovery, staged)
        staging.clear(recovery.folder)

    def _complete(self, recovery: Recovery, staged: dict[Part, list[Staged]]) -> None:
        """Ids are fenced twice. First, because nobody reads markers past a transaction that a dead replica left open.

        Then again, once the attempt is raised: whoever takes an id back after that learns that it is too late.
        """
        waiting, markers = Waiting(self, self._patience_s), self._markers(recovery.run, recovery.operator)
        patiently(waiting, markers.make)
        publishers = {part: self._made_publisher(recovery, part, markers) for part in (WHOLE, *staged)}
        first = publishers[WHOLE]
        try:
            self._fence([*publishers.values()])
            patiently(waiting, lambda: first.publish({}, recovery.folder, {ATTEMPT: recovery.attempt}))
            parts = {*staged, *(first.done or {})} - {ATTEMPT, WHOLE}
            for part in parts - publishers.keys():
                publishers[part] = self._made_publisher(recovery, part, markers)
            self._fence([publishers[part] for part in parts])
            done = patiently(waiting, markers.read)
            jobs: dict[Part, dict[Part, list[Staged]]] = {part: {part: files} for part, files in staged.items()}
            if self._whole:
                jobs = {WHOLE: staged}
            for part, files in jobs.items():
                publishers[part].done = done
                publish = partial(publishers[part].publish, files, recovery.folder, {part: recovery.checkpoint})
                patiently(waiting, publish)
        finally:
            for publisher in publishers.values():
                publisher.close()

    def _fence(self, publishers: list[Publisher]) -> None:
        """All at the same time: each waits half a second for Kafka's coordinator of transactions."""
        with ThreadPoolExecutor(FENCED_AT_ONCE) as pool:
            wait_for = [pool.submit(patiently, Waiting(self, self._patience_s), one.fence) for one in publishers]
        for one in wait_for:
            one.result()

    def open(self, context: Context) -> None:
        """Connect, as far as that is needed already."""
        self._context = context
        if self.level == "at_least_once":
            self._open_producer()
            return
        part: Part = WHOLE if self._whole else context.replica
        self._staging = Staging(context.folder, str(context.replica))
        self._publisher = self._made_publisher(context, part, self._markers(context.run, context.operator))

    def process(self, event: Any) -> None:
        """Publish one event."""
        self.process_many([event])

    def process_many(self, events: list[Any]) -> None:
        """Publish these events, or keep them until their checkpoint is committed."""
        context = self._context
        if context is None:
            raise RuntimeError("a sink is opened before it gets events")
        run = context.run.encode()
        messages = [
            Message(
                event_id,
                msgspec.json.encode(event),
                self._key(event),
                (("penstock-id", event_id.encode()), ("penstock-run", run), *self._headers(event)),
            )
            for event_id, event in zip(context.event_ids, events, strict=True)
        ]
        if self._staging is not None:
            self._staging.add(context.attempt, context.checkpoint, messages)
            return
        for message in messages:
            send(self._producer, self._topic, message, self._delivered)
        self._producer.poll(0)
        self._check_delivered()

    def prepare(self, checkpoint: int) -> Any:
        """Have all that came acknowledged by the brokers, or on disk."""
        if self._staging is None:
            self._flush()
            return None
        self._staging.seal()
        return staging.as_part(self._staging.up_to(checkpoint))

    def commit(self, checkpoint: int) -> None:
        """Publish what has waited for this checkpoint, in one transaction."""
        if self._staging is None or self._publisher is None or self._context is None:
            return
        about, publisher, waiting = self._context, self._publisher, Waiting(self, self._patience_s)
        staged: dict[Part, list[Staged]] = {about.replica: self._staging.up_to(checkpoint)}
        if self._whole:
            is_first = about.replica == min(about.parts)
            staged = {part: staging.of_part(one) for part, one in about.parts.items()} if is_first else {}
        if files := [one for several in staged.values() for one in several]:
            marks: dict[Part, int] = {WHOLE if self._whole else about.replica: checkpoint}
            patiently(waiting, lambda: publisher.publish(staged, about.folder, marks))
            staging.remove(about.folder, files)
        self._staging.forget(checkpoint)

    def close(self) -> None:
        """Let all that was given to the brokers reach them, and disconnect."""
        if self._staging is not None:
            self._staging.close()
        if self._publisher is not None:
            self._publisher.close()
        if self._producer is not None:
            self._flush()
        self._producer = None

    def _made_publisher(self, about: Context | Recovery, part: Part, markers: Markers) -> Publisher:
        name = f"{IDS}{about.run}-{about.operator}-{part}"
        return Publisher(markers, self._topic, self._settings, name, about.attempt)

    def _markers(self, run: str, operator: str) -> Markers:
        return Markers(self._thing, self._settings, f"{self._topic}-checkpoints", (run, operator))

    def _open_producer(self) -> None:
        kafka: Any = import_module("confluent_kafka")
        own = {"message.timeout.ms": round(1000 * self._patience_s), **self._settings}
        given = {**QUIET, **DIRECT, **own, "error_cb": Complaints(self._thing)}
        self._failed, self._producer = None, made(self._thing, kafka.Producer, given)

    def _flush(self) -> None:
        while self._producer.flush(FLUSH_S):
            self._check_delivered()
        self._check_delivered()

    def _delivered(self, error: Any, _message: object) -> None:
        self._failed = self._failed or error

    def _check_delivered(self) -> None:
        if self._failed is not None:
            raise EngineError(f"{self!r}: a message could not be delivered; {word_of(self._failed)}")


_NUMBERS: dict[str, Callable[[str], float]] = {"committer": int, "patience_s": float}


def _number(topic: str, name: str, text: str) -> float:
    try:
        return _NUMBERS[name](text)
    except ValueError:
        raise InputError(f"kafka sink {topic!r}: {name} must be a number; got {text!r}") from None


def _reader(key: str | Callable[[Any], Any] | None) -> Callable[[Any], bytes | None]:
    """What gives an event's key as bytes: text as it is, other values as JSON."""
    if key is None:
        return lambda _: None
    if isinstance(key, str):
        name = key
        return lambda event: _as_bytes(event[name] if isinstance(event, Mapping) else getattr(event, name))
    function = key
    return lambda event: _as_bytes(function(event))


def _headers_of(
    headers: Mapping[str, str | bytes] | Callable[[Any], Mapping[str, str | bytes]] | None,
) -> Callable[[Any], list[tuple[str, bytes]]]:
    if callable(headers):
        function = headers
        return lambda event: [(name, _as_bytes(value) or b"") for name, value in function(event).items()]
    same = [(name, _as_bytes(value) or b"") for name, value in (headers or {}).items()]
    return lambda _: same


def _as_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
