"""Workers over time as pictures: of one run by state and by slots, of several policies below one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.report.arena_panels import PANEL_IN, time_axis
from penstock.report.canvas import legend, picture, plain
from penstock.report.markup import count, decimal
from penstock.report.palette import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILLION
from penstock.report.workers_series import STATES, WorkersOverTime

_COLOURS: Mapping[str, Any] = {"available": BLUE, "draining": ORANGE, "joining": GREEN, "starting": SKY}


def workers_plot(series: WorkersOverTime) -> bytes:
    """Workers by state, the slots that they offer and that are used, and when sources stood still."""

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 1)
        workers, slots = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        _finish(workers, series, "Workers", {**_states(workers, series), **_pauses(workers, series)}, label=False)
        _finish(slots, series, "Slots", {**_slots(slots, series), **_pauses(slots, series)})

    return picture(draw, 4.6)


def compared_plot(series: Mapping[str, WorkersOverTime]) -> bytes:
    """Workers by state under each policy."""
    top = max(float(one.workers.max(initial=1.0)) for one in series.values())

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(len(series), 1)
        for row, (label, one) in enumerate(series.items()):
            axes = figure.add_subplot(grid[row, 0])
            handles, last = _states(axes, one), row == len(series) - 1
            axes.set_title(plain(label), fontsize=9.5, pad=4)
            axes.set_title(_words(one), loc="right", fontsize=8.5, fontweight="normal", color=GREY, pad=4)
            _axes(axes, max(other.end_s for other in series.values()), top, label=last)
            axes.tick_params(labelbottom=last)
            if row == 0:
                names = list(handles)
                figure.legend(
                    [handles[name] for name in names], names, loc="outside upper right", ncols=3, handlelength=1.6
                )

    return picture(draw, 1.2 + PANEL_IN * len(series))


def _states(axes: Axes, series: WorkersOverTime) -> dict[str, Artist]:
    """Stacked, those that can be used at the bottom; states that never came are left out."""
    below = np.zeros(series.workers.size)
    handles: dict[str, Artist] = {}
    for state in STATES:
        values = series.by_state[state]
        if state == STATES[0] or values.any():
            style: dict[str, Any] = {"color": _COLOURS[state], "alpha": 0.75, "linewidth": 0}
            handles[state] = axes.stairs(below + values, series.edges_s, baseline=below, fill=True, **style)
            below = below + values
    axes.stairs(below, series.edges_s, baseline=None, color=INK, linewidth=1.0)
    return handles


def _slots(axes: Axes, series: WorkersOverTime) -> dict[str, Artist]:
    axes.stairs(series.used, series.edges_s, fill=True, color=BLUE, alpha=0.18, linewidth=0)
    return {
        "offered": axes.stairs(series.offered, series.edges_s, baseline=None, color=GREY, linewidth=2.8),
        "used": axes.stairs(series.used, series.edges_s, baseline=None, color=BLUE, linewidth=1.5),
    }


def _pauses(axes: Axes, series: WorkersOverTime) -> dict[str, Artist]:
    """A band from when events stopped to when they went on, and a mark above, as the band may be thin."""
    if not series.pauses:
        return {}
    for one in series.pauses:
        axes.axvspan(one.time_s - one.seconds, one.time_s, color=VERMILLION, alpha=0.3, linewidth=0, zorder=0.5)
    marks = axes.scatter(
        [one.time_s - one.seconds / 2 for one in series.pauses],
        np.full(len(series.pauses), 0.97),
        marker="v",
        s=26,
        color=VERMILLION,
        linewidths=0,
        transform=axes.get_xaxis_transform(),
        zorder=4,
    )
    return {"sources stood still": marks}


def _finish(
    axes: Axes, series: WorkersOverTime, title: str, handles: Mapping[str, Artist], *, label: bool = True
) -> None:
    axes.set_title(title)
    top = series.workers if title == "Workers" else np.maximum(series.offered, series.used)
    _axes(axes, series.end_s, float(top.max(initial=1.0)), label=label)
    legend(axes, handles)


def _axes(axes: Axes, end_s: float, top: float, *, label: bool) -> None:
    time_axis(axes, end_s, label=label)
    axes.set_ylim(0, top * 1.18)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 4, 5, 10], integer=True))


def _words(series: WorkersOverTime) -> str:
    mean = decimal(series.mean(series.workers), 1)
    return f"{mean} workers on average, {count(round(series.worker_seconds))} worker-seconds"
