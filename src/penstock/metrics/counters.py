"""Cumulative counters: what a run has done since it started, per replica, operator and source.

The engine and the simulator produce them; the monitor turns the difference of two of them into the loads of
an interval. They go back where events are done again: to the last checkpoint when an attempt dies, and a micro-batch
that is done again replaces its first try.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from penstock.metrics.latency import LatencyHistogram, merged
from penstock.metrics.table import Block, CounterTable, block_of


class ReplicaCounters(msgspec.Struct):
    """What one replica has done since the run's start."""

    received: dict[str, int] = msgspec.field(default_factory=dict)  # by sender (operator or source)
    processed: int = 0
    emitted: dict[str, int] = msgspec.field(default_factory=dict)  # by output stream
    sent: dict[str, int] = msgspec.field(default_factory=dict)  # by receiving operator
    dropped: dict[str, int] = msgspec.field(default_factory=dict)  # by cause
    repeated: int = 0  # events that an idempotent sink had already stored
    busy_s: float = 0.0  # inside the operator's function, computing or waiting
    cpu_s: float = 0.0
    queued: int = 0  # events waiting in the replica's own queue now
    latency: LatencyHistogram = msgspec.field(default_factory=LatencyHistogram)  # end to end, at sinks
    state_bytes: int = 0  # of the state that it has now, about
    state_keys: int = 0
    groups_moved: int = 0  # key groups whose state it took from another replica
    moving: LatencyHistogram = msgspec.field(default_factory=LatencyHistogram)  # from hearing of it, each group
    lag: int = 0  # of a source's slot: events that wait outside now
    held: dict[str, int] = msgspec.field(default_factory=dict)  # sent, and kept here now until a replica has room

    def add(self, other: ReplicaCounters) -> None:
        """Add another replica's counters, or those of another attempt, to these."""
        for mine, theirs in (
            (self.received, other.received),
            (self.emitted, other.emitted),
            (self.sent, other.sent),
            (self.dropped, other.dropped),
            (self.held, other.held),
        ):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.processed += other.processed
        self.repeated += other.repeated
        self.busy_s += other.busy_s
        self.cpu_s += other.cpu_s
        self.queued += other.queued
        self.latency.merge(other.latency)
        self.state_bytes += other.state_bytes
        self.state_keys += other.state_keys
        self.groups_moved += other.groups_moved
        self.moving.merge(other.moving)
        self.lag += other.lag


def total(counters: Iterable[ReplicaCounters]) -> ReplicaCounters:
    """The sum of several replicas' counters."""
    result = ReplicaCounters()
    for one in counters:
        result.add(one)
    return result


def held_by(senders: Mapping[str, Iterable[ReplicaCounters]]) -> dict[str, dict[str, int]]:
    """What is held for each operator, by sender; `senders` has the replicas of operators and the slots of sources.

    >>> held_by({"in": [ReplicaCounters(held={"clean": 3})], "clean": [ReplicaCounters(), ReplicaCounters()]})
    {'clean': {'in': 3}}
    """
    found: dict[str, dict[str, int]] = {}
    for sender, replicas in senders.items():
        for one in replicas:
            for receiver, count in one.held.items():
                if count > 0:
                    kept = found.setdefault(receiver, {})
                    kept[sender] = kept.get(sender, 0) + count
    return found


class HasBlock(Mapping[int, ReplicaCounters]):
    """Counters by replica that are kept as arrays."""

    block: Block


@dataclass(frozen=True, slots=True)
class OperatorCounters:
    """One operator: its replicas' counters, which replicas are active, and the events waiting for it.

    Of the backlog some is held by senders until a replica has room, some is booked in the replicas' own queues, and the
    rest is on its way. What waits outside, at sources, is not part of it.
    """

    replicas: Mapping[int, ReplicaCounters]
    active: tuple[int, ...]
    pool: int
    backlog: int  # sent to the operator and not yet processed or dropped, wherever they wait
    age_s: float = 0.0  # how long ago the stalest of its replicas was last heard of
    there: tuple[int, ...] | None = None  # the replicas of its pool, if that is known; else the first so many
    held_by: Mapping[str, int] = field(default_factory=dict)  # by sender: what it keeps until a replica has room

    @property
    def block(self) -> Block:
        """What the replicas counted, as arrays."""
        return self.replicas.block if isinstance(self.replicas, HasBlock) else block_of(self.replicas)

    @property
    def held(self) -> int:
        """Events that senders keep until a replica has room."""
        return sum(self.held_by.values())

    @property
    def booked(self) -> int:
        """Events that wait in the replicas' own queues."""
        return sum(one.queued for one in self.replicas.values())

    @property
    def total(self) -> ReplicaCounters:
        """The sum over all replicas."""
        return total(self.replicas.values())

    @property
    def execution_time_s(self) -> float | None:
        """Mean time of one event on one replica; None before the first event."""
        sum_ = self.total
        return sum_.busy_s / sum_.processed if sum_.processed else None


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """How checkpoints go: the last committed, when that was, how long it took, and how many were given up."""

    number: int = 0
    took_s: float = 0.0
    at_s: float = 0.0
    committed: int = 0
    given_up: int = 0
    size_bytes: int = 0  # of its record and its segments of state
    age_s: float = 0.0  # since it was committed; before the first, since they began
    every_s: float | None = None  # as set; None where there are none: before the start, and in micro-batch mode


@dataclass(frozen=True, slots=True)
class RunCounters:
    """A whole run at one moment; operators in topological order."""

    time_s: float
    sources: Mapping[str, int]  # events that entered the topology, by source
    operators: Mapping[str, OperatorCounters]
    restarts: int = 0
    missing: frozenset[str] = field(default_factory=frozenset)  # operators that some replica says nothing of
    source_age_s: Mapping[str, float] = field(default_factory=dict)  # how long ago each source was heard of, if at all
    lag: Mapping[str, int] = field(default_factory=dict)  # events that wait outside, by source, where that is known
    source_dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # events that did not enter, by cause
    table: CounterTable = field(init=False, compare=False, repr=False)  # what all replicas counted, as arrays

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", CounterTable.of(self.operators))

    @property
    def latency(self) -> LatencyHistogram:
        """End-to-end latency over all sinks."""
        return merged([self.table.latency])

    @property
    def dropped(self) -> dict[str, int]:
        """Dropped events by cause, over all sources and operators."""
        causes: dict[str, int] = {}
        for dropped in (*self.source_dropped.values(), *(one.total.dropped for one in self.operators.values())):
            for cause, count in dropped.items():
                causes[cause] = causes.get(cause, 0) + count
        return causes
