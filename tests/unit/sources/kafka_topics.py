"""What tests of the Kafka source have in common: records put into topics, and readers tapped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from confluent_kafka import Producer, TopicPartition

from penstock.sources.base import Cursor, Polled, Reader, Slot
from penstock.sources.kafka import KafkaSource
from tests.waiting import LONG_S

from ...services.kafka import Kafka

WAIT_S = LONG_S


class Tap:
    """A reader with what was polled from it, and not yet looked at."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.polled: list[Polled] = []

    def until(self, said: Callable[[], Any], wanted: Any = True) -> bool:
        """Poll until it is said, or a long time is over."""
        deadline_s = time.monotonic() + WAIT_S
        while said() != wanted and time.monotonic() < deadline_s:
            self.polled += self.reader.poll(1000, 0.05)
        return bool(said() == wanted)

    def ready(self) -> bool:
        """Wait until it knows its partitions."""
        return self.until(lambda: self.reader.lag() is not None)

    def take(self, count: int) -> list[Polled]:
        """Poll until so many are there, and a little longer: there must not be more."""
        self.until(lambda: len(self.polled) >= count)
        self.polled += self.reader.poll(1000, 0.1)
        taken, self.polled = self.polled, []
        return taken

    def events(self, count: int) -> list[Any]:
        return [one.event for one in self.take(count)]

    def lag(self) -> int | None:
        return self.reader.lag()

    @property
    def next(self) -> dict[str, dict[str, int]]:
        """The next offsets by topic and partition."""
        return {topic: told["next"] for topic, told in self.reader.cursor["topics"].items()}

    def close(self) -> None:
        self.reader.close()


def opened(source: KafkaSource, cursor: Cursor | None = None, number: int = 0, slots: int = 1) -> closing[Tap]:
    """A reader of one slot, closed at the end of the block."""
    return closing(Tap(source.open(Slot("run", "source", number, slots, 0.0), cursor)))


def put(kafka: Kafka, topic: str, values: Sequence[Any], **about: Any) -> None:
    """Write these as JSON, bytes as they are."""
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0})
    for value in values:
        raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        producer.produce(topic, raw, **({"partition": 0} | about))
    assert producer.flush(WAIT_S) == 0


def expire(kafka: Kafka, topic: str, before: int) -> None:
    """Have a topic's records before this offset removed."""
    for answer in kafka.admin.delete_records([TopicPartition(topic, 0, before)]).values():
        answer.result()
