"""What the store has of a run around one interval, for an explanation: what came before it, and what came next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from penstock.metrics import rows, schema
from penstock.metrics.paper import replicas_for
from penstock.metrics.store import Store
from penstock.simulator.what_if import Earlier, Standing, StateAtHand

Row = TypeVar("Row")

LOOKED_BACK = 100  # intervals, for forecasts that were made of the next
AHEAD, AHEAD_S = 3, 10.0  # at least so many intervals are played on, and so many seconds
SHARES_OVER = 10  # intervals from which shares are taken
PAST = 100  # intervals, among which is the one where it begins


class Past:
    """One interval of a run, those before it, and those after it as far as they are known."""

    def __init__(self, store: Store, run: rows.RunRow, seen: Mapping[int, rows.IntervalRow], number: int) -> None:
        self._run = run
        self._number = number
        self._now = seen[number]
        self._ahead_steps = max(AHEAD, math.ceil(AHEAD_S / run.td_s))
        end_s = self._now.time_s + (self._ahead_steps + 0.5) * run.td_s
        self._next = [seen[one] for one in sorted(seen) if one > number and seen[one].time_s < end_s]
        self._before = [seen[one] for one in sorted(seen) if number - PAST < one <= number]
        last = self._next[0].number if self._next else number
        self._operators = _rows(store, rows.OperatorRow, schema.operators, run.run, (number - PAST + 1, last))
        self._by_number: dict[int, dict[str, rows.OperatorRow]] = {}
        for one in self._operators:
            self._by_number.setdefault(one.number, {})[one.operator] = one
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

    def expected(self) -> Iterator[dict[str, Any]]:
        """Of every source with a forecast, what was expected of it and what came."""
        due = self._number + 1
        for row in self._forecasts:
            if row.number == self._number and row.step == 1 and row.series in self._now.source_input:
                of_it = [one for one in self._forecasts if one.series == row.series]
                rates = [one.rate for one in of_it if one.number + one.step == due]
                yield {
                    "source": row.series,
                    "forecaster": row.forecaster,
                    "rate": row.rate,
                    "low": min(rates),
                    "high": max(rates),
                    "last": _rates(self._now)[row.series],
                    "came": next((_rates(one).get(row.series) for one in self._next if one.number == due), None),
                }

    def explained(self, state: StateAtHand) -> Iterator[dict[str, Any]]:
        """Every operator's decision, with what it turned out to need."""
        after = self._of(self._next[0].number) if self._next else {}
        for name, row in self._of(self._number).items():
            if name not in self._decisions:
                continue
            needed, time_s = None, state.operators[name].execution_time_s
            if name in after and time_s is not None:
                needed = replicas_for(after[name].received / max(self._next[0].interval_s, 1e-9) * time_s)
            yield {"seen": row, "decision": self._decisions[name], "needed": needed}

    def state(self, target_s: float, *, in_batches: bool = False) -> StateAtHand:
        """The run as it stood, what came before and what came next, or was expected to.

        Batches leave nothing in queues of replicas: there what came before is in the backlog.
        """
        begin = self._now if in_batches else self._beginning()
        standings = {name: self._standing(row) for name, row in self._of(self._number).items()}
        grouping = "pull" if str(self._run.settings.get("grouping")).startswith("pull") else "shuffle"
        past = tuple(self._earlier(begin, list(standings)))
        return StateAtHand(standings, self._ahead(), self._run.td_s, target_s, grouping, past)

    def _beginning(self) -> rows.IntervalRow:
        """The interval at whose end least waited that is still there, as nobody knows its age; then least at all."""
        since: Counter[str] = Counter()  # processed, by operator
        best, least = self._now, (math.inf, math.inf)
        for row in reversed(self._before):
            then = self._of(row.number)
            there = sum(max(0, one.backlog - since[name]) for name, one in then.items())
            if (there, row.backlog) < least:
                best, least = row, (there, row.backlog)
            since.update({name: one.processed for name, one in then.items()})
        return best

    def _of(self, number: int) -> dict[str, rows.OperatorRow]:
        """The operators in one interval."""
        return self._by_number.get(number, {})

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
        lately = [row for row in self._operators if self._number - SHARES_OVER < row.number <= self._number]
        got = sum(row.received_by.get(sender, 0) for row in lately if row.operator == operator)
        sent = sum(row.processed for row in lately if row.operator == sender) or sum(
            one.source_input.get(sender, 0) for one in self._before[-SHARES_OVER:]
        )
        return got / sent if sent else 1.0

    def _earlier(self, begin: rows.IntervalRow, operators: list[str]) -> Iterator[Earlier]:
        """What came after one interval up to now, in steps of td."""
        td_s, end_s = self._run.td_s, self._now.time_s
        steps = round((end_s - begin.time_s) / td_s)
        edges_s = end_s - td_s * np.arange(steps, -1, -1)
        rates = {name: _between(self._before, name, edges_s) for name in self._now.source_input}
        for place, edge_s in enumerate(edges_s[:-1]):
            during = self._of(next(row.number for row in self._before if row.time_s >= edge_s + td_s / 2))
            before = self._of(next(row.number for row in self._before if row.time_s >= edge_s - td_s / 2))
            replicas = {name: max(1, during[name].replicas) if name in during else 1 for name in operators}
            waited = {name: before[name].backlog if name in before else 0 for name in operators}
            yield Earlier({name: one[place] for name, one in rates.items()}, replicas, waited)

    def _ahead(self) -> dict[str, tuple[float, ...]]:
        td_s, now = self._run.td_s, _rates(self._now)
        if self._next:
            steps = max(1, round((self._next[-1].time_s - self._now.time_s) / td_s))
            edges_s = self._now.time_s + td_s * np.arange(min(steps, self._ahead_steps) + 1)
            return {name: _between(self._next, name, edges_s) for name in {**now, **_rates(self._next[0])}}
        found = dict[str, tuple[float, ...]]()
        for name, rate in now.items():
            made = [row for row in self._forecasts if (row.number, row.series) == (self._number, name)]
            steps_ahead = sorted((row.step, max(0.0, row.rate)) for row in made)
            rates = [expected for _, expected in steps_ahead][: self._ahead_steps] or [rate]
            found[name] = (*rates, *[rates[-1]] * (self._ahead_steps - len(rates)))
        return found


def _between(some: Sequence[rows.IntervalRow], source: str, edges_s: Any) -> tuple[float, ...]:
    """Rates of a source between these times, of intervals that may be shorter or longer."""
    times_s = [some[0].time_s - some[0].interval_s, *(row.time_s for row in some)]
    came = np.cumsum([0, *(row.source_input.get(source, 0) for row in some)])
    known_s = np.diff(np.clip(edges_s, times_s[0], times_s[-1]))
    found = np.diff(np.interp(edges_s, times_s, came)) / np.maximum(known_s, 1e-9)
    return tuple(float(one) for one in found)


def _rows(store: Store, kind: Callable[..., Row], table: sa.Table, run: str, numbers: tuple[int, int]) -> list[Row]:
    """The rows of these intervals, from the first to the last."""
    query = sa.select(table).where(table.c.run == run, table.c.number.between(*numbers)).order_by(table.c.number)
    found = [dict(row._mapping) for row in store.select(query)]
    return [kind(**{name: value for name, value in row.items() if name != "run"}) for row in found]


def _rates(row: rows.IntervalRow) -> dict[str, float]:
    return {name: count / max(row.interval_s, 1e-9) for name, count in row.source_input.items()}
