"""One interval's decisions explained: what was seen and expected, what bound them, and what else they might have been.

What doing nothing would have come to is played on in the simulator, from the state that the store has of the interval's
end. When the store knows what came next, that is what enters there; else it is what was expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import sqlalchemy as sa

from penstock.errors import InputError
from penstock.metrics import rows, schema
from penstock.metrics.paper import replicas_for
from penstock.metrics.store import Store
from penstock.report.explain_queries import Player, player_of, promise_of, triggers_of
from penstock.simulator.what_if import Outcome, Standing, StateAtHand

Row = TypeVar("Row")

LOOKED_BACK = 100  # intervals, for forecasts that were made of the next
AHEAD, AHEAD_S = 3, 10.0  # at least so many intervals are played on, and so many seconds
SHARES_OVER = 10  # intervals from which shares are taken
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
    past = _Past(store, run, seen, number)
    promise = promise_of(store, run)
    state = past.state(promise.target_ms / 1000)
    explanation = Explanation(
        run=run,
        interval=seen[number],
        start_s=start_s,
        late=past.late(store),
        promise=promise,
        expected=tuple(past.expected()),
        operators=past.explained(state),
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


class _Past:
    """What the store has of a run around one interval."""

    def __init__(self, store: Store, run: rows.RunRow, seen: Mapping[int, rows.IntervalRow], number: int) -> None:
        self._run = run
        self._number = number
        self._now = seen[number]
        self._ahead_steps = max(AHEAD, math.ceil(AHEAD_S / run.td_s))
        self._next = [seen[one] for one in sorted(seen) if one > number][: self._ahead_steps]
        self._recent = [seen[one] for one in sorted(seen) if number - SHARES_OVER < one <= number]
        last = self._next[0].number if self._next else number
        self._operators = _rows(store, rows.OperatorRow, schema.operators, run.run, (number - SHARES_OVER + 1, last))
        decisions = _rows(store, rows.DecisionRow, schema.decisions, run.run, (number, number))
        self._decisions = {row.operator: row for row in decisions}
        self._forecasts = _rows(store, rows.ForecastRow, schema.forecasts, run.run, (number - LOOKED_BACK, number))

    @property
    def known(self) -> bool:
        """Whether what came next is."""
        return bool(self._next)

    def late(self, store: Store) -> float | None:
        """The share of events that were late in the interval."""
        if not store.has(schema.lateness) or not self._now.latency_count:
            return None
        found = _rows(store, rows.LateRow, schema.lateness, self._run.run, (self._number, self._number))
        return found[0].late / self._now.latency_count if found else None

    def expected(self) -> Iterator[Expected]:
        """Of every source with a forecast."""
        due = self._number + 1
        for row in self._forecasts:
            if row.number == self._number and row.step == 1 and row.series in self._now.source_input:
                of_it = [one for one in self._forecasts if one.series == row.series]
                rates = [one.rate for one in of_it if one.number + one.step == due]
                known = next((_rates(one).get(row.series) for one in self._next if one.number == due), None)
                yield Expected(
                    source=row.series,
                    forecaster=row.forecaster,
                    rate=row.rate,
                    low=min(rates),
                    high=max(rates),
                    last=_rates(self._now)[row.series],
                    came=known,
                )

    def explained(self, state: StateAtHand) -> tuple[Explained, ...]:
        """Every operator's decision, with what it turned out to need."""
        here = {row.operator: row for row in self._operators if row.number == self._number}
        after = {row.operator: row for row in self._operators if self._next and row.number == self._next[0].number}
        found = []
        for name, row in here.items():
            if name not in self._decisions:
                continue
            needed, time_s = None, state.operators[name].execution_time_s
            if name in after and time_s is not None:
                needed = replicas_for(after[name].received / max(self._next[0].interval_s, 1e-9) * time_s)
            found.append(Explained(seen=row, decision=self._decisions[name], needed=needed))
        return tuple(found)

    def state(self, target_s: float) -> StateAtHand:
        """The run as it stood, and what came next, or was expected to."""
        here = [row for row in self._operators if row.number == self._number]
        standings = {row.operator: self._standing(row) for row in here}
        grouping = "pull" if str(self._run.settings.get("grouping")).startswith("pull") else "shuffle"
        return StateAtHand(standings, self._ahead(), self._run.td_s, target_s, grouping)

    def _standing(self, row: rows.OperatorRow) -> Standing:
        return Standing(
            execution_time_s=row.execution_time_s,
            pool=row.pool,
            replicas=max(1, row.replicas),
            backlog=row.backlog,
            shares={sender: self._share(row.operator, sender) for sender in row.received_by},
        )

    def _share(self, operator: str, sender: str) -> float:
        """What the operator got of each event of the sender, lately; 1 where the sender did nothing."""
        got = sum(row.received_by.get(sender, 0) for row in self._of(operator))
        sent = sum(row.processed for row in self._of(sender)) or sum(
            one.source_input.get(sender, 0) for one in self._recent
        )
        return got / sent if sent else 1.0

    def _of(self, operator: str) -> list[rows.OperatorRow]:
        return [row for row in self._operators if row.operator == operator and row.number <= self._number]

    def _ahead(self) -> dict[str, tuple[float, ...]]:
        now = _rates(self._now)
        if self._next:
            ahead = [_rates(row) for row in self._next]
            return {name: tuple(one.get(name, 0.0) for one in ahead) for name in {**now, **ahead[0]}}
        found = dict[str, tuple[float, ...]]()
        for name, rate in now.items():
            made = [row for row in self._forecasts if (row.number, row.series) == (self._number, name)]
            steps = sorted((row.step, max(0.0, row.rate)) for row in made)
            rates = [expected for _, expected in steps][: self._ahead_steps] or [rate]
            found[name] = (*rates, *[rates[-1]] * (self._ahead_steps - len(rates)))
        return found


def _rows(store: Store, kind: Callable[..., Row], table: sa.Table, run: str, numbers: tuple[int, int]) -> list[Row]:
    """The rows of these intervals, from the first to the last."""
    query = sa.select(table).where(table.c.run == run, table.c.number.between(*numbers)).order_by(table.c.number)
    found = [dict(row._mapping) for row in store.select(query)]
    return [kind(**{name: value for name, value in row.items() if name != "run"}) for row in found]


def _rates(row: rows.IntervalRow) -> dict[str, float]:
    return {name: count / max(row.interval_s, 1e-9) for name, count in row.source_input.items()}


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
