"""Policies over time below one another, each in a panel of its own with the oracle behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.report import canvas
from penstock.report.arena_series import ArenaSeries, PolicyLine
from penstock.report.canvas import plain
from penstock.report.palette import GREY, INK
from penstock.report.series import Array

PANEL_IN = 0.98
DAY_S = 86400.0
_DAYS_FROM_S = 4 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What panels show: the values of a line, the axis for them, and a few words on the right."""

    values: Callable[[PolicyLine], Array]
    axis: Callable[[Axes], None]
    words: Callable[[PolicyLine], str]
    floor: float = 0.0  # what is above is filled
    steps: bool = False


def panels(places: Sequence[Axes], series: ArenaSeries, panel: Panel) -> None:
    """One policy in each place, the best at the top; only the last has the time below it."""
    for axes, line in zip(places, series.rivals, strict=True):
        if series.bound is not None:
            _draw(axes, series.bound, panel, linewidth=2.2, alpha=0.5, zorder=1.8)
        _draw(axes, line, panel, linewidth=1.2, zorder=2.5)
        _fill(axes, line, panel)
        axes.set_title(plain(line.label), fontsize=9.5, color=line.colour, pad=4)
        axes.set_title(panel.words(line), loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=4)
        last = axes is places[-1]
        time_axis(axes, series.end_s, label=last)
        axes.tick_params(labelbottom=last)
        panel.axis(axes)


def rows(figure: Figure, heights: Sequence[float]) -> list[Axes]:
    """Axes below one another, of these heights."""
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    return [figure.add_subplot(grid[row, 0]) for row in range(len(heights))]


def heading(figure: Figure, words: str, series: ArenaSeries) -> None:
    """A title above all panels, which says what the grey is."""
    behind = "; grey: the oracle" if series.bound is not None else ""
    figure.suptitle(words + behind, x=0.012, ha="left", fontsize=11.5, fontweight="bold", color=INK)


def time_axis(axes: Axes, end_s: float, *, label: bool = True) -> None:
    """Time since the start along x, as in a run's plots; days where there are many."""
    canvas.time_axis(axes, end_s, label=label)
    if end_s < _DAYS_FROM_S:
        return
    days = MaxNLocator(nbins=12, steps=[1, 2, 5, 7, 10], integer=True).tick_values(0, end_s / DAY_S)
    axes.set_xticks([day * DAY_S for day in days if 0 <= day * DAY_S <= end_s * 1.005])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / DAY_S:g}"))
    if label:
        axes.set_xlabel("time since start (days)")


def highest(series: ArenaSeries, values: Callable[[PolicyLine], Array]) -> float:
    """The greatest value of all lines; 1 if there is none above 0."""
    found = max((float(np.nan_to_num(values(one)).max(initial=0.0)) for one in series.lines), default=0.0)
    return found if found > 0 else 1.0


def _draw(axes: Axes, line: PolicyLine, panel: Panel, **style: Any) -> None:
    values = panel.values(line)
    if panel.steps:
        axes.stairs(values, line.edges_s, baseline=None, color=line.colour, **style)
    else:
        canvas.line(axes, line.edges_s[1:], values, color=line.colour, **style)


def _fill(axes: Axes, line: PolicyLine, panel: Panel) -> None:
    values = panel.values(line)
    style: dict[str, Any] = {"color": line.colour, "alpha": 0.2, "linewidth": 0}
    if panel.steps:
        axes.stairs(values, line.edges_s, baseline=panel.floor, fill=True, **style)
    else:
        axes.fill_between(line.edges_s[1:], np.maximum(values, panel.floor), panel.floor, **style)
