"""From cumulative counters to the loads of an interval, with the reason for every number not to be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.errors import InputError
from penstock.metrics.counters import OperatorCounters, RunCounters
from penstock.metrics.execution_time import ExecutionTimes
from penstock.metrics.loads import Around, CountedLoads
from penstock.metrics.shares import counted_edges, source_output
from penstock.metrics.snapshot import Declared, IntervalLatency, Snapshot
from penstock.metrics.table import CounterTable, Layout

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
    known = _known_operators(earlier, later, rules)
    table = later.table if known is later.operators else CounterTable.of(known)
    table.keep_layout(earlier.table)
    grown, doubts = table.growth(earlier.table)
    doubts = {**_no_backlog(table), **_silent(earlier.table.layout, table.layout), **doubts}
    absent = {**_absences(known, earlier, rules), **_absences(known, later, rules)}
    loads = CountedLoads(table, grown, Around(length_s, rules.declared, later.lag, earlier.table.held))
    doubted = {**doubts, **absent}
    if times is None:
        loads.set_times([None if math.isnan(one) else one for one in loads.measured_s(doubts).tolist()])
    else:
        measured_s = loads.measured_s(known if distrust else doubted)
        loads.set_times(times.learn_all(table.layout.names, measured_s, loads.done, length_s))
    incomplete |= {name: doubted[name] for name in known if name in doubted} if doubted else {}
    return Snapshot(
        time_s=later.time_s,
        interval_s=length_s,
        td_s=rules.td_s,
        source_input=sources,
        operators=loads,
        incomplete=dict.fromkeys((*sources, *loads), distrust) if distrust else incomplete,
        source_output=_output(later, loads, rules),
        latency=_latency(earlier, later, rules.target_ms),
    )


class _Check:
    """Reads a source's cumulative numbers and remembers the first reason not to trust them."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def doubt(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason

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
            elif not (age_s := end.source_age_s.get(name, 0.0)) <= rules.oldest_s:
                check.doubt(_too_old(age_s, end, rules))
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


def _no_backlog(table: CounterTable) -> dict[str, str]:
    """Operators whose backlog is no number of events."""
    backlog = np.array(table.now.backlog, np.float64)
    wrong = np.flatnonzero(~((backlog >= 0) & (backlog < math.inf))).tolist()
    return {table.layout.names[place]: f"backlog is {table.now.backlog[place]}" for place in wrong}


def _silent(before: Layout, now: Layout) -> dict[str, str]:
    """Operators of which a replica was there before, and says nothing now."""
    if before is now:
        return {}
    found: dict[str, str] = {}
    for name, one in now.operators.items():
        earlier = before.operators.get(name, one).replicas
        if earlier != one.replicas and (gone := {*earlier} - {*one.replicas}):
            found[name] = f"replica {min(gone)} says nothing"
    return found


def _absences(known: Mapping[str, object], counters: RunCounters, rules: IntervalRules) -> dict[str, str]:
    """Why operators' counters at one end of the interval do not count, where that is so.

    Stale counters at the start make an interval too full: what they missed would appear in it.
    """
    operators, oldest_s, absent = counters.operators, rules.oldest_s, {}
    fresh = bool(np.all(np.array(counters.table.now.age_s) <= oldest_s))
    if fresh and not counters.missing and operators.keys() >= known.keys():
        return {}
    for name in known:
        if name not in operators:
            absent[name] = f"no counters at {counters.time_s:.6g} s"
        elif name in counters.missing:
            absent[name] = f"a replica said nothing at {counters.time_s:.6g} s"
        elif not operators[name].age_s <= oldest_s:
            absent[name] = _too_old(operators[name].age_s, counters, rules)
    return absent


def _too_old(age_s: float, counters: RunCounters, rules: IntervalRules) -> str:
    return f"at {counters.time_s:.6g} s last heard of {age_s:.3g} s before; stale after {rules.oldest_s:g} s"


def _output(later: RunCounters, loads: CountedLoads, rules: IntervalRules) -> float:
    output = source_output(later.sources, loads.processed, counted_edges(later, rules.declared), rules.declared)
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
