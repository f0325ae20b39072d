"""A run over time, in as many points as a chart can show; of a run that goes on, only what is new is read again."""

from __future__ import annotations

import math
import threading
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
_UNKNOWN = (math.nan, math.nan, math.nan)
_NO_SCORE = (None,) * 6
_NO_CHECKPOINT = (None, None)
Three = tuple[
    float, float, float
]  # of a forecast: one interval ahead, least, most; of a backlog: held, booked, outside


class RunSeries:
    """The intervals of one run, kept in memory as columns; for any number of viewers and threads."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._lock = threading.Lock()
        self._numbers: list[int] = []
        self._times_s: list[float] = []
        self._values: dict[str, list[float]] = {name: [] for name in COLUMNS}
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

    def columns(self) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """All intervals as they are: when each ended, in seconds since the first began, and its values by column."""
        with self._lock:
            return np.array(self._times_s, float), {name: np.array(one, float) for name, one in self._values.items()}

    @property
    def start_s(self) -> float:
        """When the first interval began, by the run's clock."""
        return self._start_s

    def refresh(self) -> int | None:
        """Read the intervals that are new; the number of the last."""
        with self._lock:
            found = self._store.select(_intervals(), run=self._run, after=self._after)
            if found:
                self._add(found)
            return self.last

    def overview(self, points: int = POINTS) -> dict[str, Any]:
        """All of it: for every so many intervals the mean of each column and, where there are several, the most."""
        with self._lock:
            numbers, times_s = np.array(self._numbers, int), np.array(self._times_s, float)
            values = {name: np.array(column, float) for name, column in self._values.items()}
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
            first = 0 if number is None else int(np.searchsorted(self._numbers, number, side="right"))
            first = max(first, len(self._numbers) - POINTS)
            return {
                "count": len(self._numbers),
                "numbers": self._numbers[first:],
                "times_s": _rounded(self._times_s[first:]),
                "mean": {name: _rounded(column[first:]) for name, column in self._values.items()},
            }

    def _add(self, found: Sequence[Any]) -> None:
        waits, late, scores = self._waits([row.number for row in found]), self._late(), self._scores()
        checkpoints = self._checkpoints()
        self._expect(found[-1].number)
        if not self._numbers:
            self._start_s = found[0].time_s - found[0].interval_s
        for number, time_s, interval_s, entered, left, dropped, replicas, backlog, count, *latency_ms in found:
            self._numbers.append(number)
            self._times_s.append(time_s - self._start_s)
            length_s = max(interval_s, 1e-9)
            due = self._ahead.pop(number, None)
            expected = _UNKNOWN if not due else tuple(map(math.fsum, zip(*due.values(), strict=True)))
            rates = entered / length_s, left / length_s, *expected, dropped / length_s
            late_percent = 100 * late[number] / count if number in late and count else None
            seen = replicas, backlog, *waits.get(number, _UNKNOWN), *latency_ms, late_percent
            values = (*rates, *seen, *scores.get(number, _NO_SCORE), *checkpoints.get(number, _NO_CHECKPOINT))
            for column, value in zip(self._values.values(), values, strict=True):
                column.append(math.nan if value is None else value)

    def _waits(self, numbers: Sequence[int]) -> dict[int, Three]:
        """Where the backlog of all operators waited; of very many intervals, at the end of as many as are shown."""
        if not self._store.has(schema.waiting):
            return {}
        numbers = numbers[:: -max(1, -(-len(numbers) // POINTS))]
        found = self._store.select(_waiting(), run=self._run, numbers=numbers)
        known = {number: (int(held), int(booked), int(outside)) for number, held, booked, outside in found}
        return {number: known.get(number, (0.0, 0.0, 0.0)) for number in numbers}

    def _late(self) -> dict[int, int]:
        """How many events were late, by interval, in those that are new."""
        if not self._store.has(schema.lateness):
            return {}
        found = self._store.select(_late_events(), run=self._run, after=self._after)
        return {row.number: row.late for row in found}

    def _scores(self) -> dict[int, tuple[float | None, ...]]:
        """How what was decided for an interval turned out in it, of those that are new."""
        if not self._store.has(schema.scores):
            return {}
        found = self._store.select(_scored(), run=self._run, after=self._after - 1)  # known one interval later
        return {number + 1: tuple(values) for number, *values in found}

    def _checkpoints(self) -> dict[int, tuple[float | None, ...]]:
        """How old the last checkpoint was, and how long it took, of intervals that are new."""
        if not self._store.has(schema.checkpoints):
            return {}
        found = self._store.select(_checkpoints(), run=self._run, after=self._after)
        return {number: tuple(values) for number, *values in found}

    def _expect(self, last: int) -> None:
        """Note what forecasts made since then expect of sources, up to this interval's."""
        for number, series, nearest, low, high in self._store.select(
            _expected(), run=self._run, after=self._after, until=last
        ):
            known = self._ahead.setdefault(number, {})
            _, least, most = known.get(series, (math.nan, math.inf, -math.inf))
            known[series] = (math.nan if nearest is None else nearest, min(least, low), max(most, high))


def operator_series(store: Store, run: str, operator: str, points: int = POINTS) -> dict[str, Any]:
    """One operator over time, by its numbers: the mean of rates and busy share, the most of the others."""
    table, times = schema.operators.c, schema.intervals.c
    width, first = _width(store, run, points)
    length = sa.func.sum(times.interval_s)
    query = (
        sa.select(
            sa.func.max(table.number).label("number"),
            (sa.func.sum(table.received) / length).label("received"),
            (sa.func.sum(table.processed) / length).label("processed"),
            sa.func.max(table.replicas).label("replicas"),
            sa.func.max(table.pool).label("pool"),
            sa.func.max(table.backlog).label("backlog"),
            sa.func.avg(table.busy_share).label("busy_share"),
            sa.func.max(table.execution_time_s * 1000).label("execution_ms"),
        )
        .join_from(schema.operators, schema.intervals, (times.run == table.run) & (times.number == table.number))
        .where(table.run == run, table.operator == operator)
        .group_by((table.number - first) // width)
        .order_by(sa.func.max(table.number))
    )
    found = store.select(query)
    names = ("number", "received", "processed", "replicas", "pool", "backlog", "busy_share", "execution_ms")
    return {name: [getattr(row, name) for row in found] for name in names}


def replicas_over_time(store: Store, run: str, points: int = POINTS // 2) -> dict[str, Any]:
    """The replicas of every operator at the end of every so many intervals, and of the last, by their numbers."""
    table = schema.operators.c
    numbers = _chosen(store, run, points)
    query = sa.select(table.number, table.operator, table.replicas).where(table.run == run, table.number.in_(numbers))
    found = store.select(query)
    places = {number: place for place, number in enumerate(numbers)}
    replicas: dict[str, list[int | None]] = {name: [None] * len(numbers) for _, name, _ in found}
    for number, name, active in found:
        replicas[name][places[number]] = active
    return {"numbers": numbers, "replicas": replicas}


def _chosen(store: Store, run: str, points: int) -> list[int]:
    """The numbers of so many intervals, evenly spread, with the last."""
    table = schema.intervals.c
    query = sa.select(table.number).where(table.run == run).order_by(table.number.desc())
    numbers = [row.number for row in store.select(query)]
    return numbers[:: max(1, -(-len(numbers) // points))][::-1]


def _width(store: Store, run: str, points: int) -> tuple[int, int]:
    """How many numbers go into one of so many points, and the first number."""
    table = schema.intervals.c
    bounds = sa.select(sa.func.min(table.number).label("first"), sa.func.max(table.number).label("last"))
    found = store.select(bounds.where(table.run == run))[0]
    if found.first is None:
        return 1, 0
    return max(1, -(-(found.last - found.first + 1) // points)), found.first


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
    query = sa.select(table.number, table.too_many, table.too_few, *late, *errors)
    return query.where(*_new(table), table.role == DECIDES)


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


def _by(width: int, column: NDArray[np.float64], how: Any) -> NDArray[np.float64]:
    """A column in groups of `width` values; NaN where a group has none."""
    rows = np.pad(column, (0, -len(column) % width), constant_values=np.nan).reshape(-1, width)
    found = np.full(len(rows), np.nan)
    known = ~np.isnan(rows).all(axis=1)
    if known.any():
        found[known] = how(rows[known], axis=1)
    return found


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float | None]:
    """To a hundredth of a unit at most: it is for the eye; None for what is not known."""
    return [round(value, 2) if math.isfinite(value) else None for value in map(float, values)]
