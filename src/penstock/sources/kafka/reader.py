"""One slot's partitions, read by a consumer of its own that is told by hand what to read."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from penstock.common.kafka import Cluster, Complaints, Partition, made
from penstock.errors import EngineError, InputError
from penstock.sources.base import Cursor, Polled, Reader, Slot, Undecoded
from penstock.sources.kafka.decoding import RegistryAway
from penstock.sources.kafka.partitions import Found, KafkaCursor, Lost, TopicCursor, Watcher, read_cursor
from penstock.sources.kafka.source import OWN_SETTINGS, KafkaSource

_LOST = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


@dataclass(slots=True)
class _Part:
    """A partition that is read: what its ids begin with, the next offset, and whether its end was reached."""

    prefix: str
    next: int
    at_end: bool = False


class KafkaReader(Reader):
    """Polls records as they come; what to read, the watcher says."""

    def __init__(self, source: KafkaSource, slot: Slot, cursor: Cursor | None) -> None:
        self._thing = source.thing
        self._began = read_cursor(source.thing, cursor, slot.slots)
        self._event_of = source.event_of()
        self._named = source.wanted().named()
        self._by_arrival = source.birth == "arrival"
        self._commits = source.group is not None
        self._complaints = Complaints(source.thing)
        self._topics: dict[str, Found] = {}
        self._parts: dict[Partition, _Part] = {}
        self._held: list[Message] = []  # fetched, while the schema registry is away
        self._committed: dict[Partition, int] = {}
        settings = source.client_settings()
        own = OWN_SETTINGS | {"group.id": source.group or f"penstock-{slot.run}"}
        calls = {"error_cb": self._complaints, "on_commit": self._heard_commit}
        self._consumer = made(source.thing, Consumer, settings | own | calls)
        self._watcher = Watcher(source.thing, source.wanted(), slot, Cluster(source.thing, settings))
        self._watcher.begin(self._began)

    def poll(self, most: int, wait_s: float) -> Sequence[Polled]:
        """Records, those of a partition in their order."""
        self._take_news(0.0 if self._topics else wait_s)
        waiting = self._held or self._fetch(most, wait_s)
        polled: list[Polled] = []
        for place, message in enumerate(waiting):
            if len(polled) == most or not self._take(message, polled):
                self._held = waiting[place:]
                break
        else:
            self._held = []
        if self._held and not polled:
            time.sleep(wait_s)
        return polled

    def _take(self, message: Message, polled: list[Polled]) -> bool:
        """Add a record's event to those polled; False where it must wait for the schema registry."""
        if message.error() is not None:
            self._hear(message)
            return True
        part = self._parts.get((message.topic(), message.partition()))  # type: ignore[arg-type]
        if part is None:
            return True
        try:
            event = self._event_of(message)
        except RegistryAway as error:
            self._complaints.say("registry", f"{error}; waits for it")
            return False
        except Exception as error:
            event = Undecoded(message.value() or b"", f"{type(error).__name__}: {error}")
        offset: int = message.offset()  # type: ignore[assignment]
        kind, time_ms = message.timestamp()
        born_s = time.time() if self._by_arrival or not kind else time_ms / 1000
        polled.append(Polled(f"{part.prefix}{offset}", born_s, event))
        part.next, part.at_end = offset + 1, False
        return True

    @property
    def cursor(self) -> Cursor:
        """The next offsets of all partitions, and the topics' ids."""
        topics = dict(self._began.topics)
        for topic, found in self._topics.items():
            topics[topic] = TopicCursor(found.id, found.made, {})
        for (topic, number), part in self._parts.items():
            topics[topic].next[number] = part.next
        return msgspec.to_builtins(KafkaCursor(self._began.slots, topics), str_keys=True)

    @property
    def caught_up(self) -> bool:
        """Whether the end of every partition was reached; one whose offset is gone has not got there yet."""
        known = self._topics.keys() >= {*self._began.topics, *self._named}
        return known and not self._held and all(part.at_end for part in self._parts.values())

    def lag(self) -> int | None:
        """Records between the cursor and the partitions' ends, by what was last heard of them; None before that."""
        ends = self._watcher.ends
        if not self._topics or ends is None:
            return None
        total = 0
        for partition, part in self._parts.items():
            heard = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
            end = max(ends.get(partition, 0), heard[1] if heard else 0)
            total += max(0, end - part.next)
        return total

    def committed(self, cursor: Cursor) -> None:
        """Tell the group, for whoever watches it; nothing here depends on that."""
        if not self._commits:
            return
        topics = msgspec.convert(cursor, KafkaCursor, str_keys=True).topics
        offsets = {(topic, number): n for topic, one in topics.items() for number, n in one.next.items()}
        changed = [TopicPartition(*one, n) for one, n in offsets.items() if self._committed.get(one) != n]
        self._committed = offsets
        if changed:
            self._consumer.commit(offsets=changed, asynchronous=True)

    def close(self) -> None:
        """Leave the cluster."""
        self._watcher.stop()
        self._consumer.close()

    def _fetch(self, most: int, wait_s: float) -> list[Message]:
        """Wait for the first, and take what is there then."""
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        return [first, *self._consumer.consume(most - 1, 0.0)] if most > 1 else [first]

    def _hear(self, message: Message) -> None:
        """The end of a partition, an offset that is gone, or trouble, most of which passes."""
        error: KafkaError = message.error()  # type: ignore[assignment]
        partition: Any = (message.topic(), message.partition())
        if error.code() == KafkaError._PARTITION_EOF:  # behind records that are not for us: aborted, markers
            if part := self._parts.get(partition):
                part.next, part.at_end = max(part.next, message.offset() or 0), True
        elif error.code() in _LOST:
            topic, number = partition
            self._watcher.ask(Lost(topic, number, self._topics[topic].made))
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise InputError(f"{self._thing}: topic {partition[0]!r}: no right to read it any more")
        elif error.fatal():
            raise EngineError(f"{self._thing}: {error.str()}")
        elif self._commits or error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # without a group, none is used
            self._complaints(error)

    def _heard_commit(self, error: KafkaError | None, _offsets: list[TopicPartition]) -> None:
        if error is not None:
            self._complaints.say("commit", f"the group was not told how far checkpoints are: {error.str()}")

    def _take_news(self, wait_s: float) -> None:
        """Read what the watcher has found; the first time, wait for it."""
        try:
            while found := self._watcher.news.get(timeout=wait_s) if wait_s else self._watcher.news.get_nowait():
                if isinstance(found, Exception):
                    raise found
                self._read(found)
                wait_s = 0.0
        except queue.Empty:
            pass

    def _read(self, found: Found) -> None:
        topic, known = found.topic, self._topics.get(found.topic)
        anew = known is not None and known.made != found.made
        old = [one for one in self._parts if one[0] == topic and (anew or one[1] in found.starts)]
        self._consumer.incremental_unassign([TopicPartition(*one) for one in old])
        self._held = [message for message in self._held if (message.topic(), message.partition()) not in old]
        for one in old:
            del self._parts[one]
        name = f"{topic}~{found.made}" if found.made else topic  # ids of a topic made anew are others
        self._topics[topic] = found
        self._parts |= {(topic, number): _Part(f"{name}-{number}-", at) for number, at in found.starts.items()}
        self._consumer.incremental_assign([TopicPartition(topic, number, at) for number, at in found.starts.items()])
