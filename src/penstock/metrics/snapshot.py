"""What happened in one interval: a load for each operator, and the whole topology's snapshot.

Wladdimiro et al., "A predictive approach for dynamic replication of operators", SBAC-PAD 2022, table I.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from penstock.metrics.graph import Floats, OnEdges, declared_on


@dataclass(frozen=True, slots=True)
class Declared:
    """What the topology says of an operator before anything is measured.

    `shares` has the events that reach the operator per event that a predecessor processed (the selectivity of
    the stream between them); a predecessor that is not in it has 1.
    """

    predecessors: tuple[str, ...]  # operators or sources
    execution_time_s: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    keyed: bool = False  # which replica gets an event follows from its key
    pulled: bool = False  # an event goes to a replica when that has room, not before


@dataclass(slots=True, kw_only=True)  # nobody changes one; but to freeze it takes most of the time of making it
class OperatorLoad:
    """What one operator received and did in an interval, and what waits for it at the end.

    >>> load = OperatorLoad(
    ...     name="split", received_by={"clean": 117}, processed=120, backlog=7, active=(0, 1), pool=8
    ... )
    >>> load.received, load.replicas
    (117, 2)
    """

    name: str
    received_by: Mapping[str, int]  # λ_i^p: a key for every predecessor, operator or source
    processed: int  # μ_i
    backlog: int  # q_i; for an operator that reads a source, with what waits outside of it
    active: tuple[int, ...]
    pool: int
    execution_time_s: float | None = None  # et_i
    processed_by: Mapping[int, int] = field(default_factory=dict)  # by replica
    queued_by: Mapping[int, int] = field(default_factory=dict)  # by replica: what waits in its own queue at the end
    busy_share: Mapping[int, float] = field(default_factory=dict)  # by replica: time in the function / wall time
    cpu_share: float = 0.0  # CPU seconds per second, all replicas together
    emitted: Mapping[str, int] = field(default_factory=dict)  # by output stream
    dropped: Mapping[str, int] = field(default_factory=dict)  # by cause
    declared_shares: Mapping[str, float] = field(default_factory=dict)  # by predecessor
    state_bytes: int = 0  # of all replicas together, about
    there: tuple[int, ...] | None = None  # the replicas of the pool, if they are known; else the first so many
    held: int = 0  # of the backlog: what senders keep until a replica has room
    outside: int = 0  # of the backlog: what waits in front of the sources that it reads
    keyed: bool = False  # which replica gets an event follows from its key
    pulled: bool = False  # an event goes to a replica when that has room, not before

    @property
    def booked(self) -> int:
        """Of the backlog: what waits in the replicas' own queues."""
        return sum(self.queued_by.values())

    @property
    def received(self) -> int:
        """λ_i^r: events that arrived, whoever sent them."""
        return sum(self.received_by.values())

    @property
    def replicas(self) -> int:
        """The number of active replicas."""
        return len(self.active)


class Loads(Mapping[str, OperatorLoad]):
    """The loads of all operators, in topological order, and one number of all of them at a time.

    What is asked of many operators is asked for here: loads that come from counters (`metrics.loads.CountedLoads`) have
    these numbers at hand, and make the load of an operator only when somebody looks at it.

    >>> split = OperatorLoad(name="split", received_by={}, processed=5, backlog=7, active=(0, 1), pool=8)
    >>> loads = Loads({"split": split})
    >>> loads.replicas, loads.backlog, loads["split"].pool
    ({'split': 2}, {'split': 7}, 8)
    """

    def __init__(self, loads: Mapping[str, OperatorLoad]) -> None:
        self._loads = loads

    def __len__(self) -> int:
        return len(self._loads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._loads)

    def __getitem__(self, name: str) -> OperatorLoad:
        return self._loads[name]

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[Loads], tuple[dict[str, OperatorLoad]]]:
        return Loads, (dict(self),)

    @cached_property
    def active(self) -> Mapping[str, tuple[int, ...]]:
        """The active replicas."""
        return {name: load.active for name, load in self._loads.items()}

    @cached_property
    def replicas(self) -> Mapping[str, int]:
        """How many replicas are active."""
        return {name: len(active) for name, active in self.active.items()}

    @cached_property
    def pool(self) -> Mapping[str, int]:
        """The pools."""
        return {name: load.pool for name, load in self._loads.items()}

    @cached_property
    def received(self) -> OnEdges:
        """λ_i^p, by operator and predecessor."""
        return OnEdges.of({name: load.received_by for name, load in self._loads.items()})

    @cached_property
    def declared(self) -> Floats:
        """The share that is declared for each edge, in their order."""
        return declared_on(self.received.graph, {name: load.declared_shares for name, load in self._loads.items()})

    @cached_property
    def processed(self) -> Mapping[str, int]:
        """μ_i."""
        return {name: load.processed for name, load in self._loads.items()}

    @cached_property
    def backlog(self) -> Mapping[str, int]:
        """q_i."""
        return {name: load.backlog for name, load in self._loads.items()}

    @cached_property
    def booked(self) -> Mapping[str, int]:
        """Of the backlogs: what waits in the replicas' own queues."""
        return {name: load.booked for name, load in self._loads.items()}

    @cached_property
    def execution_time_s(self) -> Mapping[str, float | None]:
        """et_i."""
        return {name: load.execution_time_s for name, load in self._loads.items()}

    @cached_property
    def state_bytes(self) -> Mapping[str, int]:
        """The size of the operators' state, about."""
        return {name: load.state_bytes for name, load in self._loads.items()}


@dataclass(frozen=True, slots=True)
class IntervalLatency:
    """End-to-end latency of the events that left in an interval; NaN where none did."""

    count: int = 0
    mean_ms: float = math.nan
    p50_ms: float = math.nan
    p99_ms: float = math.nan
    late: int | None = None  # how many took longer than the target, where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole topology over one interval; operators in topological order.

    `incomplete` names every operator and source whose numbers are missing, invalid or stale, with the reason.
    `interval_s` is the measured length, `td_s` the length of the interval that a plan is made for.
    """

    time_s: float
    interval_s: float
    td_s: float
    source_input: Mapping[str, int]  # λ_G, by source
    operators: Mapping[str, OperatorLoad]
    incomplete: Mapping[str, str] = field(default_factory=dict)
    source_output: float = 0.0  # source events that left the topology
    latency: IntervalLatency = IntervalLatency()
    jump: Mapping[str, float] = field(default_factory=dict)  # after a jump: rates since, by source, per second

    @property
    def loads(self) -> Loads:
        """The operators, with one number of all of them at a time."""
        return self.operators if isinstance(self.operators, Loads) else Loads(self.operators)

    @property
    def entered(self) -> int:
        """λ_G over all sources."""
        return sum(self.source_input.values())

    @property
    def replicas(self) -> int:
        """Active replicas of all operators."""
        return sum(self.loads.replicas.values())

    @property
    def backlog(self) -> int:
        """Events that wait for any operator."""
        return sum(self.loads.backlog.values())
