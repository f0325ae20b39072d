"""The loads of an interval as columns of a table, from which that of one operator is made when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from penstock.metrics.graph import CountedEdges, Floats, Held, OnEdges
from penstock.metrics.snapshot import Declared, Loads, OperatorLoad
from penstock.metrics.table import BUSY_S, CPU_S, PROCESSED, CounterTable

UNDECLARED = Declared(())


@dataclass(frozen=True, slots=True)
class Around:
    """What the counters of an interval are read against."""

    length_s: float
    declared: Mapping[str, Declared] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)  # what waits outside, by source
    held_before: Held = field(default_factory=dict)


class CountedLoads(Loads):
    """What all operators did in an interval, by what their counters have grown.

    It keeps none of the counters, only their table.
    """

    def __init__(self, table: CounterTable, grown: Floats, around: Around) -> None:
        self._table, self._grown, self._around = table, grown, around
        self._names = table.layout.names
        self._made: dict[str, OperatorLoad] = {}
        self._sums = table.sums(grown)

    def measured_s(self, doubted: Collection[str]) -> Floats:
        """The execution time of each operator in this interval, NaN where it did nothing or is doubted."""
        done = self.done
        known = done > 0
        if doubted:
            known &= np.array([name not in doubted for name in self._names], bool)
        measured_s = np.full(len(done), np.nan)
        np.divide(self._of_operators(BUSY_S), done, out=measured_s, where=known)
        return measured_s

    def set_times(self, times_s: Iterable[float | None]) -> None:
        """The execution times, as they are known now."""
        self.execution_time_s = dict(zip(self._names, times_s, strict=True))

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._table.layout.operators

    def __getitem__(self, name: str) -> OperatorLoad:
        load = self._made.get(name)
        if load is None:
            load = self._made[name] = self._load(name)
        return load

    @cached_property
    def active(self) -> Mapping[str, tuple[int, ...]]:
        """The active replicas."""
        return dict(zip(self._names, self._table.now.active, strict=True))

    @cached_property
    def pool(self) -> Mapping[str, int]:
        """The pools."""
        return dict(zip(self._names, self._table.now.pool, strict=True))

    @cached_property
    def processed(self) -> Mapping[str, int]:
        """μ_i."""
        return dict(zip(self._names, self.done.astype(np.int64).tolist(), strict=True))

    @cached_property
    def backlog(self) -> Mapping[str, int]:
        """q_i, 0 where that is no number; with what waits outside."""
        backlogs = [int(count) if 0 <= count < math.inf else 0 for count in self._table.now.backlog]
        outside = self._outside
        return {name: count + outside.get(name, 0) for name, count in zip(self._names, backlogs, strict=True)}

    @cached_property
    def received(self) -> OnEdges:
        """λ_i^p, with what was sent and is held; what was held before came before."""
        counts = np.maximum(self._edges.counts(self._sums, self._held), 0)
        return OnEdges(self._edges.graph, counts.astype(np.int64).tolist())

    @cached_property
    def declared(self) -> Floats:
        """The share that is declared for each edge, in their order."""
        return self._edges.shares

    @cached_property
    def booked(self) -> Mapping[str, int]:
        """Of the backlogs: what waits in the replicas' own queues."""
        sums = np.bincount(self._table.layout.operator_of, self._queued, len(self))
        return dict(zip(self._names, sums.astype(np.int64).tolist(), strict=True))

    @cached_property
    def state_bytes(self) -> Mapping[str, int]:
        """The size of the operators' state, about."""
        return {name: max(0, size) for name, size in zip(self._names, self._table.state_bytes, strict=True)}

    @property
    def done(self) -> Floats:
        """μ_i, in the operators' order."""
        return self._of_operators(PROCESSED)

    def _of_operators(self, column: int) -> Floats:
        """One of the last columns, added up for each operator."""
        return self._sums[self._table.layout.operator_ends + column]

    @cached_property
    def _outside(self) -> Mapping[str, int]:
        """What waits in front of the sources that each operator reads, and is to come to it first."""
        lag = {source: max(0, count) for source, count in self._around.lag.items()}
        told = self._around.declared.items() if lag else ()
        return {name: sum(lag.get(source, 0) for source in one.predecessors) for name, one in told}

    @cached_property
    def _counts(self) -> list[int]:
        counts: list[int] = self._sums.astype(np.int64).tolist()
        return counts

    @cached_property
    def _held(self) -> Held:
        """How much more is held than before."""
        return _grown(self._around.held_before, self._table.held)

    @cached_property
    def _edges(self) -> CountedEdges:
        return self._table.layout.edges(self._around.declared, self._held)

    @cached_property
    def _received_by(self) -> Mapping[str, Mapping[str, int]]:
        return {name: {one: int(count) for one, count in by.items()} for name, by in self.received.items()}

    @cached_property
    def _cpu_share(self) -> Mapping[str, float]:
        shares = self._of_operators(CPU_S) / self._around.length_s
        return dict(zip(self._names, shares.tolist(), strict=True))

    @cached_property
    def _there(self) -> Mapping[str, tuple[int, ...] | None]:
        return dict(zip(self._names, self._table.now.there, strict=True))

    @cached_property
    def _queued(self) -> Floats:
        return np.where(self._table.queued > 0, self._table.queued, 0.0)

    @cached_property
    def _by_replica(self) -> tuple[list[int], list[int], list[float]]:
        """What was processed, is queued, and the busy share, row by row."""
        processed = self._table.of_replicas(self._grown, PROCESSED).astype(np.int64)
        busy = self._table.of_replicas(self._grown, BUSY_S) / self._around.length_s
        return processed.tolist(), self._queued.astype(np.int64).tolist(), busy.tolist()

    def _load(self, name: str) -> OperatorLoad:
        declared, layout = self._around.declared.get(name, UNDECLARED), self._table.layout
        columns, (first, last) = layout.operators[name], layout.rows[name]
        processed, queued, busy = self._by_replica
        given = layout.numbers[name][0] + len(columns.senders)
        dropped = given + len(columns.streams)
        return OperatorLoad(
            name=name,
            received_by=self._received_by[name],
            processed=self.processed[name],
            backlog=self.backlog[name],
            active=self.active[name],
            pool=self.pool[name],
            execution_time_s=self.execution_time_s[name],
            processed_by=dict(zip(columns.replicas, processed[first:last], strict=True)),
            queued_by=dict(zip(columns.replicas, queued[first:last], strict=True)),
            busy_share=dict(zip(columns.replicas, busy[first:last], strict=True)),
            cpu_share=self._cpu_share[name],
            emitted=dict(zip(columns.streams, self._counts[given:dropped], strict=True)),
            dropped=dict(zip(columns.causes, self._counts[dropped : dropped + len(columns.causes)], strict=True)),
            declared_shares=declared.shares,
            state_bytes=self.state_bytes[name],
            there=self._there[name],
            held=sum(self._table.held.get(name, {}).values()),
            outside=self._outside.get(name, 0),
            keyed=declared.keyed,
            pulled=declared.pulled,
        )


def _grown(before: Held, now: Held) -> Held:
    """How much more is held for each operator, by sender."""
    none: Mapping[str, int] = {}
    grown = {}
    for name in {**before, **now}:
        earlier, later = before.get(name, none), now.get(name, none)
        grown[name] = {one: later.get(one, 0) - earlier.get(one, 0) for one in {**earlier, **later}}
    return grown
