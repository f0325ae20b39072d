"""From cumulative counters to the loads of an interval, with the reason for every number not to be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.latency import LatencyHistogram, merged
from penstock.metrics.shares import counted_edges, source_output
from penstock.metrics.snapshot import Declared, IntervalLatency, OperatorLoad, Snapshot

_NOTHING = ReplicaCounters()
_UNDECLARED = Declared(())


@dataclass(frozen=True, slots=True)
class IntervalRules:
    """How an interval should look: its length td, what the topology declares, and when numbers are too old.

    A measured length below td / `tolerance` or above td · `tolerance` is taken for a clock that jumped. Without
    `stale_after_s` numbers are stale after half an interval (what is missing would look like a lull, and cause a
    scale-in), or 2 s if that is less.
    """

    td_s: float
    declared: Mapping[str, Declared] = field(default_factory=dict)
    stale_after_s: float | None = None
    tolerance: float = 2.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.td_s) and self.td_s > 0):
            raise InputError(f"interval: td must be above 0 s; got {self.td_s}")
        if not self.tolerance > 1:
            raise InputError(f"interval: tolerance must be above 1; got {self.tolerance}")

    @property
    def oldest_s(self) -> float:
        """The age from which on numbers are stale."""
        return min(2.0, self.td_s / 2) if self.stale_after_s is None else self.stale_after_s


def difference(earlier: RunCounters, later: RunCounters, rules: IntervalRules) -> Snapshot:
    """The interval between two states of a run's counters.

    >>> one = {"clean": OperatorCounters({0: ReplicaCounters({"in": 10}, 10, busy_s=0.5)}, (0,), 4, 0)}
    >>> two = {"clean": OperatorCounters({0: ReplicaCounters({"in": 30}, 25, busy_s=0.8)}, (0,), 4, 5)}
    >>> snapshot = difference(RunCounters(0, {"in": 10}, one), RunCounters(1, {"in": 30}, two), IntervalRules(1.0))
    >>> load = snapshot.operators["clean"]
    >>> snapshot.source_input, load.received, load.processed, load.backlog, round(load.execution_time_s, 3)
    ({'in': 20}, 20, 15, 5, 0.02)
    """
    length_s, distrust = _length(earlier.time_s, later.time_s, rules)
    incomplete: dict[str, str] = {}
    sources = _sources(earlier, later, rules, incomplete)
    loads: dict[str, OperatorLoad] = {}
    for name, now in _known_operators(earlier, later, rules).items():
        check = _Check()
        before = earlier.operators.get(name)
        declared = rules.declared.get(name, _UNDECLARED)
        outside = sum(max(0, later.lag.get(source, 0)) for source in declared.predecessors)
        loads[name] = _load(name, (before, now), _Frame(length_s, declared, outside), check)
        if reason := _absence(name, later, rules) or _absence(name, earlier, rules) or check.reason:
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
        latency=_latency(earlier, later),
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """What an operator's numbers are read against."""

    length_s: float
    declared: Declared
    outside: int = 0  # events that wait in front of its sources, and are to come to it first


class _Check:
    """Reads cumulative numbers and remembers the first that cannot be trusted."""

    def __init__(self) -> None:
        self.reason: str | None = None

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

    def growths(self, what: str, before: Mapping[str, int], now: Mapping[str, int], into: dict[str, int]) -> None:
        """Add the growth of each named counter to `into`."""
        for name, count in now.items():
            into[name] = into.get(name, 0) + int(self.growth(f"{what} {name}", before.get(name, 0), count))


def _length(before_s: float, now_s: float, rules: IntervalRules) -> tuple[float, str | None]:
    """The interval's length, or td and a reason where the clock cannot be trusted."""
    length_s = now_s - before_s
    if rules.td_s / rules.tolerance <= length_s <= rules.td_s * rules.tolerance:
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


def _known_operators(earlier: RunCounters, later: RunCounters, rules: IntervalRules) -> dict[str, OperatorCounters]:
    """Every operator with counters, old ones where there are no new, in the declared or else the counted order."""
    if later.operators.keys() >= earlier.operators.keys():
        return dict(later.operators)
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


@dataclass(slots=True)
class _Growth:
    """What an operator's replicas did in the interval."""

    received: dict[str, int]
    emitted: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    processed: dict[int, int] = field(default_factory=dict)
    busy_s: dict[int, float] = field(default_factory=dict)
    queued: dict[int, int] = field(default_factory=dict)
    cpu_s: float = 0.0

    def add(self, replica: int, last: ReplicaCounters, this: ReplicaCounters, check: _Check) -> None:
        self.queued[replica] = max(this.queued, 0)
        if this == last and this.processed >= 0 and this.busy_s >= 0:  # most of a large pool is inactive
            self.processed[replica], self.busy_s[replica] = 0, 0.0
            return
        check.growths("received from", last.received, this.received, self.received)
        check.growths("emitted to", last.emitted, this.emitted, self.emitted)
        check.growths("dropped by", last.dropped, this.dropped, self.dropped)
        self.processed[replica] = int(check.growth("processed", last.processed, this.processed))
        self.busy_s[replica] = check.growth("busy time", last.busy_s, this.busy_s)
        self.cpu_s += check.growth("CPU time", last.cpu_s, this.cpu_s)


def _load(
    name: str, counters: tuple[OperatorCounters | None, OperatorCounters], frame: _Frame, check: _Check
) -> OperatorLoad:
    before, now = counters[0].replicas if counters[0] else {}, counters[1]
    growth = _Growth(dict.fromkeys(frame.declared.predecessors, 0))
    for replica, this in now.replicas.items():
        growth.add(replica, before.get(replica, _NOTHING), this, check)
    if gone := before.keys() - now.replicas.keys():
        check.doubt(f"replica {min(gone)} says nothing")
    backlog = int(check.valid("backlog", now.backlog)) + frame.outside
    done, busy_s = sum(growth.processed.values()), sum(growth.busy_s.values())
    return OperatorLoad(
        name=name,
        received_by=growth.received,
        processed=done,
        backlog=backlog,
        active=now.active,
        pool=now.pool,
        there=now.there,
        execution_time_s=busy_s / done if done and not check.reason else None,
        processed_by=growth.processed,
        queued_by=growth.queued,
        busy_share={replica: spent_s / frame.length_s for replica, spent_s in growth.busy_s.items()},
        cpu_share=growth.cpu_s / frame.length_s,
        emitted=growth.emitted,
        dropped=growth.dropped,
        declared_shares=frame.declared.shares,
        state_bytes=max(0, sum(this.state_bytes for this in now.replicas.values())),
    )


def _output(later: RunCounters, loads: Mapping[str, OperatorLoad], rules: IntervalRules) -> float:
    processed = {name: float(load.processed) for name, load in loads.items()}
    output = source_output(later.sources, processed, counted_edges(later, rules.declared), rules.declared)
    return output if math.isfinite(output) else 0.0


def _latency(earlier: RunCounters, later: RunCounters) -> IntervalLatency:
    histogram = _histogram(later).since(_histogram(earlier))
    return IntervalLatency(
        histogram.count, histogram.mean_ms, histogram.percentile_ms(0.5), histogram.percentile_ms(0.99)
    )


def _histogram(counters: RunCounters) -> LatencyHistogram:
    replicas = (replica for operator in counters.operators.values() for replica in operator.replicas.values())
    return merged(replica.latency for replica in replicas if replica.latency.count)
