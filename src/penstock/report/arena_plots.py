"""The plots of the arena over time: the input and the best policies, each a function from the series to a PNG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.report.arena_panels import PANEL_IN, Panel, heading, highest, panels, rows, time_axis
from penstock.report.arena_series import ArenaSeries, PolicyLine
from penstock.report.arena_tables import late_share
from penstock.report.canvas import legend, nothing, picture
from penstock.report.markup import count, decimal
from penstock.report.palette import BLUE, GREY, INK, SKY

_MOST_STEPS = 400  # of all lines in one plot together: more would hide each other
_SMALL_BACKLOG = 10.0  # up to here the axis is linear, so that 0 has its place


def replicas_plot(series: ArenaSeries) -> bytes:
    """The input rate, and below it the active replicas of all operators, in one plot or in panels."""
    apart, top = crowded(series), highest(series, lambda one: one.replicas)
    title = "Input rate and active replicas"
    heights = [1.0, *[PANEL_IN] * len(series.rivals)] if apart else [1.0, 2.3]

    def axis(axes: Axes) -> None:
        axes.set_ylim(0, top * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=3 if apart else 7, steps=[1, 2, 4, 5, 10], integer=True))

    def draw(figure: Figure) -> None:
        first, *others = rows(figure, heights)
        _input(first, series)
        if not apart:
            _together(others[0], series)
            return axis(others[0])
        first.set_title("Input rate", fontsize=9.5, pad=4)
        panels(others, series, Panel(values=lambda one: one.replicas, axis=axis, words=_mean_replicas, steps=True))
        return heading(figure, title, series)

    return _drawn(series, title, draw, sum(heights) + (1.3 if apart else 2.0))


def latency_plot(series: ArenaSeries) -> bytes:
    """Mean latency of the events that left in each interval, on a logarithmic axis, with the target."""
    known = [one.latency_ms[np.isfinite(one.latency_ms)] for one in series.lines]
    values = np.concatenate([np.array([series.target_ms]), *known])

    def axis(axes: Axes) -> None:
        axes.axhline(series.target_ms, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=3)
        axes.set_yscale("log")
        axes.set_ylim(float(values.min()) / 1.6, float(values.max()) * 1.8)
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_time(value)))

    panel = Panel(
        values=lambda one: one.latency_ms,
        axis=axis,
        words=lambda one: f"{late_share(one.late)} of events late",
        floor=series.target_ms,
    )
    return _panels_plot(series, f"Mean latency; dotted: the target of {series.target_ms / 1000:g} s", panel)


def backlog_plot(series: ArenaSeries) -> bytes:
    """Source events that had entered and not left when the intervals ended."""
    top = highest(series, lambda one: one.backlog)
    wide = top > 10 * _SMALL_BACKLOG

    def axis(axes: Axes) -> None:
        if wide:
            axes.set_yscale("symlog", linthresh=_SMALL_BACKLOG, linscale=0.6)
            axes.yaxis.set_major_locator(FixedLocator(backlog_ticks(top)))
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        axes.set_ylim(0, top * (1.8 if wide else 1.1))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))

    panel = Panel(values=lambda one: one.backlog, axis=axis, words=_largest_backlog)
    return _panels_plot(series, f"Backlog, in events{', logarithmic from 10' if wide else ''}", panel)


def backlog_ticks(highest: float) -> list[float]:
    """0 and a few powers of ten, none so near to 0 that the two numbers would touch.

    >>> backlog_ticks(640), backlog_ticks(3179), backlog_ticks(103774)
    ([0.0, 10.0, 100.0], [0.0, 100.0, 1000.0], [0.0, 1000.0, 100000.0])
    """
    most = int(np.log10(highest))
    powers = range(most, 1 if most > 2 else 0, -1 if most < 5 else -2)
    return [0.0, *sorted(10.0**power for power in powers)]


def crowded(series: ArenaSeries) -> bool:
    """Whether the lines of active replicas would hide each other in one plot."""
    return sum(int(np.count_nonzero(np.diff(one.replicas))) for one in series.lines) > _MOST_STEPS


def _panels_plot(series: ArenaSeries, title: str, panel: Panel) -> bytes:
    def draw(figure: Figure) -> None:
        panels(rows(figure, [1.0] * len(series.rivals)), series, panel)
        heading(figure, title, series)

    return _drawn(series, title, draw, 1.2 + PANEL_IN * len(series.rivals))


def _drawn(series: ArenaSeries, title: str, draw: Callable[[Figure], None], height_in: float) -> bytes:
    if not series.lines:
        return picture(lambda figure: nothing(figure.add_subplot(), title), 2.9)
    return picture(draw, height_in)


def _input(axes: Axes, series: ArenaSeries) -> None:
    axes.stairs(series.input_rate, series.input_edges_s, fill=True, color=SKY, alpha=0.3, linewidth=0)
    axes.stairs(series.input_rate, series.input_edges_s, baseline=None, color=BLUE, linewidth=1.1)
    axes.set_title("Input rate")
    axes.set_title("events/s", loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=4)
    axes.set_ylim(0, (float(series.input_rate.max(initial=0.0)) or 1.0) * 1.1)
    time_axis(axes, series.end_s, label=False)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.tick_params(labelbottom=False)


def _together(axes: Axes, series: ArenaSeries) -> None:
    """All policies in one plot, the oracle as a broad band below them."""
    band: dict[str, Any] = {"linewidth": 3.4, "alpha": 0.45, "zorder": 1.8}
    own: dict[str, Any] = {"linewidth": 1.5, "zorder": 2.5}
    handles = {}
    for line in series.lines:
        style = {"color": line.colour, "linestyle": line.dashes, **(band if line.bound else own)}
        handles[line.label] = axes.stairs(line.replicas, line.edges_s, baseline=None, **style)
    axes.set_title("Active replicas")
    time_axis(axes, series.end_s)
    legend(axes, handles, columns=3)


def _mean_replicas(line: PolicyLine) -> str:
    lengths_s = np.diff(line.edges_s)
    mean = float(line.replicas @ lengths_s / lengths_s.sum()) if line.replicas.size else np.nan
    return f"active replicas, {decimal(mean, 1)} on average"


def _largest_backlog(line: PolicyLine) -> str:
    return f"largest {count(float(np.nan_to_num(line.backlog).max(initial=0.0)))}"


def _round_time(value_ms: float) -> str:
    """A power of ten on the axis.

    >>> _round_time(10), _round_time(100000), _round_time(0.1)
    ('10 ms', '100 s', '0.1 ms')
    """
    return f"{value_ms:,.10g} ms" if value_ms < 1000 else f"{value_ms / 1000:,.10g} s"
