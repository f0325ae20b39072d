"""Two runs side by side: what each came to, and both over time, counted from their starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from penstock.metrics import schema
from penstock.metrics.store import Store
from penstock.ui.series import RunSeries

POINTS = 300  # of a chart
COLUMNS = ("entered", "left", "replicas", "backlog", "p99_ms", "mean_ms", "late_percent", "dropped")


def totals_of(store: Store, run: str) -> dict[str, float | None]:
    """What a run came to, from its intervals; None for what the store does not know."""
    table = schema.intervals.c
    weighed = sa.func.sum(table.latency_mean_ms * table.latency_count)
    known = sa.func.sum(sa.case((table.latency_mean_ms.is_not(None), table.latency_count)))
    sums = {
        "intervals": sa.func.count(),
        "seconds": sa.func.sum(table.interval_s),
        "events": sa.func.sum(table.entered),
        "replica_seconds": sa.func.sum(table.replicas * table.interval_s),
        "most_replicas": sa.func.max(table.replicas),
        "most_backlog": sa.func.max(table.backlog),
        "dropped": sa.func.sum(table.dropped),
        "mean_ms": weighed / sa.func.nullif(known, 0),
        "worst_p99_ms": sa.func.max(table.latency_p99_ms),
        "left": sa.func.sum(table.latency_count),
    }
    query = sa.select(*(value.label(name) for name, value in sums.items())).where(table.run == run)
    found = {name: _number(value) for name, value in store.select(query)[0]._mapping.items()}
    promise, late = store.promise(run), sum(row.late for row in store.lateness(run))
    left, faults = found.pop("left"), store.faults(run)
    return {
        **found,
        "late_percent": 100 * late / left if promise and left else None,
        "promised_percent": 100 * promise.late if promise else None,
        "target_ms": promise.target_ms if promise else None,
        "changes": _changes(store, run),
        "orders": len(store.steering(run)),
        "faults": len(faults),
        "stood_still_s": sum(row.seconds or 0.0 for row in faults),
    }


def _changes(store: Store, run: str) -> int:
    table = schema.decisions.c
    query = sa.select(sa.func.count()).where(table.run == run, table.before != table.after, table.failure.is_(None))
    return int(store.select(query)[0][0])


def side_by_side(first: RunSeries, second: RunSeries, points: int = POINTS) -> dict[str, Any]:
    """Both on one axis of time, as far as the longer lasts; a run that has ended has no values any more."""
    runs = [one.columns() for one in (first, second)]
    end_s = max((float(times_s[-1]) for times_s, _ in runs if len(times_s)), default=0.0)
    grid_s = np.linspace(end_s / points, end_s, points) if end_s > 0 else np.array([])
    sides = [{name: _shown(placed(times_s, values[name], grid_s)) for name in COLUMNS} for times_s, values in runs]
    return {"times_s": _shown(grid_s), "sides": sides}


def placed(
    times_s: NDArray[np.float64], values: NDArray[np.float64], grid_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A column on another grid: the mean of the intervals that end in a step, or else the one that goes on in it.

    >>> placed(np.array([1.0, 2.0, 4.0]), np.array([5.0, 7.0, 9.0]), np.array([2.0, 3.0, 4.0, 5.0]))
    array([ 6.,  9.,  9., nan])
    """
    found = np.full(len(grid_s), np.nan)
    known = ~np.isnan(values)
    steps = np.searchsorted(grid_s, times_s * (1 - 1e-9))
    inside = known & (steps < len(grid_s))
    sums = np.bincount(steps[inside], values[inside], len(grid_s))
    counts = np.bincount(steps[inside], minlength=len(grid_s))
    covering = np.searchsorted(times_s, grid_s * (1 - 1e-9))
    lasts = covering < len(times_s)
    found[lasts] = values[covering[lasts]]
    found[counts > 0] = sums[counts > 0] / counts[counts > 0]
    return found


def _shown(values: NDArray[np.float64]) -> list[float | None]:
    return [round(value, 2) if np.isfinite(value) else None for value in values.tolist()]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
