"""A run's rows as series over time, ready to be drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.metrics.rows import IntervalRow, OperatorRow
from penstock.report.data import RunReport
from penstock.report.palette import GREY, operator_colour, operator_dashes

Array: TypeAlias = npt.NDArray[np.float64]

MOST_TRACKS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One operator over time; NaN in intervals that have nothing of it."""

    name: str
    colour: str
    dashes: str
    replicas: Array
    pool: Array
    backlog: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """A run over time, in seconds since its start; rates are per second."""

    edges_s: Array  # where intervals begin and end: one more than there are intervals
    input_rate: Array
    throughput: Array
    forecast_s: Array
    forecast_rate: Array
    replicas: Array
    r_over: float | None
    latency_ms: dict[str, Array]  # by its name: mean, p50, p99
    tracks: tuple[Track, ...]
    scale_out_s: Array
    scale_in_s: Array

    @property
    def ends_s(self) -> Array:
        """When the intervals ended."""
        return self.edges_s[1:]

    @property
    def end_s(self) -> float:
        """When the last of them ended."""
        return float(self.edges_s.max(initial=0.0))


def run_series(report: RunReport) -> RunSeries:
    """All series of a run."""
    rows = report.timed
    length_s = _array(max(row.interval_s, 1e-9) for row in rows)
    forecast_s, forecast_rate = _forecast(report)
    return RunSeries(
        edges_s=_array([0.0, *report.ends_s().values()]) if rows else _array([]),
        input_rate=_array(row.entered for row in rows) / length_s,
        throughput=_array(row.source_output for row in rows) / length_s,
        forecast_s=forecast_s,
        forecast_rate=forecast_rate,
        replicas=_array(row.replicas for row in rows),
        r_over=report.figure("r_over"),
        latency_ms={
            "mean": _array(_or_nan(row.latency_mean_ms) for row in rows),
            "p50": _array(_or_nan(row.latency_p50_ms) for row in rows),
            "p99": _array(_or_nan(row.latency_p99_ms) for row in rows),
        },
        tracks=_tracks(rows, report.operators),
        scale_out_s=_change_times(report, out=True),
        scale_in_s=_change_times(report, out=False),
    )


def operators_in_order(rows: Iterable[OperatorRow]) -> list[str]:
    """The operators' names, predecessors first, as far as who received from whom tells."""
    senders: dict[str, set[str]] = {}
    for row in rows:
        senders.setdefault(row.operator, set()).update(row.received_by)
    known = {name: sorted(found & senders.keys() - {name}) for name, found in sorted(senders.items())}
    try:
        return list(TopologicalSorter(known).static_order())
    except CycleError:
        return list(known)


def largest(tracks: Sequence[Track], size: Callable[[Track], Array]) -> list[Track]:
    """All tracks, in their order; of very many, the largest alone and the others together."""
    if len(tracks) <= MOST_TRACKS:
        return list(tracks)
    ranked = sorted(tracks, key=lambda track: -float(np.nansum(size(track))))
    alone = {track.name for track in ranked[: MOST_TRACKS - 1]}
    return [*(track for track in tracks if track.name in alone), _together(ranked[MOST_TRACKS - 1 :])]


def _together(tracks: Sequence[Track]) -> Track:
    return Track(
        name=f"{len(tracks)} other operators",
        colour=GREY,
        dashes="-",
        replicas=np.nansum([track.replicas for track in tracks], axis=0),
        pool=np.nansum([track.pool for track in tracks], axis=0),
        backlog=np.nansum([track.backlog for track in tracks], axis=0),
    )


def _tracks(intervals: Sequence[IntervalRow], rows: Sequence[OperatorRow]) -> tuple[Track, ...]:
    place = {row.number: index for index, row in enumerate(intervals)}
    values = {name: np.full((3, len(place)), np.nan) for name in operators_in_order(rows)}
    for row in rows:
        if row.number in place:
            values[row.operator][:, place[row.number]] = (row.replicas, row.pool, row.backlog)
    return tuple(_track(name, index, found) for index, (name, found) in enumerate(values.items()))


def _track(name: str, index: int, values: Array) -> Track:
    colour, dashes = operator_colour(index), operator_dashes(index)
    return Track(name=name, colour=colour, dashes=dashes, replicas=values[0], pool=values[1], backlog=values[2])


def _forecast(report: RunReport) -> tuple[Array, Array]:
    """What was expected to enter in the next interval, at the time when that ends; summed over the sources."""
    ends_s = report.ends_s()
    operators = {row.operator for row in report.operators}
    rates: dict[float, float] = {}
    for row in report.forecasts:
        if row.step == 1 and row.series not in operators and row.number in ends_s and math.isfinite(row.rate):
            due_s = ends_s.get(row.number + 1, ends_s[row.number] + report.run.td_s)
            rates[due_s] = rates.get(due_s, 0.0) + row.rate
    times_s = sorted(rates)
    return _array(times_s), _array(rates[time_s] for time_s in times_s)


def _change_times(report: RunReport, *, out: bool) -> Array:
    ends_s = report.ends_s()
    changed = {row.number for row in report.changes if (row.after > row.before) == out and row.number in ends_s}
    return _array(sorted(ends_s[number] for number in changed))


def _array(values: Iterable[float]) -> Array:
    """The values, with NaN for all that is not finite."""
    found = np.array(list(values), dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
