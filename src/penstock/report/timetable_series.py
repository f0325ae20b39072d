"""What was planned ahead beside what ran, by operator, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.report.data import RunReport
from penstock.report.series import Array, RunSeries, Track

MOST_OPERATORS = 8
_HORIZONS = 5  # that a close-up is wide
_LEAST = 20  # intervals, of a close-up


@dataclass(frozen=True, slots=True)
class Line:
    """A plan from when it was made on: its steps, and the times between which each of them was to last."""

    edges_s: Array
    replicas: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One operator: what all plans together had for each interval, from the lowest to the highest, and single plans."""

    track: Track
    lowest: Array  # by interval; NaN where no plan reached it
    highest: Array
    lines: Mapping[int, Line]  # by the place of the interval at whose end it was made


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetables:
    """All operators that were planned ahead; `longest` is the most steps of a timetable."""

    operators: tuple[Planned, ...]
    longest: int

    def window(self, series: RunSeries) -> tuple[int, int] | None:
        """The places of the intervals in which most changed, for a close-up; None where the run is short enough."""
        width, intervals = max(_LEAST, _HORIZONS * self.longest), series.ends_s.size
        if intervals < 2 * width:
            return None
        moved = np.zeros(intervals)
        for one in self.operators:
            moved[1:] += np.abs(np.diff(np.nan_to_num(one.track.replicas)))
        sums = np.convolve(moved, np.ones(width), mode="valid")
        first = int(np.argmax(sums))
        return first, first + width


def timetables_of(report: RunReport, series: RunSeries) -> Timetables:
    """The run's timetables, of the operators with most replicas where there are very many."""
    plans: dict[str, dict[int, dict[int, int]]] = {}
    for row in report.timetables:
        plans.setdefault(row.operator, {}).setdefault(row.number, {})[row.step] = row.replicas
    found = [track for track in series.tracks if track.name in plans]
    largest = sorted(found, key=lambda track: -float(np.nansum(track.replicas)))[:MOST_OPERATORS]
    shown = {track.name for track in largest}
    operators = tuple(_planned(track, plans[track.name], report) for track in found if track.name in shown)
    return Timetables(operators=operators, longest=max((row.step for row in report.timetables), default=0))


def _planned(track: Track, plans: Mapping[int, Mapping[int, int]], report: RunReport) -> Planned:
    ends_s = report.ends_s()
    place = {number: index for index, number in enumerate(ends_s)}
    lowest, highest = np.full(len(place), np.nan), np.full(len(place), np.nan)
    lines = {}
    for number, steps in plans.items():
        if number not in place:
            continue
        for step, replicas in steps.items():
            if (at := place.get(number + step)) is not None:
                lowest[at], highest[at] = np.fmin(lowest[at], replicas), np.fmax(highest[at], replicas)
        lines[place[number]] = _line(number, [steps[step] for step in sorted(steps)], ends_s, report.run.td_s)
    return Planned(track=track, lowest=lowest, highest=highest, lines=lines)


def _line(number: int, replicas: Sequence[int], ends_s: Mapping[int, float], td_s: float) -> Line:
    """The plan made at the end of this interval; where the run ended before it, intervals go on with td."""
    made_s = ends_s[number]
    edges_s = [made_s] + [ends_s.get(number + step, made_s + step * td_s) for step in range(1, len(replicas) + 1)]
    return Line(np.maximum.accumulate(np.array(edges_s, np.float64)), np.array(replicas, np.float64))
