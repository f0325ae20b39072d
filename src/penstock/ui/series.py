"""A run over time, in as many points as a chart can show; of a run that goes on, only what is new is read again."""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from penstock.metrics import schema
from penstock.metrics.scores import DECIDES
from penstock.metrics.store import Store

POINTS = 600  # of a chart
COLUMNS = (
    "entered",  # rates are per second
    "left",
    "expected",  # one interval ahead
    "expected_low",  # over all forecasts that were made for the interval, the nearest and those further ahead
    "expected_high",
    "dropped",
    "replicas",
    "backlog",
    "held",
    "booked",
    "outside",
    "mean_ms",
    "p50_ms",
    "p99_ms",
    "late_percent",  # of those that left
    "too_many",  # replicas, by what came in the interval
    "too_few",
    "late_avoided",  # events, by what was decided, beside changing nothing; by a fluid
    "late_caused",
    "forecast_percent",  # how far off: the forecast, and the rate before
    "naive_percent",
    "checkpoint_age_ms",  # of the last
    "checkpoint_ms",  # how long it took
)
_BEFORE_ALL = -1
Floats = NDArray[np.float64]
Rows = Sequence[tuple[Any, ...]]
Three = tuple[float, float, float]  # of a forecast: one interval ahead, least, most


class RunSeries:
    """The intervals of one run, kept in memory as columns; for any number of viewers and threads."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._lock = threading.Lock()
        self._numbers: array[int] = array("q")
        self._times_s: array[float] = array("d")
        self._values: dict[str, array[float]] = {name: array("d") for name in COLUMNS}
        self._start_s = 0.0
        self._ahead: dict[int, dict[str, Three]] = {}  # what was expected of intervals that have not come, by source

    @property
    def last(self) -> int | None:
        """The number of the last interval that was read."""
        return self._numbers[-1] if self._numbers else None

    @property
    def _after(self) -> int:
        """What is new has a number beyond this."""
        return _BEFORE_ALL if self.last is None else self.last

    def columns(self) -> tuple[Floats, dict[str, Floats]]:
        """All intervals as they are: when each ended, in seconds since the first began, and its values by column."""
        with self._lock:
            return np.array(self._times_s), {name: np.array(one) for name, one in self._values.items()}

    @property
    def start_s(self) -> float:
        """When the first interval began, by the run's clock."""
        return self._start_s

    def refresh(self) -> int | None:
        """Read the intervals that are new; the number of the last."""
        with self._lock:
            found = self._store.tuples(_intervals(), run=self._run, after=self._after)
            if found:
                self._add(found)
            return self.last

    def overview(self, points: int = POINTS) -> dict[str, Any]:
        """All of it: for every so many intervals the mean of each column and, where there are several, the most."""
        with self._lock:
            numbers, times_s = np.array(self._numbers), np.array(self._times_s)
            values = {name: np.array(column) for name, column in self._values.items()}
        width = max(1, -(-len(numbers) // points))
        ends = np.minimum(np.arange(width, len(numbers) + width, width), len(numbers)) - 1
        means = {name: _by(width, column, np.nanmean) for name, column in values.items()}
        most = {name: _by(width, column, np.nanmax) for name, column in values.items()} if width > 1 else {}
        return {
            "width": width,
            "count": len(numbers),
            "first": int(numbers[0]) if len(numbers) else None,
            "numbers": numbers[ends].tolist(),
            "times_s": _rounded(times_s[ends]),
            "mean": {name: _rounded(column) for name, column in means.items()},
            "most": {name: _rounded(column) for name, column in most.items()},
        }

    def since(self, number: int | None) -> dict[str, Any]:
        """The intervals after this one, each a point; at most as many as a chart has."""
        with self._lock:
            first = 0 if number is None else bisect_right(self._numbers, number)
            first = max(first, len(self._numbers) - POINTS)
            return {
                "count": len(self._numbers),
                "numbers": self._numbers[first:].tolist(),
                "times_s": _rounded(self._times_s[first:]),
                "mean": {name: _rounded(column[first:]) for name, column in self._values.items()},
            }

    def _add(self, found: Rows) -> None:
        numbers, ends_s, seconds, entered, left, dropped, *seen, count, mean_ms, p50_ms, p99_ms = _table(found).T
        if not self._numbers:
            self._start_s = float(ends_s[0] - seconds[0])
        length_s = np.maximum(seconds, 1e-9)
        expected = self._due(numbers)
        late = self._of(numbers, schema.lateness, _late_events(), 1)[0]
        late_percent = 100 * late / np.where(count > 0, count, np.nan)
        rates = entered / length_s, left / length_s, *expected, dropped / length_s
        scores = self._of(numbers, schema.scores, _scored(), 6)
        checkpoints = self._of(numbers, schema.checkpoints, _checkpoints(), 2)
        waits = self._waits(numbers)
        columns = (*rates, *seen, *waits, mean_ms, p50_ms, p99_ms, late_percent, *scores, *checkpoints)
        for column, values in zip(self._values.values(), columns, strict=True):
            column.frombytes(values.tobytes())
        self._times_s.frombytes((ends_s - self._start_s).tobytes())
        self._numbers.extend(row[0] for row in found)

    def _of(self, numbers: Floats, table: sa.Table, query: sa.Select[Any], width: int) -> Floats:
        """What a table has of the new intervals."""
        found = self._store.tuples(query, run=self._run, after=self._after) if self._store.has(table) else []
        return _placed(numbers, found, width)

    def _waits(self, numbers: Floats) -> Floats:
        """Where the backlog of all operators waited; of very many intervals, at the end of as many as are shown."""
        if not self._store.has(schema.waiting):
            return np.full((3, len(numbers)), np.nan)
        step = max(1, -(-len(numbers) // POINTS))
        chosen = numbers[::-step].astype(int).tolist()
        found = _placed(numbers, self._store.tuples(_waiting(), run=self._run, numbers=chosen), 3)
        found[:, ::-step] = np.nan_to_num(found[:, ::-step])  # nothing waited
        return found

    def _due(self, numbers: Floats) -> Floats:
        """What was expected of the new intervals: one interval ahead, least and most, of all sources."""
        until = int(numbers[-1])
        query = self._store.tuples(_expected(), run=self._run, after=self._after, until=until)
        for number, series, nearest, low, high in query:
            known = self._ahead.setdefault(number, {})
            _, least, most = known.get(series, (math.nan, math.inf, -math.inf))
            known[series] = (math.nan if nearest is None else nearest, min(least, low), max(most, high))
        due = [number for number in self._ahead if number <= until]
        sums = [(number, *map(math.fsum, zip(*self._ahead.pop(number).values(), strict=True))) for number in due]
        return _placed(numbers, sums, 3)


# Made once: to put a query together takes longer than to ask it.


def _new(table: Any) -> tuple[Any, ...]:
    """Of one run, after one interval."""
    return table.run == sa.bindparam("run"), table.number > sa.bindparam("after")


@cache
def _intervals() -> sa.Select[Any]:
    table = schema.intervals.c
    counts = table.entered, table.source_output, table.dropped, table.replicas, table.backlog, table.latency_count
    latency = table.latency_mean_ms, table.latency_p50_ms, table.latency_p99_ms
    query = sa.select(table.number, table.time_s, table.interval_s, *counts, *latency)
    return query.where(*_new(table)).order_by(table.number)


@cache
def _waiting() -> sa.Select[Any]:
    table = schema.waiting.c
    sums = [sa.func.sum(one) for one in (table.held, table.booked, table.outside)]
    chosen = table.number.in_(sa.bindparam("numbers", expanding=True))
    return sa.select(table.number, *sums).where(table.run == sa.bindparam("run"), chosen).group_by(table.number)


@cache
def _late_events() -> sa.Select[Any]:
    table = schema.lateness.c
    return sa.select(table.number, table.late).where(*_new(table))


@cache
def _scored() -> sa.Select[Any]:
    table = schema.scores.c
    errors = 100 * table.forecast_error, 100 * table.naive_error
    late = [sa.case((one > 0, one), (one <= 0, 0.0)) for one in _avoided_and_caused()]
    turned_out = table.number + 1
    query = sa.select(turned_out, table.too_many, table.too_few, *late, *errors)
    new = table.run == sa.bindparam("run"), table.number > sa.bindparam("after") - 1
    return query.where(*new, table.role == DECIDES)


def _avoided_and_caused() -> tuple[Any, Any]:
    """Late events by changing nothing beyond those by what was decided, and the other way round."""
    table = schema.scores.c
    return table.nothing_late - table.late, table.late - table.nothing_late


@cache
def _checkpoints() -> sa.Select[Any]:
    table = schema.checkpoints.c
    return sa.select(table.number, 1000 * table.age_s, 1000 * table.took_s).where(*_new(table))


@cache
def _expected() -> sa.Select[Any]:
    """By the interval that is due and by source: one interval ahead, the least and the most."""
    table, operators = schema.forecasts.c, schema.operators.c
    mine = operators.run == sa.bindparam("run")
    first = sa.select(sa.func.min(operators.number)).where(mine).scalar_subquery()
    inner = sa.select(operators.operator).where(mine, operators.number == first)
    due, next_ = (table.number + table.step).label("due"), sa.case((table.step == 1, table.rate))
    return (
        sa.select(due, table.series, sa.func.max(next_), sa.func.min(table.rate), sa.func.max(table.rate))
        .where(*_new(table), table.number <= sa.bindparam("until"), table.series.not_in(inner))
        .group_by(due, table.series)
    )


def _table(rows: Rows) -> Floats:
    """Rows of numbers; NaN for what is not known."""
    return np.array(rows, float)


def _placed(numbers: Floats, rows: Rows, width: int) -> Floats:
    """What rows, each of an interval, have of these, in columns; NaN where there is none. Its number comes first."""
    found = np.full((width, len(numbers)), np.nan)
    if rows:
        of, values = np.split(_table(rows).T, [1])
        places = np.minimum(np.searchsorted(numbers, of[0]), len(numbers) - 1)
        mine = numbers[places] == of[0]
        found[:, places[mine]] = values[:, mine]
    return found


def _by(width: int, column: Floats, how: Any) -> Floats:
    """A column in groups of `width` values; NaN where a group has none."""
    rows = np.pad(column, (0, -len(column) % width), constant_values=np.nan).reshape(-1, width)
    found = np.full(len(rows), np.nan)
    known = ~np.isnan(rows).all(axis=1)
    if known.any():
        found[known] = how(rows[known], axis=1)
    return found


def _rounded(values: Floats | array[float]) -> list[float | None]:
    """To a hundredth of a unit at most: it is for the eye; None for what is not known."""
    rounded = np.round(np.asarray(values, float), 2)
    found: list[float | None] = np.where(np.isfinite(rounded), rounded, None).tolist()  # type: ignore[call-overload]
    return found
