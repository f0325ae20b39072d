"""What was decided in a run, what was refused, how late events were, and how it turned out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from heapq import nsmallest
from typing import Any

import sqlalchemy as sa

from penstock.metrics import schema
from penstock.metrics.scores import DECIDES
from penstock.metrics.store import Store

SHOWN = 12
LOOKED_BACK = 1000  # intervals
_BEFORE_ALL = -1
_SUMMED = ("seconds", "events", "too_many", "too_few", "late", "nothing_late", "forecast_error", "naive_error")
_Key = tuple[str, str]
_Columns = tuple[deque[Any], ...]  # of rows, oldest first
_OF_SCORE = (
    "too_many",
    "too_few",
    "late",
    "nothing_late",
    "nothing_replicas",
    "runner_up",
    "runner_up_late",
    "runner_up_replicas",
)


class Lately:
    """A run's last changes, refusals and scores, and all its late events, up to an interval.

    To move on from one interval to the next reads only what is new: all of it takes longer than everything else that a
    viewer is sent, and somebody may watch.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._begin()

    def _begin(self) -> None:
        self._number: int | None = None
        self._changes: deque[dict[str, Any]] = deque(maxlen=SHOWN)  # newest first
        self._refused: dict[_Key, _Columns] = {}  # by operator and what it was told
        self._scored: dict[_Key, _Columns] = {}  # by role and policy
        self.late = self.events = 0
        self.late_now = self.events_now = 0  # in the last interval alone

    def at(self, number: int) -> Lately:
        """Move to the end of this interval."""
        if self._number is not None and number < self._number:
            self._begin()
        if number != self._number:
            self._add_lateness(number)
            after = number - LOOKED_BACK if self._number is None else max(self._number, number - LOOKED_BACK)
            self._add_changes(after, number)
            self._add_refusals(after, number)
            self._add_scores(number)
            self._number = number
        return self

    # ── decisions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def decisions(self) -> list[dict[str, Any]]:
        """The last that changed something or failed, newest first, each with the score of all made with it."""
        first = self._last - LOOKED_BACK
        shown = [row for row in self._changes if row["number"] > first]
        scores = self._outcomes({row["number"] for row in shown})
        return [{**row, "score": scores.get(row["number"])} for row in shown]

    def _add_changes(self, after: int, number: int) -> None:
        found = self._store.select(_changed(), run=self._run, after=after, until=number)
        self._changes.extendleft(_without_run(row) for row in reversed(found))

    def _outcomes(self, numbers: set[int]) -> dict[int, dict[str, Any]]:
        """The scores of what was decided at the ends of these intervals, as far as they are known by now."""
        if not numbers or not self._store.has(schema.scores):
            return {}
        table = schema.scores.c
        query = sa.select(table.number, *(table[name] for name in _OF_SCORE)).where(table.run == self._run)
        query = query.where(table.role == DECIDES, table.number.in_(numbers), table.number < self._last)
        return {row.number: {name: getattr(row, name) for name in _OF_SCORE} for row in self._store.select(query)}

    # ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────

    def refusals(self) -> list[dict[str, Any]]:
        """What policies wanted and were not let have, by operator and by what they were told; the last first."""

        def newest(item: tuple[_Key, _Columns]) -> tuple[int, _Key]:
            return -item[1][0][-1], item[0]

        return [
            {
                "operator": operator,
                "told": told,
                "first": numbers[0],
                "last": numbers[-1],
                "times": len(numbers),
                "wanted_least": min(wanted),
                "wanted_most": max(wanted),
                "replicas": max(replicas),
            }
            for (operator, told), (numbers, wanted, replicas) in nsmallest(SHOWN, self._refused.items(), key=newest)
        ]

    def _add_refusals(self, after: int, number: int) -> None:
        if self._store.has(schema.limits):
            found = self._store.tuples(_refused(), run=self._run, after=after, until=number)
            _add(self._refused, [((row[0], row[1]), row[2:]) for row in found])
            _forget(self._refused, number - LOOKED_BACK)

    # ── scores ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def scores(self) -> list[dict[str, Any]]:
        """How policies did over the last intervals, who decides first; late events are those of a fluid."""
        return [_sums(*key, columns) for key, columns in sorted(self._scored.items())]

    def _add_scores(self, number: int) -> None:
        """Those of an interval are known at the end of the next."""
        if not self._store.has(schema.scores):
            return
        before = number - LOOKED_BACK - 1
        after = before if self._number is None else max(before, self._number - 1)
        found = self._store.tuples(_scored(), run=self._run, after=after, until=number - 1)
        _add(self._scored, [((row[0], row[1]), row[2:]) for row in found])
        _forget(self._scored, before)

    # ── late events ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _add_lateness(self, number: int) -> None:
        """How many of the events were late, of those intervals of which that is known."""
        if not self._store.has(schema.lateness):
            return
        after = _BEFORE_ALL if self._number is None else self._number
        found = self._store.select(_lateness(), run=self._run, after=after, until=number)
        late, events, self.late_now, self.events_now = (int(one or 0) for one in found[0])
        self.late += late
        self.events += events

    @property
    def _last(self) -> int:
        return -1 if self._number is None else self._number


