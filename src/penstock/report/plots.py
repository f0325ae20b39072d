"""The plots of a run, each a function from its series to a PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from penstock.report.canvas import legend, line, mark_changes, nothing, picture, plain, time_axis
from penstock.report.palette import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PURPLE, SKY
from penstock.report.series import Array, RunSeries, Track, largest

_COLUMNS = 2
_LOG_FROM = 100.0  # beyond two decades a linear axis hides the small values


def rates_plot(series: RunSeries) -> bytes:
    """What entered, what left and what had been forecast, in events per second."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if not series.ends_s.size:
            return nothing(axes, "Rates")
        axes.fill_between(series.ends_s, series.input_rate, color=SKY, alpha=0.25, linewidth=0)
        handles = {
            "input rate": line(axes, series.ends_s, series.input_rate, color=BLUE),
            "throughput": line(axes, series.ends_s, series.throughput, color=GREEN),
        }
        if series.forecast_s.size:
            style = {"color": ORANGE, "linestyle": (0, (4, 2)), "linewidth": 1.4}
            handles["forecast of the input rate"] = line(axes, series.forecast_s, series.forecast_rate, **style)
        _finish(axes, series, "Rates", "events/s", handles)
        return None

    return picture(draw, 3.4)


def replicas_plot(series: RunSeries) -> bytes:
    """Active replicas: all together against the peak's need, and of each operator within its pool."""
    tracks = largest(series.tracks, lambda track: track.replicas)
    rows = math.ceil(len(tracks) / _COLUMNS)

    def draw(figure: Figure) -> None:
        if not series.ends_s.size:
            return nothing(figure.add_subplot(), "Active replicas")
        grid = figure.add_gridspec(1 + rows, _COLUMNS, height_ratios=[1.5] + [1.0] * rows)
        _total_replicas(figure.add_subplot(grid[0, :]), series)
        for index, track in enumerate(tracks):
            axes = figure.add_subplot(grid[1 + index // _COLUMNS, index % _COLUMNS])
            _operator_replicas(axes, series, track)
            time_axis(axes, series.end_s, label=index + _COLUMNS >= len(tracks))
        return None

    return picture(draw, 2.9 + 1.75 * rows if series.ends_s.size else 2.9)


def backlog_plot(series: RunSeries) -> bytes:
    """Events that waited at each operator when the intervals ended."""
    tracks = largest(series.tracks, lambda track: track.backlog)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if not series.ends_s.size:
            return nothing(axes, "Backlog")
        handles = {}
        for track in tracks:
            axes.fill_between(series.ends_s, track.backlog, color=track.colour, alpha=0.10, linewidth=0)
            handles[track.name] = line(
                axes, series.ends_s, track.backlog, color=track.colour, linestyle=track.dashes, linewidth=1.5
            )
        _finish(axes, series, "Backlog", "events", handles)
        return None

    return picture(draw, 3.4 + 0.2 * max(0, math.ceil(len(tracks) / 6) - 1))


def latency_plot(series: RunSeries) -> bytes:
    """End-to-end latency of each interval, with marks where replicas changed."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if not series.ends_s.size:
            return nothing(axes, "Latency")
        styles = {"p99": (PURPLE, 1.3), "mean": (INK, 1.9), "p50": (GREEN, 1.5)}
        handles = {
            name: line(axes, series.ends_s, series.latency_ms[name], color=colour, linewidth=width)
            for name, (colour, width) in styles.items()
            if np.isfinite(series.latency_ms[name]).any()
        }
        marks = mark_changes(axes, series)
        _finish(axes, series, "End-to-end latency", "ms", {**handles, **marks})
        _scale_latency(axes, list(series.latency_ms.values()))
        return None

    return picture(draw, 3.4)


def _finish(axes: Axes, series: RunSeries, title: str, unit: str, handles: Mapping[str, Artist]) -> None:
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    time_axis(axes, series.end_s)
    legend(axes, handles)


def _total_replicas(axes: Axes, series: RunSeries) -> None:
    total = axes.stairs(series.replicas, series.edges_s, baseline=None, color=INK, linewidth=1.7)
    axes.stairs(series.replicas, series.edges_s, fill=True, color=GREY, alpha=0.18, linewidth=0)
    handles: dict[str, Artist] = {"all operators": total}
    highest = _highest(series.replicas)
    if series.r_over is not None:
        peak = axes.axhline(series.r_over, color=ORANGE, linewidth=1.4, linestyle=(0, (4, 2)))
        handles[f"the peak needs {series.r_over:g} (r_over)"] = peak
        highest = max(highest, series.r_over)
    axes.set_title("Active replicas")
    _count_axis(axes, highest, bins=6)
    time_axis(axes, series.end_s, label=not series.tracks)
    legend(axes, handles)


def _operator_replicas(axes: Axes, series: RunSeries, track: Track) -> None:
    axes.stairs(track.pool, series.edges_s, baseline=None, color=FAINT, linewidth=1.4)
    axes.stairs(track.replicas, series.edges_s, fill=True, color=track.colour, alpha=0.16, linewidth=0)
    axes.stairs(track.replicas, series.edges_s, baseline=None, color=track.colour, linewidth=1.6)
    axes.set_title(plain(track.name), fontsize=9.5, color=track.colour, pad=5)
    _count_axis(axes, max(_highest(track.replicas), _highest(track.pool)), bins=5)
    pool = track.pool[np.isfinite(track.pool)]
    if pool.size:
        axes.set_title(f"pool {pool[-1]:g}", loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=5)


def _highest(values: Array) -> float:
    return float(np.nan_to_num(values).max(initial=0.0))


def _count_axis(axes: Axes, highest: float, bins: int) -> None:
    """Whole numbers from 0 to a little above the highest."""
    axes.set_ylim(0, (highest if highest > 0 else 1) * 1.1)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=bins, steps=[1, 2, 4, 5, 10], integer=True))
    axes.set_ylabel("replicas")


def _scale_latency(axes: Axes, values: Sequence[Array]) -> None:
    """Logarithmic where the values span more than two decades; room above for the marks."""
    known = np.concatenate(values)
    known = known[np.isfinite(known) & (known > 0)]
    if not known.size:
        return
    low, high = float(known.min()), float(known.max())
    if high / low <= _LOG_FROM:
        axes.set_ylim(0, high * 1.2)
        return
    axes.set_yscale("log")
    axes.set_ylim(low / 1.5, high * (high / low) ** 0.15)
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("ms, logarithmic")
