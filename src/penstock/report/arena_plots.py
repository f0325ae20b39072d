"""The plots of the arena: the input and the best policies over time, and what each policy costs for how late it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from penstock.report import draw
from penstock.report.arena import ArenaReport, ArenaSeries, PolicySeries
from penstock.report.palette import BLUE, FAINT, GREEN, GREY, INK
from penstock.report.text import count, decimal, finite, late_share
from penstock.report.verdict import is_oracle, meets
from penstock.simulator.result import ON_TIME

ALLOWED = 1 - ON_TIME
_SMALL_BACKLOG = 10.0  # up to here the axis is linear, so that 0 has its place
_LINEAR_UP_TO = 0.001  # of the events: the same, where they are late
_LOG_FROM = 12.0
_NEAR = 0.006  # of the plot's width and height: points so near to each other share one label
_WIDEST = 26  # letters in a line of a label
_MARKS: dict[str, dict[str, Any]] = {
    "meets the target": {"marker": "o", "s": 64.0},
    "misses it": {"marker": "D", "s": 42.0, "facecolor": "white"},
    "oracle": {"marker": "*", "s": 190.0},
}


def replicas_plot(series: ArenaSeries) -> bytes:
    """The input rate, and below it the active replicas of all operators under each policy."""
    top = _top(series, "replicas")
    with draw.canvas(2.5 + 1.15 * len(series.rivals)) as (figure, png):
        first, *others = draw.rows(figure, [1.2, *[1.15] * len(series.rivals)])
        draw.steps(first, series.input.rate, series.input, color=BLUE, fill=0.2, linewidth=1.1)
        draw.panel(first, "Input rate", "events/s")
        first.set_ylim(0, (draw.highest(series.input.rate) or 1.0) * 1.1)
        draw.time_axis(first, series.end_s, label=False)
        first.yaxis.set_major_locator(MaxNLocator(nbins=3))
        first.tick_params(labelbottom=False)
        for axes, one in _panels(figure, others, series, "Input rate and active replicas"):
            draw.panel(axes, one.name, f"active replicas, {decimal(_mean(one), 1)} on average", one.colour)
            for drawn, style in _behind(series, one):
                fill = 0.2 if drawn is one else 0.0
                draw.steps(axes, drawn.levels.replicas, drawn.levels, color=drawn.colour, fill=fill, **style)
            draw.count_axis(axes, top, room=1.08, bins=3)
    return png.getvalue()


def latency_plot(series: ArenaSeries) -> bytes:
    """Mean latency of the events that left in each interval, on a logarithmic axis, with the target."""
    known = pd.concat([pd.Series([series.target_ms]), *(one.levels.latency_ms for one in _all(series))])
    title = f"Mean latency; dotted: the target of {series.target_ms / 1000:g} s"
    with draw.canvas(1.2 + draw.PANEL_IN * len(series.rivals)) as (figure, png):
        for axes, one in _panels(figure, draw.rows(figure, [1.0] * len(series.rivals)), series, title):
            draw.panel(axes, one.name, f"{late_share(one.result.late_ratio)} of events late", one.colour)
            _lines(axes, series, one, "latency_ms", series.target_ms)
            axes.axhline(series.target_ms, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=3)
            draw.log_axis(axes, known.min() / 1.6, known.max() * 1.8, ticks=4)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_time(value)))
    return png.getvalue()


def backlog_plot(series: ArenaSeries) -> bytes:
    """Source events that had entered and not left when the intervals ended."""
    top = _top(series, "backlog")
    wide = top > 10 * _SMALL_BACKLOG
    title = f"Backlog, in events{', logarithmic from 10' if wide else ''}"
    with draw.canvas(1.2 + draw.PANEL_IN * len(series.rivals)) as (figure, png):
        for axes, one in _panels(figure, draw.rows(figure, [1.0] * len(series.rivals)), series, title):
            draw.panel(axes, one.name, f"largest {count(draw.highest(one.levels.backlog))}", one.colour)
            _lines(axes, series, one, "backlog", 0.0)
            draw.count_axis(axes, top, bins=3)
            if wide:
                axes.set_yscale("symlog", linthresh=_SMALL_BACKLOG, linscale=0.6)
                axes.set_ylim(0, top * 1.8)
                axes.yaxis.set_major_locator(FixedLocator(backlog_ticks(top)))
                axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    return png.getvalue()


def backlog_ticks(top: float) -> list[float]:
    """0 and a few powers of ten, none so near to 0 that the two numbers would touch.

    >>> backlog_ticks(640), backlog_ticks(3179), backlog_ticks(103774)
    ([0.0, 10.0, 100.0], [0.0, 100.0, 1000.0], [0.0, 1000.0, 100000.0])
    """
    most = int(np.log10(top))
    powers = range(most, 1 if most > 2 else 0, -1 if most < 5 else -2)
    return [0.0, *sorted(10.0**power for power in powers)]


def _panels(
    figure: Figure, places: Sequence[Axes], series: ArenaSeries, title: str
) -> Iterator[tuple[Axes, PolicySeries]]:
    """A place for each policy, the best at the top; only the last has the time below it."""
    behind = "; grey: the oracle" if series.oracle is not None else ""
    figure.suptitle(title + behind, x=0.012, ha="left", fontsize=11.5, fontweight="bold", color=INK)
    for axes in places:
        draw.time_axis(axes, series.end_s, label=axes is places[-1])
        axes.tick_params(labelbottom=axes is places[-1])
    return zip(places, series.rivals, strict=True)


def _behind(series: ArenaSeries, one: PolicySeries) -> list[tuple[PolicySeries, dict[str, Any]]]:
    """The oracle as a broad band, and the policy over it."""
    own: tuple[PolicySeries, dict[str, Any]] = (one, {"linewidth": 1.2, "zorder": 2.5})
    return [own] if series.oracle is None else [(series.oracle, {"linewidth": 2.2, "alpha": 0.5, "zorder": 1.8}), own]


def _lines(axes: Axes, series: ArenaSeries, one: PolicySeries, column: str, floor: float) -> None:
    """Lines, filled where they are above the floor."""
    for drawn, style in _behind(series, one):
        draw.line(axes, drawn.levels.set_index("end_s")[column], color=drawn.colour, **style)
    values = one.levels.set_index("end_s")[column]
    axes.fill_between(values.index, values.clip(lower=floor), floor, color=one.colour, alpha=0.2, linewidth=0)


def _all(series: ArenaSeries) -> list[PolicySeries]:
    return [*series.rivals, *([series.oracle] if series.oracle else [])]


def _top(series: ArenaSeries, column: str) -> float:
    return draw.highest(*(one.levels[column] for one in _all(series))) or 1.0


def _mean(one: PolicySeries) -> float:
    length_s = one.levels.end_s - one.levels.start_s
    return float((one.levels.replicas * length_s).sum() / length_s.sum())


def _round_time(value_ms: float) -> str:
    """A power of ten on the axis.

    >>> _round_time(10), _round_time(100000), _round_time(0.1)
    ('10 ms', '100 s', '0.1 ms')
    """
    return f"{value_ms:,.10g} ms" if value_ms < 1000 else f"{value_ms / 1000:,.10g} s"


def arena_spots(report: ArenaReport) -> pd.DataFrame:
    """A row for each policy of which cost and lateness are known, by name, in the order of the ranking."""
    rows = {
        draw.plain(name): {
            "cost": one.oracle_ratio,
            "late": one.late_ratio,
            "colour": report.colour(name, FAINT),
            "kind": "oracle" if is_oracle(one) else "meets the target" if meets(one) else "misses it",
        }
        for name, one in report.named.items()
        if finite(one.oracle_ratio) is not None and finite(one.late_ratio) is not None
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["cost", "late", "colour", "kind"])


def scatter_plot(spots: pd.DataFrame) -> tuple[bytes, list[str]]:
    """Cost along x, late events along y; with it, the names for which there was no room."""
    with draw.canvas(4.9) as (figure, png):
        axes = figure.add_subplot()
        _cost_axis(axes, min(spots.cost.min(), 1.0), max(spots.cost.max(), 1.0))
        _late_axis(axes, spots.late.max())
        for spot in spots.itertuples():
            edge = GREY if spot.colour == FAINT else spot.colour
            style = {"facecolor": spot.colour, "edgecolor": edge, **_MARKS[spot.kind]}
            axes.scatter([spot.cost], [spot.late], linewidths=1.7, zorder=4, **style)
        axes.set_title("Cost against lateness")
        for kind, style in _MARKS.items():
            if (spots.kind == kind).any():
                colour = GREY if kind == "oracle" else INK
                axes.scatter([], [], label=kind, linewidths=1.5, edgecolor=colour, **{"facecolor": colour, **style})
        axes.axhspan(0, 0, color=GREEN, alpha=0.25, linewidth=0, label=f"target: at most {100 * ALLOWED:.3g} % late")
        draw.legend(axes)
        left_out = place_labels(axes, spots)
    return png.getvalue(), left_out


def place_labels(axes: Axes, spots: pd.DataFrame) -> list[str]:
    """Write the names beside the points, so that they cover neither those nor each other; gives those left out.

    The first have the first choice. Points on one another share a label; the cheapest that meets the target is bold.
    """
    best = next(iter(spots.index[spots.kind == "meets the target"]), None)
    labels = _shared(axes, spots)
    found = textalloc.allocate(
        axes,
        [spots.cost[names[0]] for names in labels],
        [spots.late[names[0]] for names in labels],
        [wrapped(names) for names in labels],
        x_scatter=spots.cost.to_numpy(),
        y_scatter=spots.late.to_numpy(),
        direction=["east", "west", "north", "south"],
        min_distance=0.0105,
        textsize=9,
        fontweight=["bold" if best in names else "normal" for names in labels],
        textcolor=INK,
        linecolor=GREY,
        linewidth=0.7,
        draw_all=False,
        avoid_label_lines_overlap=True,
        path_effects=[withStroke(linewidth=2.2, foreground="white", alpha=0.8)],  # over lines of the grid
        va="center",
        zorder=6,
    )
    shown = {text.get_text() for text in found[2] if isinstance(text, Text)}
    return [name for names in labels if wrapped(names) not in shown for name in names]


def wrapped(names: Sequence[str]) -> str:
    """Names one after the other, in lines that are not too long.

    >>> wrapped(["psps", "ds2"])
    'psps, ds2'
    >>> wrapped(["dstream", "flink:short", "static:mean", "keda"])
    'dstream, flink:short,\\nstatic:mean, keda'
    """
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > _WIDEST:
            lines[-1] += ","
            lines.append(name)
        else:
            lines[-1] += f", {name}" if lines[-1] else name
    return "\n".join(lines)


def _shared(axes: Axes, spots: pd.DataFrame) -> list[list[str]]:
    """The names, those of points that lie on one another together."""
    places = axes.transAxes.inverted().transform(axes.transData.transform(spots[["cost", "late"]].to_numpy(float)))
    found: list[tuple[Any, list[str]]] = []
    for name, place in zip(spots.index, places, strict=True):
        near = next((names for at, names in found if np.abs(at - place).max() <= _NEAR), None)
        if near is None:
            found.append((place, [name]))
        else:
            near.append(name)
    return [names for _, names in found]


def _cost_axis(axes: Axes, low: float, high: float) -> None:
    if low > 0 and high / low > _LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.6)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        span = max(high - low, 0.2)
        axes.set_xlim(low - 0.16 * span, high + 0.16 * span)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}×"))
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1.5)
    axes.set_xlabel("replica-seconds, as a multiple of the oracle's")


def _late_axis(axes: Axes, most: float) -> None:
    """From 0 to all, with the part in which the target is met."""
    axes.set_yscale("symlog", linthresh=_LINEAR_UP_TO, linscale=0.55)
    axes.set_ylim(-0.00028, min(1.7, max(0.05, most * 3)))
    axes.yaxis.set_major_locator(FixedLocator([0.0, 0.001, 0.01, 0.1, 1.0]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.set_ylabel("late events, logarithmic from 0.1 %")
    axes.axhspan(axes.get_ylim()[0], ALLOWED, color=GREEN, alpha=0.09, linewidth=0, zorder=0.5)
    axes.axhline(ALLOWED, color=GREEN, linewidth=1.3, zorder=1.5)
