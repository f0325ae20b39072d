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

    def add(self, other: ReplicaCounters) -> None:
        """Add another replica's counters, or those of another attempt, to these."""
        for mine, theirs in (
            (self.received, other.received),
            (self.emitted, other.emitted),
            (self.sent, other.sent),
            (self.dropped, other.dropped),
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


@dataclass(frozen=True, slots=True)
class OperatorCounters:
    """One operator: its replicas' counters, which replicas are active, and the events waiting for it."""

    replicas: Mapping[int, ReplicaCounters]
    active: tuple[int, ...]
    pool: int
    backlog: int  # sent to the operator and not yet processed or dropped, wherever they wait
    age_s: float = 0.0  # how long ago the stalest of its replicas was last heard of
    there: tuple[int, ...] | None = None  # the replicas of its pool, if that is known; else the first so many

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

    @property
    def latency(self) -> LatencyHistogram:
        """End-to-end latency over all sinks."""
        return merged(r.latency for o in self.operators.values() for r in o.replicas.values())

    @property
    def dropped(self) -> dict[str, int]:
        """Dropped events by cause, over all sources and operators."""
        causes: dict[str, int] = {}
        for dropped in (*self.source_dropped.values(), *(one.total.dropped for one in self.operators.values())):
            for cause, count in dropped.items():
                causes[cause] = causes.get(cause, 0) + count
        return causes
