"""Which partitions a slot reads, and from where on: looked up beside the reader, so that it never waits for that."""

from __future__ import annotations

import logging
import queue
import re
import threading
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from confluent_kafka import KafkaException

from penstock.common.kafka import Cluster, Partition, Start, Topic
from penstock.errors import InputError
from penstock.sources.base import Cursor, Slot
from penstock.sources.kafka.begin import Begin, first_start

REFRESH_S = 5.0
RETRY_S = 1.0
_log = logging.getLogger("penstock.kafka")


class TopicCursor(msgspec.Struct):
    """How far a topic was read: its id in the cluster, how often it was made anew, the next offsets by partition."""

    id: str
    made: int
    next: dict[int, int]


class KafkaCursor(msgspec.Struct):
    """How far a slot is, and of how many it is one: with another number its partitions would be others."""

    slots: int
    topics: dict[str, TopicCursor]


def read_cursor(thing: str, cursor: Cursor | None, slots: int) -> KafkaCursor:
    """The cursor of a slot, or an empty one; an InputError where it is another source's, or for other slots."""
    if cursor is None:
        return KafkaCursor(slots, {})
    try:
        read = msgspec.convert(cursor, KafkaCursor, str_keys=True)
    except msgspec.ValidationError:
        raise InputError(f"{thing}: must go on from a cursor of a Kafka source; got {cursor!r}") from None
    if read.slots != slots:
        raise InputError(f"{thing}: must go on with as many slots as it began with, {read.slots}; got {slots}")
    return read


def owner(topic: str, partition: int, slots: int) -> int:
    """The slot of a partition, whatever others there are.

    >>> [owner("clicks", partition, 4) for partition in range(5)]
    [1, 2, 3, 0, 1]
    """
    return (zlib.crc32(topic.encode()) + partition) % slots


@dataclass(frozen=True)
class Wanted:
    """Which topics are read (a name that begins with ^ is a pattern), from where on, and what if that is gone."""

    topics: Sequence[str]
    begin: Begin
    on_reset: str
    committed: bool

    def named(self) -> list[str]:
        """The topics that must be there."""
        return [name for name in self.topics if not name.startswith("^")]

    def among(self, names: Sequence[str]) -> list[str]:
        """The topics of the cluster that a pattern matches."""
        patterns = [re.compile(name) for name in self.topics if name.startswith("^")]
        return [name for name in names if any(one.match(name) for one in patterns)]

    @property
    def has_pattern(self) -> bool:
        """Whether new topics may turn up."""
        return len(self.named()) < len(self.topics)


class Lost(NamedTuple):
    """A partition that has not got the next offset; `made` says of which topic of that name."""

    topic: str
    number: int
    made: int


@dataclass(frozen=True)
class Found:
    """Partitions of a topic to be read from these offsets on; a topic made anew has no others."""

    topic: str
    id: str
    made: int
    starts: dict[int, int]


class Watcher(threading.Thread):
    """Looks for partitions every few seconds, and puts what it finds, or an error, into `news`."""

    def __init__(self, thing: str, wanted: Wanted, slot: Slot, cluster: Cluster) -> None:
        super().__init__(name="kafka-partitions", daemon=True)
        self._thing = thing
        self._wanted = wanted
        self._slot = slot
        self._cluster = cluster
        self._known: dict[str, TopicCursor] = {}  # their `next` is where reading goes on, not where it is
        self._read: dict[str, set[int]] = {}
        self._lost: deque[Lost] = deque()
        self._asked = threading.Event()
        self._stopped = False
        self._looked = False
        self.news: queue.SimpleQueue[Found | Exception] = queue.SimpleQueue()
        self.ends: Mapping[Partition, int] | None = None  # as of the last look, if there was one

    def begin(self, cursor: KafkaCursor) -> None:
        """Start, from a cursor on."""
        self._known = dict(cursor.topics)
        self._looked = bool(cursor.topics)
        self.start()

    def ask(self, lost: Lost) -> None:
        """Say where to go on in a partition that has not got the next offset."""
        self._lost.append(lost)
        self._asked.set()

    def stop(self) -> None:
        """End soon."""
        self._stopped = True
        self._asked.set()
        self.join(RETRY_S)

    def run(self) -> None:
        """Look, and wait until it is time, or somebody asks."""
        while not self._stopped:
            pause_s = REFRESH_S
            try:
                self._look()
                while self._lost:
                    self._reset(self._lost[0])
                    self._lost.popleft()
            except KafkaException as error:
                self._cluster.complaints.say("look", f"cannot look for partitions, tries again: {error}")
                pause_s = RETRY_S
            except Exception as error:
                self.news.put(error)
                return
            self._asked.wait(pause_s)
            self._asked.clear()

    def _look(self) -> None:
        names = self._wanted.named()
        if self._wanted.has_pattern:
            names = sorted({*names, *self._wanted.among(self._cluster.names())})
        topics = self._cluster.described(names)
        for name, told in topics.items():
            if told.error:
                self._cluster.complaints.say((name, told.error), f"topic {name!r}: {told.told}; waits for it")
            else:
                self._compare(name, told)
        self._looked = True
        there = [(name, n) for name, topic in topics.items() if not topic.error for n in self._read[name]]
        self.ends = self._offsets(dict.fromkeys(there, "latest"))

    def _compare(self, name: str, found: Topic) -> None:
        """Find partitions that are not read yet, and the topic made anew."""
        known, read = self._known.get(name), self._read.get(name)
        anew = known is not None and known.id != found.id
        if anew:
            self._refuse(f"topic {name!r} was made anew")
            read = None
        mine = {n for n in range(found.partitions) if owner(name, n, self._slot.slots) == self._slot.number}
        if read is not None and mine <= read:
            return
        offsets = self._offsets({(name, n): self._start(name, n, anew) for n in mine - (read or set())})
        made = known.made + anew if known else 0
        self._known[name] = TopicCursor(found.id, made, {} if anew or known is None else known.next)
        self._read[name] = mine
        self.news.put(Found(name, found.id, made, {n: offset for (_, n), offset in offsets.items()}))

    def _start(self, topic: str, number: int, anew: bool) -> Start:
        """A partition that came later is read from its first record on, so that none is missed."""
        known = self._known.get(topic)
        if anew:
            return self._wanted.on_reset
        if known is not None:
            return known.next.get(number, "earliest")
        late = self._looked and topic not in self._wanted.topics
        return "earliest" if late else first_start(self._wanted.begin, topic, number)

    def _reset(self, lost: Lost) -> None:
        """Go on at the first or last record; one that was lost with its topic has been found anew by now."""
        topic, number, made = lost
        known = self._known[topic]
        if known.made != made:
            return
        first, end = (self._offsets({(topic, number): start})[topic, number] for start in ("earliest", "latest"))
        self._refuse(f"topic {topic!r}, partition {number}: it holds offsets {first} to {end}, and not the next")
        start = first if self._wanted.on_reset == "earliest" else end
        self.news.put(Found(topic, known.id, made, {number: start}))

    def _refuse(self, what: str) -> None:
        if self._wanted.on_reset == "fail":
            raise InputError(f"{self._thing}: {what}; on_reset says fail: with earliest or latest it goes on there")
        _log.warning("%s: %s; goes on at the %s", self._thing, what, self._wanted.on_reset)

    def _offsets(self, starts: Mapping[Partition, Start]) -> dict[Partition, int]:
        return self._cluster.offsets(starts, self._wanted.committed)
