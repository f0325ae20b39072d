"""The arena's results as lines over time, ready to be drawn: few points, however long the trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from penstock.report.arena_data import ArenaReport, is_oracle
from penstock.report.data import finite
from penstock.report.palette import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, VERMILLION
from penstock.report.series import Array
from penstock.simulator.history import History
from penstock.simulator.result import SimulationResult

Dashes: TypeAlias = tuple[int, tuple[float, ...] | None]
Style: TypeAlias = tuple[str, Dashes]

MOST_POINTS = 600
MOST_RATES = 1200
# How much is drawn of the time after the trace, in which what still waits is processed:
TAIL = 0.25  # of the trace's length
TAIL_INTERVALS = 10  # or so many intervals, if that is longer

_STYLES: tuple[Style, ...] = (
    (BLUE, (0, None)),
    (ORANGE, (0, (5.0, 1.6))),
    (GREEN, (0, (1.4, 1.2))),
    (PURPLE, (0, (6.0, 1.6, 1.4, 1.6))),
    (VERMILLION, (0, (2.8, 1.2))),
    (INK, (0, (8.0, 1.6, 1.4, 1.6, 1.4, 1.6))),
)
_BOUND: Style = (GREY, (0, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLine:
    """One policy over time; a value for each stretch between two edges."""

    label: str
    colour: str
    dashes: Dashes
    bound: bool  # the oracle
    late: float | None  # share of its events
    edges_s: Array
    replicas: Array  # mean
    latency_ms: Array  # greatest of the intervals' means; NaN where no event left
    backlog: Array  # greatest


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSeries:
    """The lines, with the input that all policies had."""

    lines: tuple[PolicyLine, ...]
    input_edges_s: Array
    input_rate: Array
    target_ms: float
    end_s: float
    grouped: int  # intervals that make one point
    input_step_s: float  # what one point of the input stands for
    longer_s: dict[str, float]  # when those ended that were at it longer than is drawn

    @property
    def rivals(self) -> list[PolicyLine]:
        """Those that are compared with the oracle; the oracle itself if it is alone."""
        return [one for one in self.lines if not one.bound] or list(self.lines)

    @property
    def bound(self) -> PolicyLine | None:
        """The oracle, if it is there beside others."""
        return next((one for one in self.lines if one.bound), None) if len(self.lines) > 1 else None


def arena_series(report: ArenaReport) -> ArenaSeries:
    """All lines of a report; results without intervals have none."""
    trace = report.trace
    found = [(one, style) for one, style in line_styles(report) if one.history.times_s]
    labels = distinct([one.policy for one, _ in found])
    ends_s = {label: one.history.times_s[-1] for label, (one, _) in zip(labels, found, strict=True)}
    end_s = max([trace.duration_s, *(min(one, _last_s(report)) for one in ends_s.values())])
    grouped = group_size(max((_count(one.history, end_s) for one, _ in found), default=0), MOST_POINTS)
    steps = np.asarray(np.arange(len(trace.rates) + 1) * trace.step_s, np.float64)
    size = group_size(len(trace.rates), MOST_RATES)
    return ArenaSeries(
        lines=tuple(
            _line(label, style, one, _count(one.history, end_s), grouped)
            for label, (one, style) in zip(labels, found, strict=True)
        ),
        input_edges_s=_edges(steps, size),
        input_rate=means(trace.rates, np.full(len(trace.rates), trace.step_s), size),
        target_ms=report.target_ms,
        end_s=end_s,
        grouped=grouped,
        input_step_s=size * trace.step_s,
        longer_s={label: one for label, one in ends_s.items() if one > end_s},
    )


def line_styles(report: ArenaReport) -> list[tuple[SimulationResult, Style]]:
    """The results that are drawn, with colour and dashes."""
    return [(one, _BOUND if is_oracle(one) else _STYLES[place]) for place, one in enumerate(report.drawn)]


def policy_colours(report: ArenaReport) -> dict[int, str]:
    """The colours of the results that are drawn, by the result's `id`."""
    return {id(one): colour for one, (colour, _) in line_styles(report)}


def distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered where one comes again.

    >>> distinct(["psps", "keda", "psps"])
    ['psps', 'keda', 'psps (2)']
    """
    seen: dict[str, int] = {}
    shown = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        shown.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return shown


def group_size(count: int, most: int) -> int:
    """How many values in a row make one point, so that there are not too many points.

    >>> group_size(0, 600), group_size(600, 600), group_size(17569, 600)
    (1, 1, 30)
    """
    return max(1, math.ceil(count / most))


def means(values: Array, weights: Array, size: int) -> Array:
    """The weighted mean of every `size` values in a row; of the rest at the end as well.

    >>> means(np.array([1.0, 3.0, 5.0]), np.array([1.0, 3.0, 1.0]), 2).tolist()
    [2.5, 5.0]
    """
    if not values.size:
        return values
    starts = np.arange(0, values.size, size)
    whole = np.add.reduceat(weights, starts)
    return np.asarray(np.add.reduceat(values * weights, starts) / np.maximum(whole, 1e-12))


def maxima(values: Array, size: int) -> Array:
    """The greatest of every `size` values in a row; NaN only where all of them are.

    >>> maxima(np.array([1.0, np.nan, np.nan, np.nan, 2.0]), 2).tolist()
    [1.0, nan, 2.0]
    """
    if not values.size:
        return values
    return np.asarray(np.fmax.reduceat(values, np.arange(0, values.size, size)))


def _line(label: str, style: Style, result: SimulationResult, count: int, size: int) -> PolicyLine:
    """The first `count` intervals, `size` of them to a point."""
    history = result.history
    times_s, lengths_s = _array(history.times_s[:count]), _array(history.lengths_s[:count])
    edges_s = np.concatenate((times_s[:1] - lengths_s[:1], times_s))
    latency_ms = 1000 * _array(history.latency_s[:count])
    return PolicyLine(
        label=label,
        colour=style[0],
        dashes=style[1],
        bound=is_oracle(result),
        late=finite(result.late_ratio),
        edges_s=_edges(edges_s, size),
        replicas=means(np.nan_to_num(history.total_replicas[:count]), lengths_s, size),
        latency_ms=maxima(np.where(latency_ms > 0, latency_ms, np.nan), size),
        backlog=maxima(_array(history.backlog[:count]), size),
    )


def _edges(edges: Array, size: int) -> Array:
    """The edges of groups of `size`, and always the last one."""
    return edges if edges.size <= 2 else np.append(edges[:-1:size], edges[-1])


def _count(history: History, end_s: float) -> int:
    """Intervals that end in what is drawn."""
    return int(np.searchsorted(_array(history.times_s), end_s * (1 + 1e-9), side="right"))


def _last_s(report: ArenaReport) -> float:
    """Nothing later is drawn."""
    contest, length_s = report.scenario.contest, report.trace.duration_s
    return length_s + contest.first_step_s + max(TAIL * length_s, TAIL_INTERVALS * contest.td_s)


def _array(values: Sequence[float]) -> Array:
    """The values, with NaN for all that is not finite."""
    found = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)
