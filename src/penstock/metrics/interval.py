"""From cumulative counters to the loads of an interval, with the reason for every number not to be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, RunCounters
from penstock.metrics.execution_time import ExecutionTimes
from penstock.metrics.shares import counted_edges, source_output
from penstock.metrics.snapshot import Declared, IntervalLatency, OperatorLoad, Snapshot
from penstock.metrics.table import BUSY_S, CPU_S, PROCESSED, CounterTable

_UNDECLARED = Declared(())
DEFAULT_TD_S = 1.0
LATE_S = 0.5  # that a step may be late at least


@dataclass(frozen=True, slots=True)
class IntervalRules:
    """How an interval should look: its length td, what the topology declares, and when numbers are too old.

    A measured length below td / `tolerance` or above td · `tolerance` is taken for a clock that jumped; half a second
    more than td never is, as a short interval is soon that much late. An interval that was cut short on purpose may be
    of any length. Without `stale_after_s` numbers are stale after half an interval (what is missing would look like a
    lull, and cause a scale-in), or 2 s if that is less, but not before a quarter of a second.
    """

    td_s: float
    declared: Mapping[str, Declared] = field(default_factory=dict)
    stale_after_s: float | None = None
    tolerance: float = 2.0
    target_ms: float | None = None  # an event that takes longer is late

    def __post_init__(self) -> None:
        if not (math.isfinite(self.td_s) and self.td_s > 0):
            raise InputError(f"interval: td must be above 0 s; got {self.td_s}")
        if not self.tolerance > 1:
            raise InputError(f"interval: tolerance must be above 1; got {self.tolerance}")

    @property
    def oldest_s(self) -> float:
        """The age from which on numbers are stale."""
        return min(2.0, max(0.25, self.td_s / 2)) if self.stale_after_s is None else self.stale_after_s

    def trusts(self, length_s: float, *, cut: bool = False) -> bool:
        """Whether an interval may be so long; `cut`: it was to end early."""
        shortest_s = 0.0 if cut else self.td_s / self.tolerance
        return length_s > 0 and shortest_s <= length_s <= max(self.td_s * self.tolerance, self.td_s + LATE_S)


def difference(
    earlier: RunCounters,
    later: RunCounters,
    rules: IntervalRules,
    *,
    cut: bool = False,
    doubt: str | None = None,
    times: ExecutionTimes | None = None,
) -> Snapshot:
    """The interval between two states of a run's counters.

    `cut`: it ended before its time on purpose. `doubt`: why nothing of it is to be trusted, if so. With `times` these
    learn from it, and the loads have their estimates.

    >>> from penstock.metrics.counters import ReplicaCounters
    >>> one = {"clean": OperatorCounters({0: ReplicaCounters({"in": 10}, 10, busy_s=0.5)}, (0,), 4, 0)}
    >>> two = {"clean": OperatorCounters({0: ReplicaCounters({"in": 30}, 25, busy_s=0.8)}, (0,), 4, 5)}
    >>> snapshot = difference(RunCounters(0, {"in": 10}, one), RunCounters(1, {"in": 30}, two), IntervalRules(1.0))
    >>> load = snapshot.operators["clean"]
    >>> snapshot.source_input, load.received, load.processed, load.backlog, round(load.execution_time_s, 3)
    ({'in': 20}, 20, 15, 5, 0.02)
    """
    length_s, distrust = _length(earlier.time_s, later.time_s, rules, cut)
    distrust = doubt or distrust
    incomplete: dict[str, str] = {}
    sources = _sources(earlier, later, rules, incomplete)
    loads: dict[str, OperatorLoad] = {}
    lag = later.lag
    known = _known_operators(earlier, later, rules)
    growth = _Growth(earlier.table, later.table if known is later.operators else CounterTable.of(known), length_s)
    for name, now in known.items():
        check = _Check(growth.doubts.get(name) or growth.silent(name))
        before = earlier.operators.get(name)
        declared = rules.declared.get(name, _UNDECLARED)
        outside = sum(max(0, lag.get(source, 0)) for source in declared.predecessors) if lag else 0
        absent = _absence(name, later, rules) or _absence(name, earlier, rules)
        frame = _Frame(growth, length_s, declared, outside, times, bool(distrust or absent))
        loads[name] = _load(name, (before, now), frame, check)
        if reason := absent or check.reason:
            incomplete[name] = reason
    if distrust:
        incomplete = dict.fromkeys((*sources, *loads), distrust)
    return Snapshot(
        time_s=later.time_s,
        interval_s=length_s,
        td_s=rules.td_s,
        source_input=sources,
        operators=loads,
        incomplete=incomplete,
        source_output=_output(later, loads, rules),
        latency=_latency(earlier, later, rules.target_ms),
    )


@dataclass(slots=True)
class _Frame:
    """What an operator's numbers are read against."""

    growth: _Growth
    length_s: float
    declared: Declared
    outside: int = 0  # events that wait in front of its sources, and are to come to it first
    times: ExecutionTimes | None = None
    doubted: bool = False

    def estimated(self, name: str, measured_s: float | None, done: int, check: _Check) -> float | None:
        """The execution time: as measured in the interval, or the estimate where that is kept."""
        if self.times is None:
            return measured_s
        trusted_s = 0.0 if self.doubted or check.reason or measured_s is None else measured_s
        return self.times.learn(name, trusted_s * done, done, self.length_s)


