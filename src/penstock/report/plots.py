"""The plots of a run, of its workers and of a backtest, each a function from its series to a PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.forecast.evaluation.contest import SeriesTest
from penstock.report import draw
from penstock.report.palette import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILLION
from penstock.report.series import RunSeries, Timetables, largest
from penstock.report.text import DAY_S, decimal, whole
from penstock.report.workers import STATES, WorkersSeries

_DASHED: dict[str, Any] = {"color": ORANGE, "linestyle": (0, (4, 2)), "linewidth": 1.4}
_LATENCY = {"p99": (PURPLE, 1.3), "mean": (INK, 1.9), "p50": (GREEN, 1.5)}
_STATE_COLOURS = {"available": BLUE, "draining": ORANGE, "joining": GREEN, "starting": SKY}
_MODELS = (VERMILLION, BLUE, GREEN)
MODELS_SHOWN = len(_MODELS)  # in a plot: more hide each other
_MOST_ROWS = 600
_COLUMNS = 2
_LOG_FROM = 100.0  # beyond two decades a linear axis hides the small values
_MOMENTS = 2  # plans shown in the time that one of them covers
_FEWEST_MOMENTS = 10  # over a run that is shown without a close-up


def rates_plot(series: RunSeries) -> bytes:
    """What entered, what left and what had been forecast, in events per second."""
    with draw.canvas(3.4) as (figure, png):
        axes, over = figure.add_subplot(), series.intervals.set_index("end_s")
        axes.fill_between(over.index, over.input_rate, color=SKY, alpha=0.25, linewidth=0)
        draw.line(axes, over.input_rate, color=BLUE, label="input rate")
        draw.line(axes, over.throughput, color=GREEN, label="throughput")
        if len(series.forecast):
            draw.line(axes, series.forecast, label="forecast of the input rate", **_DASHED)
        _finish(axes, series, "Rates", "events/s")
    return png.getvalue()


def replicas_plot(series: RunSeries) -> bytes:
    """Active replicas: all together against the peak's need, and of each operator within its pool."""
    shown, over = largest(series.operators, "replicas"), series.intervals
    names = list(shown["replicas"])
    below = math.ceil(len(names) / _COLUMNS)
    with draw.canvas(2.9 + 1.75 * below) as (figure, png):
        grid = figure.add_gridspec(1 + below, _COLUMNS, height_ratios=[1.5] + [1.0] * below)
        axes = figure.add_subplot(grid[0, :])
        draw.steps(axes, over.replicas, over, color=INK, fill=0.1, label="all operators")
        if series.r_over is not None:
            axes.axhline(series.r_over, label=f"the peak needs {series.r_over:g} (r_over)", **_DASHED)
        axes.set_title("Active replicas")
        _replicas_axis(axes, draw.highest(over.replicas, pd.Series(series.r_over or 0.0)), bins=6)
        draw.time_axis(axes, series.end_s, label=not names)
        draw.legend(axes)
        for place, name in enumerate(names):
            axes = figure.add_subplot(grid[1 + place // _COLUMNS, place % _COLUMNS])
            _operator(axes, series, name, shown)
            draw.time_axis(axes, series.end_s, label=place + _COLUMNS >= len(names))
    return png.getvalue()


def backlog_plot(series: RunSeries) -> bytes:
    """Events that waited at each operator when the intervals ended."""
    backlog = largest(series.operators, "backlog")["backlog"].set_axis(series.intervals.end_s)
    with draw.canvas(3.4 + 0.2 * max(0, math.ceil(backlog.shape[1] / 6) - 1)) as (figure, png):
        axes = figure.add_subplot()
        for name, values in backlog.items():
            style = series.style(name)
            axes.fill_between(values.index, values, color=style["color"], alpha=0.10, linewidth=0)
            draw.line(axes, values, linewidth=1.5, label=name, **style)
        _finish(axes, series, "Backlog", "events")
    return png.getvalue()


def latency_plot(series: RunSeries) -> bytes:
    """End-to-end latency of each interval, with marks where replicas changed."""
    with draw.canvas(3.4) as (figure, png):
        axes, over = figure.add_subplot(), series.intervals.set_index("end_s")
        for name, (colour, width) in _LATENCY.items():
            if over[name].notna().any():
                draw.line(axes, over[name], color=colour, linewidth=width, label=name)
        draw.marks(axes, series.scale_out_s, 0.975, marker="^", s=22, color=BLUE, label="scale-out")
        draw.marks(axes, series.scale_in_s, 0.935, marker="v", s=22, color=VERMILLION, label="scale-in")
        _finish(axes, series, "End-to-end latency", "ms")
        known = over[list(_LATENCY)].where(lambda values: values > 0)
        low, high = known.min(axis=None), known.max(axis=None)
        if high > 0:
            axes.set_ylim(0, high * 1.2)  # room above for the marks
        if high / low > _LOG_FROM:
            draw.log_axis(axes, low / 1.5, high * (high / low) ** 0.15, ticks=8)
            axes.set_ylabel("ms, logarithmic")
    return png.getvalue()


def timetable_plot(series: RunSeries, tables: Timetables) -> bytes:
    """A row for each operator: the whole run, and beside it a close-up of when most changed, with single plans."""
    ratios = [1.6, 1.0] if tables.window else [1.0]
    with draw.canvas(0.75 + 1.75 * len(tables.operators)) as (figure, png):
        grid = figure.add_gridspec(len(tables.operators), len(ratios), width_ratios=ratios)
        for row, name in enumerate(tables.operators):
            places = [figure.add_subplot(grid[row, column]) for column in range(len(ratios))]
            last, colour = row == len(tables.operators) - 1, series.style(name)["color"]
            for axes in places:
                _planned(axes, series, tables, name, alone=axes is not places[-1])
            draw.panel(places[0], name, color=colour)
            places[0].set_ylabel("replicas")
            draw.time_axis(places[0], series.end_s, label=last)
            _plans(places[-1], series, tables, name)
            if tables.window:
                _close_up(places, series, tables.window, label=last)
            if row == 0:
                _key(figure, places[-1])
    return png.getvalue()


def workers_plot(series: WorkersSeries) -> bytes:
    """Workers by state, the slots that they offer and that are used, and when sources stood still."""
    levels, end_s = series.levels, float(series.levels.end_s.max())
    with draw.canvas(4.6) as (figure, png):
        above, below = draw.rows(figure, [1, 1])
        _states(above, series)
        draw.steps(below, levels.offered, levels, color=GREY, linewidth=2.8, label="offered")
        draw.steps(below, levels.used, levels, color=BLUE, linewidth=1.5, fill=0.18, label="used")
        for axes, title, top in (
            (above, "Workers", draw.highest(series.workers)),
            (below, "Slots", draw.highest(levels.offered, levels.used)),
        ):
            _pauses(axes, series)
            axes.set_title(title)
            draw.time_axis(axes, end_s, label=axes is below)
            draw.count_axis(axes, top, room=1.18)
            draw.legend(axes)
    return png.getvalue()


def compared_workers_plot(series: Mapping[str, WorkersSeries]) -> bytes:
    """Workers by state under each policy, below one another."""
    top = draw.highest(*(one.workers for one in series.values()))
    end_s = max(float(one.levels.end_s.max()) for one in series.values())
    with draw.canvas(1.2 + draw.PANEL_IN * len(series)) as (figure, png):
        places = draw.rows(figure, [1] * len(series))
        for axes, (label, one) in zip(places, series.items(), strict=True):
            _states(axes, one)
            mean, seconds = decimal(one.mean(one.workers), 1), whole(one.worker_seconds)
            draw.panel(axes, label, f"{mean} workers on average, {seconds} worker-seconds")
            draw.time_axis(axes, end_s, label=axes is places[-1])
            draw.count_axis(axes, top, room=1.18)
            axes.tick_params(labelbottom=axes is places[-1])
        _key(figure, places[0])
    return png.getvalue()


def forecasts_plot(test: SeriesTest) -> bytes:
    """The rates of the last days in grey, the best forecasts over them; below, how far off each forecast was."""
    shown, step_s, end = rows_shown(test), test.series.step_s, test.split.end
    times_s = np.arange(end - shown, end) * step_s
    actual = pd.Series(test.series.rates[end - shown : end], times_s)
    with draw.canvas(4.6) as (figure, png):
        above, below = draw.rows(figure, [2.4, 1.0])
        draw.line(above, actual, color=GREY, linewidth=3.0, alpha=0.55, label="rate")
        for trial, colour in zip(test.ranked, _MODELS, strict=False):
            expected = pd.Series(trial.expected[-shown:], times_s)
            draw.line(above, expected, color=colour, linewidth=1.1, label=trial.score.model)
            draw.line(below, expected - actual, color=colour, linewidth=0.9)
        above.set_title(draw.plain(test.series.name))
        above.set_ylabel("events per second")
        low, high = above.get_ylim()
        above.set_ylim(bottom=0 if low < high / 2 else low)
        below.axhline(0, color=INK, linewidth=0.8)
        below.set_ylabel("forecast − rate")
        below.yaxis.set_major_locator(MaxNLocator(nbins=4))
        for axes in (above, below):
            draw.time_axis(axes, times_s[-1], times_s[0], unit_of_s=math.inf, label=axes is below)
        above.tick_params(labelbottom=False)
        draw.legend(above)
    return png.getvalue()


def rows_shown(test: SeriesTest) -> int:
    """The rows of the last two days of the test part; fewer where that would be too many to see."""
    return max(1, min(test.split.test, _MOST_ROWS, round(2 * DAY_S / test.series.step_s)))


def _finish(axes: Axes, series: RunSeries, title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    draw.time_axis(axes, series.end_s)
    draw.legend(axes)


def _replicas_axis(axes: Axes, top: float, bins: int) -> None:
    draw.count_axis(axes, top, bins=bins)
    axes.set_ylabel("replicas")


def _operator(axes: Axes, series: RunSeries, name: str, shown: Mapping[str, pd.DataFrame]) -> None:
    replicas, pool, colour = shown["replicas"][name], shown["pool"][name], series.style(name)["color"]
    draw.steps(axes, pool, series.intervals, color=FAINT, linewidth=1.4)
    draw.steps(axes, replicas, series.intervals, color=colour, linewidth=1.6, fill=0.16)
    known = pool.dropna()
    draw.panel(axes, name, f"pool {known.iloc[-1]:g}" if len(known) else "", colour)
    _replicas_axis(axes, draw.highest(replicas, pool), bins=5)


def _planned(axes: Axes, series: RunSeries, tables: Timetables, name: str, *, alone: bool) -> None:
    """The range of all plans and what ran; pale and heavy where single plans lie over them."""
    bounds, ran = tables.bounds(name, series.intervals.index), series.operators["replicas"][name]
    edges_s, alpha = [*series.intervals.start_s, series.end_s], 0.3 if alone else 0.16
    draw.steps(axes, ran, series.intervals, color=INK, linewidth=1.0 if alone else 1.4, label="ran")
    style: dict[str, Any] = {"color": series.style(name)["color"], "alpha": alpha, "linewidth": 0}
    label = "planned for it, lowest to highest"
    axes.stairs(bounds["max"], edges_s, baseline=bounds["min"], fill=True, label=label, **style)
    draw.count_axis(axes, max(1.0, draw.highest(bounds["max"], ran)), room=1.15)


def _plans(axes: Axes, series: RunSeries, tables: Timetables, name: str) -> None:
    """Single plans, each from the moment when it was made."""
    first, last = tables.window or (0, len(series.intervals))
    every, style = max(1, tables.longest // _MOMENTS), {"color": series.style(name)["color"]}
    if tables.window is None:
        every = max(every, (last - first) // _FEWEST_MOMENTS)
    label: str | None = "a plan, from when it was made"
    for number in series.intervals.index[first:last:every]:
        plan = tables.plan(name, number)
        if len(plan):
            draw.steps(axes, plan.replicas, plan, linewidth=1.5, label=label, **style)
            axes.plot(plan.start_s[:1], plan.replicas[:1], marker="o", markersize=4, linewidth=0, **style)
            label = None


def _close_up(places: Sequence[Axes], series: RunSeries, window: tuple[int, int], *, label: bool) -> None:
    """The second place has the window alone, which is marked in the first."""
    start_s, end_s = series.intervals.start_s.iloc[window[0]], series.intervals.end_s.iloc[window[1] - 1]
    places[0].axvspan(start_s, end_s, color=FAINT, alpha=0.35, linewidth=0, zorder=0)
    draw.panel(places[1], "", "close-up")
    draw.time_axis(places[1], end_s, start_s, unit_of_s=min(series.end_s, 3 * 3600.0), label=label)


def _states(axes: Axes, series: WorkersSeries) -> None:
    """Stacked, those that can be used at the bottom; states that never came are left out."""
    levels, below = series.levels, pd.Series(0.0, series.levels.index)
    edges_s = [*levels.start_s, levels.end_s.iloc[-1]]
    for state in STATES:
        if state == STATES[0] or levels[state].any():
            style: dict[str, Any] = {"color": _STATE_COLOURS[state], "alpha": 0.75, "linewidth": 0}
            axes.stairs(below + levels[state], edges_s, baseline=below, fill=True, label=state, **style)
            below = below + levels[state]
    draw.steps(axes, below, levels, color=INK, linewidth=1.0)


def _pauses(axes: Axes, series: WorkersSeries) -> None:
    """A band from when events stopped to when they went on, and a mark above, as the band may be thin."""
    for one in series.pauses:
        axes.axvspan(one.time_s - one.seconds, one.time_s, color=VERMILLION, alpha=0.3, linewidth=0, zorder=0.5)
    middles_s = [one.time_s - one.seconds / 2 for one in series.pauses]
    draw.marks(axes, middles_s, 0.97, marker="v", s=26, color=VERMILLION, label="sources stood still")


def _key(figure: Figure, axes: Axes) -> None:
    """What the lines of these axes mean, once for all."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
