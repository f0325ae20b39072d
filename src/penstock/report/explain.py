"""One interval's decisions explained: what was seen and expected, what bound them, and what else they might have been.

What doing nothing would have come to is played on in the simulator. That begins some intervals earlier, when little
waited, with what came and the replicas that were active: so what waits has its age. When the store knows what came
next, that is what enters there; else it is what was expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.errors import InputError
from penstock.metrics import rows
from penstock.metrics.store import Store
from penstock.report.explain_past import Past
from penstock.report.explain_queries import Player, player_of, promise_of, triggers_of
from penstock.simulator.what_if import Outcome, StateAtHand

DECIDED, NOTHING, RUNNER_UP = "as decided", "doing nothing", "runner-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was expected of a source in the next interval, and what is known of it since; rates per second."""

    source: str
    forecaster: str
    rate: float
    low: float  # over all forecasts that were made for that interval
    high: float
    last: float  # what had come in the interval that ended: the naive forecast
    came: float | None = None

    @property
    def error(self) -> float | None:
        """How far off, by what came."""
        return abs(self.rate - self.came) / self.came if self.came else None

    @property
    def naive_error(self) -> float | None:
        """How far off the last rate was."""
        return abs(self.last - self.came) / self.came if self.came else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One operator's decision."""

    seen: rows.OperatorRow
    decision: rows.DecisionRow
    needed: int | None = None  # by what came next, once that is known

    @property
    def changed(self) -> bool:
        """Whether it was to have other replicas."""
        return self.decision.before != self.decision.after

    @property
    def wanted(self) -> str:
        """What the policy said."""
        return clauses(self.decision.reason)[0]

    @property
    def limits(self) -> tuple[str, ...]:
        """What guards said to it, from the inside out: the last was binding."""
        return clauses(self.decision.reason)[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All decisions at the end of one interval."""

    run: rows.RunRow
    interval: rows.IntervalRow
    start_s: float  # of the run
    late: float | None
    promise: rows.PromiseRow
    expected: tuple[Expected, ...] = ()
    operators: tuple[Explained, ...] = ()
    known: bool = False  # whether what came next is known
    ahead_s: float = 0.0  # what is played on
    in_batches: bool = False  # it is, as the queries of a keeper are
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)  # of what was decided, of nothing, of the runner-up
    runner_up: tuple[str, int] | None = None  # an operator, and how many replicas of it

    @property
    def changes(self) -> list[Explained]:
        """The decisions that changed something."""
        return [one for one in self.operators if one.changed]


def clauses(reason: str) -> tuple[str, ...]:
    """What a policy said, and what each guard added; semicolons in brackets are the policy's own.

    >>> clauses("expects 9 (5 new; 4 wait): needs 3; the pool has 2")
    ('expects 9 (5 new; 4 wait): needs 3', 'the pool has 2')
    """
    found, depth = [""], 0
    for part in re.split(r"([()]|; )", reason):
        depth += (part == "(") - (part == ")")
        if part == "; " and depth <= 0:
            found.append("")
        else:
            found[-1] += part
    return tuple(found)


def explain(
    store: Store, name: str | None = None, *, interval: int | None = None, at_s: float | None = None
) -> Explanation:
    """The decisions at the end of an interval, by its number or by a time in seconds since the run began."""
    run = store.run(name)
    seen = {row.number: row for row in store.intervals(run.run)}
    if not seen:
        raise InputError(f"run {run.run!r}: must have an interval; has none yet")
    start_s = min(row.time_s - row.interval_s for row in seen.values())
    number = _number(run.run, seen, start_s, interval, at_s)
    past = Past(store, run, seen, number)
    promise = promise_of(store, run)
    state = past.state(promise.target_ms / 1000, in_batches=triggers_of(run) is not None)
    explanation = Explanation(
        run=run,
        interval=seen[number],
        start_s=start_s,
        late=past.late(store),
        promise=promise,
        expected=tuple(Expected(**one) for one in past.expected()),
        operators=tuple(Explained(**one) for one in past.explained(state)),
        known=past.known,
        ahead_s=state.seconds,
        in_batches=triggers_of(run) is not None,
    )
    return _with_outcomes(explanation, state, player_of(run))


def _number(
    run: str, seen: Mapping[int, rows.IntervalRow], start_s: float, interval: int | None, at_s: float | None
) -> int:
    if (interval is None) == (at_s is None):
        raise InputError("give one of --interval N and --at SECONDS")
    if interval is not None:
        if interval not in seen:
            raise InputError(f"run {run!r}: intervals are {min(seen)} to {max(seen)}; got {interval}")
        return interval
    last_s = max(row.time_s for row in seen.values()) - start_s
    ends = [number for number, row in seen.items() if row.time_s - start_s >= (at_s or 0.0) - 1e-9]
    if not ends or (at_s or 0.0) < 0:
        raise InputError(f"run {run!r}: lasts from 0 to {last_s:g} s; got {at_s:g} s")
    return min(ends)


def _with_outcomes(explanation: Explanation, state: StateAtHand, played_on: Player) -> Explanation:
    """What was decided, nothing, and the best that is one replica off, each played on."""
    if not state.seconds or not explanation.operators:
        return explanation
    before = {one.seen.operator: one.seen.replicas for one in explanation.operators}
    after = {one.seen.operator: max(1, one.decision.after) for one in explanation.operators}
    outcomes = {DECIDED: played_on(state, after)}
    if after != before:
        outcomes[NOTHING] = played_on(state, before)
    others = {
        (name, count): played_on(state, {**after, name: count})
        for name in [one.seen.operator for one in explanation.changes][:4] or list(after)[:2]
        for count in (after[name] - 1, after[name] + 1)
        if 1 <= count <= state.operators[name].pool and count != before[name]
    }
    promised = explanation.promise.late if math.isfinite(explanation.promise.late) else 0.0
    best = min(others, key=lambda one: _rank(others[one], promised), default=None)
    if best is not None:
        outcomes[RUNNER_UP] = others[best]
    return replace(explanation, outcomes=outcomes, runner_up=best)


def _rank(outcome: Outcome, promised: float) -> tuple[float, float]:
    """Those that keep the promise first, by what they cost; then the others by how late they are."""
    return max(0.0, outcome.late_share - promised), outcome.replica_seconds