class _Check:
    """Reads cumulative numbers and remembers the first that cannot be trusted."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def doubt(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason

    def valid(self, what: str, value: float) -> float:
        """The value, or 0 where it is negative or no number."""
        if 0 <= value < math.inf:
            return value
        self.doubt(f"{what} is {value}")
        return 0

    def growth(self, what: str, before: float, now: float) -> float:
        """now − before, or 0 where the counter is invalid or went back."""
        if 0 <= before <= now < math.inf:
            return now - before
        if 0 <= now < before < math.inf:
            self.doubt(f"{what} went back from {before} to {now}: work was done again")
        else:
            self.doubt(f"{what} is {now} after {before}")
        return 0


def _length(before_s: float, now_s: float, rules: IntervalRules, cut: bool) -> tuple[float, str | None]:
    """The interval's length, or td and a reason where the clock cannot be trusted."""
    length_s = now_s - before_s
    if rules.trusts(length_s, cut=cut):
        return length_s, None
    reason = f"interval of {length_s:.6g} s where td is {rules.td_s:g} s: the clock jumped, or intervals were missed"
    return rules.td_s, reason


def _sources(
    earlier: RunCounters, later: RunCounters, rules: IntervalRules, incomplete: dict[str, str]
) -> dict[str, int]:
    sources: dict[str, int] = {}
    for name in {**earlier.sources, **later.sources}:
        check = _Check()
        if name not in later.sources or name not in earlier.sources:
            check.doubt("no counter at both ends of the interval")
        for end in (later, earlier):
            if name in end.missing:
                check.doubt("a replica says nothing")
            elif stale := _stale(end.source_age_s.get(name, 0.0), end, rules):
                check.doubt(stale)
        before = earlier.sources.get(name, 0)
        sources[name] = int(check.growth("entered", before, later.sources.get(name, before)))
        if check.reason:
            incomplete[name] = check.reason
    return sources


def _known_operators(earlier: RunCounters, later: RunCounters, rules: IntervalRules) -> Mapping[str, OperatorCounters]:
    """Every operator with counters, old ones where there are no new, in the declared or else the counted order."""
    if later.operators.keys() >= earlier.operators.keys():
        return later.operators
    order = {**dict.fromkeys(rules.declared), **dict.fromkeys(earlier.operators), **dict.fromkeys(later.operators)}
    known = {**earlier.operators, **later.operators}
    return {name: known[name] for name in order if name in known}


def _absence(name: str, counters: RunCounters, rules: IntervalRules) -> str | None:
    """Why the operator's counters at one end of the interval do not count, if so.

    Stale counters at the start make an interval too full: what they missed would appear in it.
    """
    operator = counters.operators.get(name)
    if operator is None:
        return f"no counters at {counters.time_s:.6g} s"
    if name in counters.missing:
        return f"a replica said nothing at {counters.time_s:.6g} s"
    return _stale(operator.age_s, counters, rules)


def _stale(age_s: float, counters: RunCounters, rules: IntervalRules) -> str | None:
    if age_s <= rules.oldest_s:
        return None
    return f"at {counters.time_s:.6g} s last heard of {age_s:.3g} s before; stale after {rules.oldest_s:g} s"


