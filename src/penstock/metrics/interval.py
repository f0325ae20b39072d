"""From cumulative counters to the loads of an interval, with the reason for every number not to be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.shares import counted_edges, source_output
from penstock.metrics.snapshot import Declared, IntervalLatency, OperatorLoad, Snapshot

_NOTHING = ReplicaCounters()
_UNDECLARED = Declared(())


@dataclass(frozen=True, slots=True)
class IntervalRules:
    """How an interval should look: its length td, what the topology declares, and when numbers are too old.

    A measured length below td / `tolerance` or above td · `tolerance` is taken for a clock that jumped.
    """

    td_s: float
    declared: Mapping[str, Declared] = field(default_factory=dict)
    stale_after_s: float = 2.0
    tolerance: float = 2.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.td_s) and self.td_s > 0):
            raise InputError(f"interval: td must be above 0 s; got {self.td_s}")
        if not self.tolerance > 1:
            raise InputError(f"interval: tolerance must be above 1; got {self.tolerance}")


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
    sources = _sources(earlier, later, incomplete)
    loads: dict[str, OperatorLoad] = {}
    for name, now in _known_operators(earlier, later, rules).items():
        check = _Check()
        before = earlier.operators.get(name)
        loads[name] = _load(name, (before, now), _Frame(length_s, rules.declared.get(name, _UNDECLARED)), check)
        if reason := _absence(name, later, rules) or check.reason:
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


def _sources(earlier: RunCounters, later: RunCounters, incomplete: dict[str, str]) -> dict[str, int]:
    sources: dict[str, int] = {}
    for name in {**earlier.sources, **later.sources}:
        check = _Check()
        if name not in later.sources:
            check.doubt("no counter")
        before = earlier.sources.get(name, 0)
        sources[name] = int(check.growth("entered", before, later.sources.get(name, before)))
        if check.reason:
            incomplete[name] = check.reason
    return sources


def _known_operators(
    earlier: RunCounters, later: RunCounters, rules: IntervalRules
) -> dict[str, OperatorCounters]:
    """Every operator with counters, old ones where there are no new, in the declared or else the counted order."""
    if later.operators.keys() >= earlier.operators.keys():
        return dict(later.operators)
    order = {**dict.fromkeys(rules.declared), **dict.fromkeys(earlier.operators), **dict.fromkeys(later.operators)}
    known = {**earlier.operators, **later.operators}
    return {name: known[name] for name in order if name in known}


def _absence(name: str, later: RunCounters, rules: IntervalRules) -> str | None:
    counters = later.operators.get(name)
    if counters is None:
        return "no counters"
    if name in later.missing:
        return "a replica says nothing"
    if not counters.age_s <= rules.stale_after_s:
        return f"last heard of {counters.age_s:.3g} s ago; stale after {rules.stale_after_s:g} s"
    return None


def _load(
    name: str, counters: tuple[OperatorCounters | None, OperatorCounters], frame: _Frame, check: _Check
) -> OperatorLoad:
    before = counters[0].replicas if counters[0] else {}
    now = counters[1]
    received = dict.fromkeys(frame.declared.predecessors, 0)
    emitted: dict[str, int] = {}
    dropped: dict[str, int] = {}
    processed: dict[int, int] = {}
    busy_s: dict[int, float] = {}
    cpu_s = 0.0
    for replica, this in now.replicas.items():
        last = before.get(replica, _NOTHING)
        check.growths("received from", last.received, this.received, received)
        check.growths("emitted to", last.emitted, this.emitted, emitted)
        check.growths("dropped by", last.dropped, this.dropped, dropped)
        processed[replica] = int(check.growth("processed", last.processed, this.processed))
        busy_s[replica] = check.growth("busy time", last.busy_s, this.busy_s)
        cpu_s += check.growth("CPU time", last.cpu_s, this.cpu_s)
    if gone := before.keys() - now.replicas.keys():
        check.doubt(f"replica {min(gone)} says nothing")
    done, backlog = sum(processed.values()), int(check.valid("backlog", now.backlog))
    return OperatorLoad(
        name=name,
        received_by=received,
        processed=done,
        backlog=backlog,
        active=now.active,
        pool=now.pool,
        execution_time_s=sum(busy_s.values()) / done if done and not check.reason else None,
        processed_by=processed,
        busy_share={replica: spent_s / frame.length_s for replica, spent_s in busy_s.items()},
        cpu_share=cpu_s / frame.length_s,
        emitted=emitted,
        dropped=dropped,
        declared_shares=frame.declared.shares,
    )


def _output(later: RunCounters, loads: Mapping[str, OperatorLoad], rules: IntervalRules) -> float:
    processed = {name: float(load.processed) for name, load in loads.items()}
    output = source_output(later.sources, processed, counted_edges(later, rules.declared))
    return output if math.isfinite(output) else 0.0


def _latency(earlier: RunCounters, later: RunCounters) -> IntervalLatency:
    histogram = later.latency.since(earlier.latency)
    return IntervalLatency(
        histogram.count, histogram.mean_ms, histogram.percentile_ms(0.5), histogram.percentile_ms(0.99)
    )
