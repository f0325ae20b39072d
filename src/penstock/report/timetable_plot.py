"""The timetables of a run as one picture: what was planned ahead beside what ran, operator by operator."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import FuncFormatter, MaxNLocator

from penstock.report.canvas import picture, plain, time_axis, time_unit
from penstock.report.palette import FAINT, GREY, INK
from penstock.report.series import RunSeries
from penstock.report.timetable_series import Planned, Timetables

_PANEL_IN = 1.75
_MOMENTS = 2  # plans shown in the time that one of them covers
_FEWEST_MOMENTS = 10  # over a run that is shown without a close-up
_BEHIND_PLANS = {"alpha": 0.16, "width": 1.4}
_LONGEST_IN_MINUTES_S = 3 * 3600.0  # a close-up of hours would have fractions of them along its axis


def timetable_plot(series: RunSeries, timetables: Timetables) -> bytes:
    """A row for each operator: the whole run, and beside it a close-up of when most changed, with single plans."""
    window = timetables.window(series)

    def draw(figure: Figure) -> None:
        rows = len(timetables.operators)
        grid = figure.add_gridspec(rows, 2 if window else 1, width_ratios=[1.6, 1.0] if window else [1.0])
        for row, planned in enumerate(timetables.operators):
            _draw_row(figure, grid, row, _Panel(series, planned, timetables.longest, window))

    return picture(draw, 0.75 + _PANEL_IN * len(timetables.operators))


class _Panel:
    """One operator's row: what to draw it from."""

    def __init__(self, series: RunSeries, planned: Planned, longest: int, window: tuple[int, int] | None) -> None:
        self.series = series
        self.planned = planned
        self.longest = longest
        self.window = window

    def run(self, axes: Axes, *, alpha: float = 0.3, width: float = 1.0) -> dict[str, Artist]:
        """The range of all plans and what ran, over the whole run."""
        one, edges_s = self.planned, self.series.edges_s
        colour = one.track.colour
        band = axes.stairs(one.highest, edges_s, baseline=one.lowest, fill=True, color=colour, alpha=alpha, linewidth=0)
        ran = axes.stairs(one.track.replicas, edges_s, baseline=None, color=INK, linewidth=width)
        top = np.nanmax([1.0, *one.highest, *one.track.replicas])
        axes.set_ylim(0, top * 1.15)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 4, 5, 10], integer=True))
        return {"ran": ran, "planned for it, lowest to highest": band}

    def plans(self, axes: Axes, first: int, last: int) -> dict[str, Artist]:
        """Single plans, each from the moment when it was made."""
        step = max(1, self.longest // _MOMENTS)
        if self.window is None:
            step = max(step, (last - first) // _FEWEST_MOMENTS)
        handles: dict[str, Artist] = {}
        for place in range(first, last, step):
            line = self.planned.lines.get(place)
            if line is None:
                continue
            colour = self.planned.track.colour
            drawn = axes.stairs(line.replicas, line.edges_s, baseline=None, color=colour, linewidth=1.5)
            axes.plot(line.edges_s[:1], line.replicas[:1], marker="o", markersize=4, color=colour, linewidth=0)
            handles["a plan, from when it was made"] = drawn
        return handles


def _draw_row(figure: Figure, grid: GridSpec, row: int, panel: _Panel) -> None:
    last = row == grid.nrows - 1
    axes = figure.add_subplot(grid[row, 0])
    handles = panel.run(axes) if panel.window else panel.run(axes, **_BEHIND_PLANS)
    axes.set_title(plain(panel.planned.track.name), fontsize=9.5, color=panel.planned.track.colour, pad=5)
    axes.set_ylabel("replicas")
    time_axis(axes, panel.series.end_s, label=last)
    if panel.window is None:
        handles |= panel.plans(axes, 0, panel.series.ends_s.size)  # short enough to show them here
    else:
        handles |= _close_up(figure.add_subplot(grid[row, 1]), axes, panel, label=last)
    if row == 0:
        _key(figure, handles)


def _close_up(axes: Axes, beside: Axes, panel: _Panel, *, label: bool) -> dict[str, Artist]:
    """The same over the window alone, which is marked in the panel beside it."""
    first, last = panel.window or (0, panel.series.ends_s.size)
    start_s, end_s = float(panel.series.edges_s[first]), float(panel.series.edges_s[last])
    beside.axvspan(start_s, end_s, color=FAINT, alpha=0.35, linewidth=0, zorder=0)
    panel.run(axes, **_BEHIND_PLANS)
    handles = panel.plans(axes, first, last)
    axes.set_title("close-up", loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=5)
    unit, length_s = time_unit(min(panel.series.end_s, _LONGEST_IN_MINUTES_S))
    axes.set_xlim(start_s, end_s)
    ticks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(start_s / length_s, end_s / length_s)
    axes.set_xticks([tick * length_s for tick in ticks if start_s <= tick * length_s <= end_s])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / length_s:g}"))
    if label:
        axes.set_xlabel(f"time since start ({unit})")
    return handles


def _key(figure: Figure, handles: dict[str, Artist]) -> None:
    """What the lines mean, once for all panels."""
    names = list(handles)
    figure.legend(
        [handles[name] for name in names], names, loc="outside upper right", ncols=len(names), handlelength=1.6
    )