class _Growth:
    """What the replicas of all operators did in the interval, read operator by operator."""

    def __init__(self, before: CounterTable, now: CounterTable, length_s: float) -> None:
        grown, self.doubts = now.growth(before)
        self._totals, self._layout, self._before = now.totals(grown), now.layout, before.layout
        self._processed: list[int] = now.of_replicas(grown, PROCESSED).astype(np.int64).tolist()
        self._queued: list[int] = np.where(now.queued > 0, now.queued, 0).astype(np.int64).tolist()
        self._busy: list[float] = (now.of_replicas(grown, BUSY_S) / length_s).tolist()
        self._state_bytes = dict(zip(now.layout.operators, now.state_bytes, strict=True))

    def fill(self, load: OperatorLoad, length_s: float) -> float:
        """Put an operator's numbers into its load; returns how long its replicas worked, together."""
        columns, totals = self._layout.operators[load.name], self._totals[load.name]
        rows, counts = slice(*self._layout.rows[load.name]), iter(totals)
        load.received_by = {**load.received_by, **_counts(columns.senders, counts)}
        load.emitted, load.dropped = _counts(columns.streams, counts), _counts(columns.causes, counts)
        load.processed, load.cpu_share = int(totals[PROCESSED]), totals[CPU_S] / length_s
        load.processed_by = dict(zip(columns.replicas, self._processed[rows], strict=True))
        load.queued_by = dict(zip(columns.replicas, self._queued[rows], strict=True))
        load.busy_share = dict(zip(columns.replicas, self._busy[rows], strict=True))
        load.state_bytes = max(0, self._state_bytes[load.name])
        return totals[BUSY_S]

    def silent(self, name: str) -> str | None:
        """Which replica was there before, and says nothing now, if there is one."""
        before, now = self._before.operators.get(name), self._layout.operators[name]
        if before is None or before.replicas == now.replicas or not (gone := {*before.replicas} - {*now.replicas}):
            return None
        return f"replica {min(gone)} says nothing"


def _counts(names: Sequence[str], counts: Iterator[float]) -> dict[str, int]:
    """The next counts, by these names."""
    return {name: int(next(counts)) for name in names}


def _load(
    name: str, counters: tuple[OperatorCounters | None, OperatorCounters], frame: _Frame, check: _Check
) -> OperatorLoad:
    before, now = counters
    load = OperatorLoad(
        name=name,
        received_by=dict.fromkeys(frame.declared.predecessors, 0),
        processed=0,
        backlog=int(check.valid("backlog", now.backlog)) + frame.outside,
        active=now.active,
        pool=now.pool,
        there=now.there,
        declared_shares=frame.declared.shares,
        held=now.held,
        outside=frame.outside,
        keyed=frame.declared.keyed,
    )
    busy_s = frame.growth.fill(load, frame.length_s)
    if now.held_by or (before and before.held_by):
        load.received_by = _with_held(load.received_by, before.held_by if before else {}, now.held_by)
    measured_s = busy_s / load.processed if load.processed and not check.reason else None
    load.execution_time_s = frame.estimated(name, measured_s, load.processed, check)
    return load


def _with_held(received: Mapping[str, int], before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """What was sent in the interval and is held came, too; what was held before came before."""
    grown = {sender: now.get(sender, 0) - before.get(sender, 0) for sender in {**before, **now}}
    return {**received, **{sender: max(0, received.get(sender, 0) + more) for sender, more in grown.items()}}


def _output(later: RunCounters, loads: Mapping[str, OperatorLoad], rules: IntervalRules) -> float:
    processed = {name: float(load.processed) for name, load in loads.items()}
    output = source_output(later.sources, processed, counted_edges(later, rules.declared), rules.declared)
    return output if math.isfinite(output) else 0.0


def _latency(earlier: RunCounters, later: RunCounters, target_ms: float | None) -> IntervalLatency:
    histogram = later.table.latency.since(earlier.table.latency)
    late = None if target_ms is None else histogram.count_above(target_ms)
    return IntervalLatency(
        histogram.count, histogram.mean_ms, histogram.percentile_ms(0.5), histogram.percentile_ms(0.99), late
    )


def stale_after_s(td_s: float) -> float:
    """When what replicas say every half second, and when they are asked, is too old: 2.5 intervals, or a second.

    Long intervals bear half of their length.

    >>> stale_after_s(0.2), stale_after_s(1.0), stale_after_s(5.0)
    (0.5, 1.0, 2.5)
    """
    return max(min(1.0, 2.5 * td_s), td_s / 2)
