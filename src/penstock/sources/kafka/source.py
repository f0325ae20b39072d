"""A source that reads topics of Kafka."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.common.checks import choice, flag, whole
from penstock.common.kafka import QUIET, Cluster, need_client
from penstock.errors import InputError
from penstock.sources.base import Cursor, Reader, Slot, Source
from penstock.sources.kafka.begin import Begin, check_begin, check_partitions
from penstock.sources.kafka.decoding import Decoder, Registered, by_record, by_value, check_decoder, opened

if TYPE_CHECKING:
    from confluent_kafka import Message

    from penstock.sources.kafka.partitions import Wanted


# Without these the source would lose its place.
OWN_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
_OPTIONS = {"bootstrap.servers": "brokers", "group.id": "group", "auto.offset.reset": "on_reset"}
_MOST_RECEIVED = 100_000_000  # librdkafka's own limit of one answer


@dataclass(frozen=True, repr=False)
class KafkaSource(Source):
    """Topics of Kafka, each partition read by one slot, from the last checkpoint on.

    >>> KafkaSource("localhost:9092", "clicks", group="penstock", begin="latest")
    kafka source 'clicks' at localhost:9092
    >>> login = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": "ann"}
    >>> login["sasl.password"] = "${env:KAFKA_PASSWORD}"  # or ${file:/run/secrets/kafka}
    >>> KafkaSource("a:9092,b:9092", ["orders", "^clicks-.*"], decode="text", settings=login)
    kafka source 'orders,^clicks-.*' at a:9092,b:9092
    """

    brokers: str
    topics: str | Sequence[str]  # a name, or, where it begins with ^, a pattern
    _: KW_ONLY
    group: str | None = None  # is told how far checkpoints are, for tools that watch groups
    begin: Begin = "earliest"  # or latest, a time, {topic: {partition: offset}}; once: then checkpoints say
    decode: Decoder = "json"
    records: bool = False  # events are KafkaRecords, not values
    decode_key: Decoder = "text"  # of a KafkaRecord
    birth: str = "record"  # or arrival
    on_reset: str = "fail"  # or earliest, latest: where to go on if the next offset or the topic is not there any more
    buffer_bytes: int = 2**25  # at most fetched and not yet polled, by slot
    settings: Mapping[str, Any] = field(default_factory=dict)  # any of librdkafka

    @classmethod
    def from_url(cls, url: str) -> KafkaSource:
        """`kafka://host:9092/topic?group=…&begin=…&decode=…`; names with a dot are settings of librdkafka."""
        from penstock.sources.kafka.url import parsed

        return cls(**parsed(url))

    def __post_init__(self) -> None:
        topics = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)
        object.__setattr__(self, "topics", topics)
        if not topics or not all(topics):
            raise InputError(f"kafka source: topics must be names or patterns; got {self.topics!r}")
        for topic in topics:
            _check_topic(topic)
        if not self.brokers:
            raise InputError(f"{self.thing}: brokers must be host:port, or several with commas; got {self.brokers!r}")
        check_decoder(self.thing, "decode", self.decode)
        check_decoder(self.thing, "decode_key", self.decode_key)
        choice(self.thing, "birth", self.birth, ("record", "arrival"))
        choice(self.thing, "on_reset", self.on_reset, ("fail", "earliest", "latest"))
        flag(self.thing, "records", self.records)
        whole(self.thing, "buffer_bytes", self.buffer_bytes, least=2**21)
        check_begin(self.thing, self.begin, topics)
        for name in self.settings:
            if name in OWN_SETTINGS or name in _OPTIONS:
                use = f"use {_OPTIONS[name]}" if name in _OPTIONS else "it is the source's own"
                raise InputError(f"{self.thing}: setting {name} must not be given: {use}")

    def __repr__(self) -> str:
        return f"{self.thing} at {self.brokers}"  # and none of the settings: there may be a password

    @property
    def thing(self) -> str:
        """What messages call it."""
        return f"kafka source {','.join(self.topics)!r}"

    def check(self) -> None:
        """A broker must answer, take the login, and let the topics be read; so must a schema registry."""
        need_client(self.thing)
        for decoder in (self.decode, self.decode_key if self.records else None):
            if isinstance(decoder, Registered):
                decoder.check(self.thing)
        cluster, wanted = Cluster(self.thing, self.client_settings(), aloud=False), self.wanted()
        for name, topic in cluster.check(wanted.named(), "READ").items():
            check_partitions(self.thing, self.begin, name, topic.partitions)
        if wanted.has_pattern:
            matching = wanted.among(cluster.answer(cluster.names))
            if not matching and not wanted.named():
                raise InputError(f"{self.thing}: no topic of the cluster that may be seen matches")
            cluster.check(matching, "READ")

    def open(self, slot: Slot, cursor: Cursor | None) -> Reader:
        """Begin to look for the slot's partitions; a broker that is not there is waited for."""
        need_client(self.thing)
        from penstock.sources.kafka.reader import KafkaReader

        return KafkaReader(self, slot, cursor)

    def client_settings(self) -> dict[str, Any]:
        """The user's over our own; half of the buffer may be queued, and half be on its way."""
        half = self.buffer_bytes // 2
        return {
            **QUIET,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": half // 1024,
            "fetch.max.bytes": half,
            "receive.message.max.bytes": max(half + 512, _MOST_RECEIVED),
            "fetch.queue.backoff.ms": 20,  # after a full queue; else a second
            "fetch.error.backoff.ms": 100,
            "reconnect.backoff.max.ms": 2000,
            **self.settings,
            "bootstrap.servers": self.brokers,
        }

    def wanted(self) -> Wanted:
        """What a watcher looks for."""
        from penstock.sources.kafka.partitions import Wanted

        committed = self.settings.get("isolation.level", "read_committed") == "read_committed"
        return Wanted(self.topics, self.begin, self.on_reset, committed)

    def event_of(self) -> Callable[[Message], Any]:
        """How a record becomes an event."""
        decode = opened(self.thing, self.decode, "value")
        return by_record(decode, opened(self.thing, self.decode_key, "key")) if self.records else by_value(decode)


def _check_topic(topic: str) -> None:
    try:
        re.compile(topic if topic.startswith("^") else "")
    except re.error as error:
        raise InputError(f"kafka source: {topic!r} is not a pattern: {error}") from None
    if not topic.startswith("^") and not re.fullmatch(r"[\w.-]{1,249}", topic, re.ASCII):
        raise InputError(f"kafka source: a topic's name has letters, digits, '.', '_' and '-'; got {topic!r}")
