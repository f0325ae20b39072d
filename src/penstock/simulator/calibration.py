"""Calibration: what a live run's store says about hop delay, execution times and overhead."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import InputError
from penstock.metrics.rows import IntervalRow, OperatorRow
from penstock.metrics.store import Store

if TYPE_CHECKING:
    from penstock.simulator.scenario import Plant

TOGETHER_S = 5.0  # of short intervals
QUIET = 0.5  # busy share of every operator below which hardly an event waits


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was measured in a run; whatever is absent stays as it is set or declared."""

    hop_s: float | None = None
    times_s: Mapping[str, float] = field(default_factory=dict, hash=False)  # execution time by operator
    overhead_s: Mapping[str, float] = field(default_factory=dict, hash=False)  # a replica's time beyond that

    def applied(self, plant: Plant) -> Plant:
        """The plant with what was measured."""
        return replace(
            plant,
            hop_s=plant.hop_s if self.hop_s is None else self.hop_s,
            times_s={**self.times_s, **plant.times_s},
            overhead_s={**self.overhead_s, **plant.overhead_s},
        )


def calibration_of(place: str, run: str | None = None) -> Calibration:
    """What the store at this place says of its last run, or of the one named."""
    with closing(Store(place, must_exist=True)) as store:
        runs = [row.run for row in store.runs()]
        if not runs or (run is not None and run not in runs):
            raise InputError(
                f"store '{place}': must have a run{f' {run!r}' if run else ''}; it has {len(runs)}: {runs}"
            )
        chosen = run or runs[-1]
        return calibrated(store.intervals(chosen), store.operators(chosen))


def calibrated(intervals: Sequence[IntervalRow], operators: Sequence[OperatorRow]) -> Calibration:
    """Times, overhead and hop delay from what a run recorded.

    An operator's time is the median of its estimates. Its overhead shows where a queue never ran empty: a replica then
    takes interval / events for each, of which the execution time is a part. The hop delay shows where hardly an event
    waits: what latency has beyond the execution times is shared by the hops.
    """
    by_operator: dict[str, list[OperatorRow]] = {}
    for row in operators:
        if row.incomplete is None:
            by_operator.setdefault(row.operator, []).append(row)
    times_s = {name: time_s for name, rows in by_operator.items() if (time_s := _time_s(rows)) is not None}
    lengths_s = {row.number: row.interval_s for row in intervals}
    overhead_s = {name: _overhead_s(by_operator[name], lengths_s, time_s) for name, time_s in times_s.items()}
    return Calibration(
        hop_s=_hop_s(intervals, by_operator, times_s),
        times_s=times_s,
        overhead_s={name: one for name, one in overhead_s.items() if one > 0},
    )


def _time_s(rows: Sequence[OperatorRow]) -> float | None:
    known = [row.execution_time_s for row in rows if row.execution_time_s is not None and row.processed]
    return statistics.median(known) if known else None


def _overhead_s(rows: Sequence[OperatorRow], lengths_s: Mapping[int, float], time_s: float) -> float:
    """The least that some seconds show in which something waited all the time; 0 where there are none.

    The least, because what waits may wait for some of the replicas while others are idle. Short intervals count
    together: one event more or less in each would be much.
    """
    found, seconds, events = [], 0.0, 0
    for before, row in pairwise(rows):
        length_s = lengths_s.get(row.number, 0.0)
        enough = row.replicas * 0.1 * length_s / time_s  # what waits lasts for a tenth of an interval
        saturated = min(before.backlog, row.backlog) > enough and before.replicas == row.replicas and row.processed
        if not (saturated and row.number == before.number + 1):
            seconds, events = 0.0, 0
            continue
        seconds, events = seconds + row.replicas * length_s, events + row.processed
        if seconds >= row.replicas * TOGETHER_S:
            found.append(seconds / events - time_s)
            seconds, events = 0.0, 0
    return max(0.0, min(found, default=0.0))


def _hop_s(
    intervals: Sequence[IntervalRow], by_operator: Mapping[str, Sequence[OperatorRow]], times_s: Mapping[str, float]
) -> float | None:
    rows = {(name, row.number): row for name, several in by_operator.items() for row in several}
    found = []
    for interval in intervals:
        here = [rows.get((name, interval.number)) for name in times_s]
        if interval.latency_p50_ms is None or not interval.entered or None in here:
            continue
        known = [row for row in here if row is not None]
        if all(row.busy_share < QUIET for row in known):
            visits = [row.processed / interval.entered for row in known]
            spent_s = sum(visit * times_s[row.operator] for visit, row in zip(visits, known, strict=True))
            if sum(visits) > 0:
                found.append((interval.latency_p50_ms / 1000 - spent_s) / sum(visits))
    return max(0.0, statistics.median(found)) if found else None
