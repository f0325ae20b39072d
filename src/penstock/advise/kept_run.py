"""The load of a run that a keeper has left in its store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from penstock.advise.replay import AS_IT_WAS, Fitted, Load, Outcome
from penstock.attached.model.demand import Promise, cost_at_pace, pace_of
from penstock.attached.model.query import source_of
from penstock.errors import InputError
from penstock.metrics.rows import IntervalRow, OperatorRow, WorkerRow
from penstock.metrics.store import Store

_SQLITE = b"SQLite format 3\0"


def is_store(file: Path) -> bool:
    """Whether a file is a database."""
    with file.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def kept_load(store: Store, promise: Promise, run: str | None = None) -> Load:
    """The load of a keeper's run, the last by default.

    A store has what a row takes up at the pace of its query, and not what is fixed: all of it is taken for rows. It has
    delays by interval, as two percentiles: what lies between them is taken for even.
    """
    row = store.run(run)
    triggers = row.settings.get("triggers_s")
    if not isinstance(triggers, Mapping):
        raise InputError(f"store {store}, run '{row.run}': must be of a keeper; it is a run of {row.topology}")
    intervals, operators = store.intervals(row.run), store.operators(row.run)
    if len(intervals) < 2:
        raise InputError(f"store {store}, run '{row.run}': must have at least two intervals; it has {len(intervals)}")
    start_s = intervals[0].time_s
    by_query = {
        name: [one for one in operators if one.operator == name] for name in {one.operator for one in operators}
    }
    return Load(
        row.run,
        int(str(row.settings.get("slots_each", 1))),
        start_s,
        intervals[-1].time_s - start_s,
        _as_it_was(intervals, store.workers(row.run), promise),
        queries=[
            _fitted(name, float(triggers.get(name, 0.0)), rows, intervals, promise) for name, rows in by_query.items()
        ],
    )


def _fitted(
    name: str, trigger_s: float, rows: Sequence[OperatorRow], intervals: Sequence[IntervalRow], promise: Promise
) -> Fitted:
    times_s = [one.execution_time_s for one in rows if one.execution_time_s is not None and one.incomplete is None]
    if not times_s:
        raise InputError(f"query '{name}': its costs are not known, as no batch of it was seen")
    pace = pace_of(trigger_s, promise, f"query '{name}'")
    cost, came = cost_at_pace(median(times_s), pace), _arrivals(source_of(name), intervals)
    return Fitted(name=name, trigger_s=trigger_s, cost=cost, came=came, rows=came(math.inf))


def _arrivals(source: str, intervals: Sequence[IntervalRow]) -> Callable[[float], int]:
    """Rows that had come by a time: even over each interval."""
    at = np.array([one.time_s - intervals[0].time_s for one in intervals])
    counts = np.cumsum([0, *(one.source_input.get(source, 0) for one in intervals[1:])])
    return lambda now_s: int(np.interp(now_s, at, counts) + 1e-6)


def _as_it_was(intervals: Sequence[IntervalRow], workers: Sequence[WorkerRow], promise: Promise) -> Outcome:
    start_s, there = intervals[0].time_s, _executors(intervals, workers)
    times = [(one.time_s - start_s, there[one.number]) for one in intervals if one.number in there]
    spent = sum(there.get(one.number, math.nan) * one.interval_s for one in intervals[1:])
    counted = [one for one in intervals if one.latency_count and one.latency_p50_ms is not None]
    rows = sum(one.latency_count for one in counted)
    late = sum(one.latency_count * _above(one, 1000 * promise.target_s) for one in counted)
    return Outcome(
        policy=AS_IT_WAS,
        executor_seconds=spent,
        rows=rows,
        late=round(late),
        p50_ms=_weighted([(one.latency_p50_ms or 0.0, one.latency_count) for one in counted], 0.5),
        p99_ms=_weighted([(one.latency_p99_ms or 0.0, one.latency_count) for one in counted], 0.99),
        changes=sum(before[1] != after[1] for before, after in pairwise(times)),
        executors=tuple(times),
    )


def _executors(intervals: Sequence[IntervalRow], workers: Sequence[WorkerRow]) -> dict[int, int]:
    """How many there were in each interval: as in the one before where it is not known, and none where it never is."""
    seen: dict[int, int] = {}
    for one in workers:
        seen[one.number] = seen.get(one.number, 0) + (one.state != "starting")
    last, found = next(iter(seen.values()), None), {}
    for row in intervals:
        last = seen.get(row.number, last)
        if last is not None:
            found[row.number] = last
    return found


def _above(interval: IntervalRow, target_ms: float) -> float:
    """The share of an interval's rows that took longer, if delays are even between its percentiles.

    >>> row = IntervalRow(number=1, time_s=5, interval_s=5, source_input={}, entered=9, source_output=9, replicas=1,
    ...     backlog=0, dropped=0, latency_count=9, latency_mean_ms=5, latency_p50_ms=4.0, latency_p99_ms=8.9)
    >>> [round(_above(row, target_ms), 2) for target_ms in (4.0, 6.0, 9.0, 1.0)]
    [0.5, 0.3, 0.0, 0.8]
    """
    half, most = interval.latency_p50_ms or 0.0, interval.latency_p99_ms or 0.0
    if most <= half:
        return float(half > target_ms)
    share = 0.5 - 0.49 * (target_ms - half) / (most - half)
    return min(1.0, share) if target_ms < most else 0.0


def _weighted(values: Sequence[tuple[float, int]], share: float) -> float:
    """The value that so large a share of the weights does not exceed; NaN where there is none."""
    total, seen = sum(weight for _, weight in values), 0
    for value, weight in sorted(values):
        seen += weight
        if seen >= share * total:
            return value
    return math.nan