# Made once: to put a query together takes longer than to ask it.


def _between(table: Any) -> tuple[Any, ...]:
    """Of one run, after one interval and up to another."""
    return (
        table.run == sa.bindparam("run"),
        table.number > sa.bindparam("after"),
        table.number <= sa.bindparam("until"),
    )


@cache
def _changed() -> sa.Select[Any]:
    """Decisions that changed something or failed, newest first."""
    table = schema.decisions.c
    query = sa.select(schema.decisions).where(*_between(table))
    query = query.where((table.before != table.after) | table.failure.is_not(None))
    return query.order_by(table.number.desc(), table.operator).limit(SHOWN)


@cache
def _refused() -> sa.Select[Any]:
    """Wishes that changed nothing: whose, what was told, when, what was wanted, and what there was."""
    table, made = schema.limits.c, schema.decisions.c
    both = schema.limits.join(
        schema.decisions, (table.run == made.run) & (table.number == made.number) & (table.operator == made.operator)
    )
    query = sa.select(table.operator, table.told, table.number, table.wanted, made.after).select_from(both)
    return query.where(*_between(table), made.before == made.after).order_by(table.number, table.operator)


@cache
def _scored() -> sa.Select[Any]:
    """Scores, oldest first."""
    table = schema.scores.c
    query = sa.select(table.role, table.policy, table.number, *(table[name] for name in _SUMMED))
    return query.where(*_between(table)).order_by(table.number)


@cache
def _lateness() -> sa.Select[Any]:
    """Late events and all of them, over the intervals and in the last."""
    table, seen = schema.lateness.c, schema.intervals.c
    both = schema.lateness.join(schema.intervals, (table.run == seen.run) & (table.number == seen.number))
    sums = [sa.func.sum(one) for one in (table.late, seen.latency_count)]
    now = table.number == sa.bindparam("until")
    of_last = [sa.func.sum(sa.case((now, one))) for one in (table.late, seen.latency_count)]
    return sa.select(*sums, *of_last).select_from(both).where(*_between(table))


def _sums(role: str, policy: str, columns: _Columns) -> dict[str, Any]:
    """Replicas are means over time, errors are means, the others are sums; None where nothing is known."""
    found = dict(zip(("number", *_SUMMED), columns, strict=True))
    late, nothing_late, forecast_errors, naive_errors = (
        [one for one in found[name] if one is not None]
        for name in ("late", "nothing_late", "forecast_error", "naive_error")
    )
    return {
        "policy": policy,
        "role": role,
        "intervals": len(found["number"]),
        "events": sum(found["events"]),
        "too_many": _over_time(found["too_many"], found["seconds"]),
        "too_few": _over_time(found["too_few"], found["seconds"]),
        "late": math.fsum(late) if late else None,
        "nothing_late": math.fsum(nothing_late) if nothing_late else None,
        "forecast_error": _mean(forecast_errors),
        "naive_error": _mean(naive_errors),
    }


def _over_time(values: Iterable[float], seconds: Sequence[float]) -> float:
    return math.fsum(one * length for one, length in zip(values, seconds, strict=True)) / max(math.fsum(seconds), 1e-9)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _add(groups: dict[_Key, _Columns], rows: Iterable[tuple[_Key, Sequence[Any]]]) -> None:
    """Enter rows, each into its group, as columns: the first is the number of its interval."""
    for key, row in rows:
        columns = groups.setdefault(key, tuple(deque() for _ in row))
        for column, value in zip(columns, row, strict=True):
            column.append(value)


def _forget(groups: dict[_Key, _Columns], until: int) -> None:
    """Take out rows up to this interval, and groups that have none left."""
    for columns in groups.values():
        while columns[0] and columns[0][0] <= until:
            for column in columns:
                column.popleft()
    for key in [key for key, columns in groups.items() if not columns[0]]:
        del groups[key]


def _without_run(row: sa.Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "run"}
