"""The page of the arena: who wins, the ranking, cost against lateness, and the best policies over time."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pandas as pd
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, StrMethodFormatter

from penstock.common.checks import is_number
from penstock.report import draw
from penstock.report.arena import ArenaReport
from penstock.report.draw import BLUE, FAINT, GREEN, GREY, INK
from penstock.report.page import render
from penstock.report.text import decimal, percent
from penstock.report.verdict import forecasts, verdict
from penstock.report.workers import simulated_workers, workers_plot
from penstock.simulator.run import ORACLE

_MARKS: dict[str, dict[str, Any]] = {
    "meets the target": {"marker": "o", "s": 64.0},
    "misses it": {"marker": "D", "s": 42.0, "facecolor": "white"},
    "oracle": {"marker": "*", "s": 190.0},
}


def arena_page(report: ArenaReport) -> str:
    """The report as HTML."""
    spots, scenario = arena_spots(report), report.scenario
    options = [(one, getattr(part, one.name)) for part in (scenario.plant, scenario.contest) for one in fields(part)]
    workers = {name: simulated_workers(report.named[name]) for name in report.drawn}
    return render(
        "arena.html",
        report=report,
        chosen={one.name: value for one, value in options if value not in (one.default, {})},
        verdict=verdict(report.results),
        forecasts=forecasts(report.results),
        on_time=1 - scenario.contest.late,
        on_workers=any(one.worker_seconds is not None for one in report.results),
        scatter=None if spots.empty else scatter_plot(spots, scenario.contest.late),
        plots=(replicas_plot, latency_plot),
        workers={name: one for name, one in workers.items() if one is not None},
        workers_plot=workers_plot,
        mean=draw.mean,
    )


@draw.plot
def replicas_plot(report: ArenaReport) -> Figure:
    """Input rate, and active replicas under each policy, over time."""
    figure, (first, *places) = draw.rows([1.1] * (1 + len(report.rivals)), 1.1)
    rates = report.input
    draw.steps(first, rates.rate, rates, fill=0.2, color=BLUE, linewidth=1.1)
    draw.panel(first, "Input rate", "events/s")
    draw.count_axis(first, rates.rate, bins=3)
    for axes, name in zip(places, report.rivals, strict=True):
        for one, style in _behind(report, name):
            draw.steps(axes, report.levels[one].replicas, report.levels[one], **style)
        mean = draw.mean(report.levels[name].replicas, report.levels[name])
        draw.panel(axes, name, f"active replicas, {decimal(mean, 1)} on average", report.drawn[name])
        draw.count_axis(axes, *(one.replicas for one in report.levels.values()), bins=3)
    _finish(figure, report, "Input rate and active replicas")
    return figure


@draw.plot
def latency_plot(report: ArenaReport) -> Figure:
    """Mean latency per interval under each policy, over time, on a logarithmic axis."""
    target_ms = report.scenario.contest.target_ms
    known = pd.concat([pd.Series([target_ms]), *(one.latency_ms for one in report.levels.values())])
    figure, places = draw.rows([1.0] * len(report.rivals), 1.1)
    for axes, name in zip(places, report.rivals, strict=True):
        for one, style in _behind(report, name):
            dense, values = style.pop("fill", 0.0), report.levels[one].set_index("end_s").latency_ms
            draw.line(axes, values, **style)
            above = values.clip(lower=target_ms)
            axes.fill_between(values.index, above, target_ms, color=style["color"], alpha=dense, linewidth=0)
        axes.axhline(target_ms, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=3)
        draw.panel(axes, name, f"{percent(report.named[name].late_ratio)} of events late", report.drawn[name])
        draw.log_axis(axes, known.min() / 1.6, known.max() * 1.8)
        axes.yaxis.set_major_locator(LogLocator(numticks=4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:,g} s"))
    _finish(figure, report, f"Mean latency; dotted: the target of {target_ms / 1000:g} s")
    return figure


def _behind(report: ArenaReport, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The oracle as a broad band, and the policy over it."""
    own = (name, {"color": report.drawn[name], "linewidth": 1.2, "zorder": 2.5, "fill": 0.2})
    oracle = (ORACLE, {"color": GREY, "linewidth": 2.2, "alpha": 0.5, "zorder": 1.8})
    return [oracle, own] if ORACLE in report.levels and name != ORACLE else [own]


def _finish(figure: Figure, report: ArenaReport, title: str) -> None:
    behind = "; grey: the oracle" if ORACLE in report.levels and ORACLE not in report.rivals else ""
    figure.suptitle(title + behind, x=0.012, ha="left", fontsize=11.5, fontweight="bold", color=INK)
    draw.time_axis(figure.axes[-1], report.end_s)


def arena_spots(report: ArenaReport) -> pd.DataFrame:
    """A row for each policy of which cost and lateness are known, by name, in the order of the ranking."""
    rows = []
    for name, one in report.named.items():
        if is_number(one.oracle_ratio) and is_number(one.late_ratio):
            kind = "oracle" if one.policy == ORACLE else "meets the target" if one.meets_target else "misses it"
            rows.append((draw.plain(name), one.oracle_ratio, one.late_ratio, report.drawn.get(name, FAINT), kind))
    return pd.DataFrame(rows, columns=["name", "cost", "late", "colour", "kind"]).set_index("name")


@draw.plot
def scatter_plot(spots: pd.DataFrame, late: float) -> Figure:
    """Cost along x, late events along y, of which the share `late` is promised."""
    figure, (axes,) = draw.rows([4.9])
    _scales(axes, spots, late)
    for kind, style in _MARKS.items():
        some = spots[spots.kind == kind]
        if len(some):
            edges = some.colour.replace(FAINT, GREY)
            own = {"facecolor": some.colour, "edgecolor": edges, "linewidths": 1.7, "zorder": 4, **style}
            axes.scatter(some.cost, some.late, **own)
            axes.scatter([], [], label=kind, **{"facecolor": INK, "edgecolor": INK, **style})
    axes.set_title("Cost against lateness")
    draw.legend(axes)
    place_labels(axes, spots)
    return figure


def place_labels(axes: Axes, spots: pd.DataFrame) -> None:
    """Write the names beside the points, so that they cover neither those nor each other; the first choose first.

    Points on one another share a label; the cheapest that meets the target is bold. Without room there is no name.
    """
    best = next(iter(spots.index[spots.kind == "meets the target"]), "")
    shared = spots.assign(name=spots.index).groupby([spots.cost.round(2), spots.late.round(3)], sort=False)
    labels = shared.agg({"name": "\n".join, "cost": "first", "late": "first"})
    look: dict[str, Any] = {"textsize": 9, "textcolor": INK, "linecolor": GREY, "linewidth": 0.7, "zorder": 6}
    look["path_effects"] = [withStroke(linewidth=2.2, foreground="white", alpha=0.8)]  # over lines of the grid
    look["fontweight"] = ["bold" if best in one.splitlines() else "normal" for one in labels.name]
    rules: dict[str, Any] = {"x_scatter": spots.cost.to_numpy(), "y_scatter": spots.late.to_numpy(), "va": "center"}
    rules |= {"min_distance": 0.0105, "draw_all": False, "avoid_label_lines_overlap": True}
    rules["direction"] = ["east", "west", "north", "south"]
    cost, late = labels.cost.to_numpy(), labels.late.to_numpy()
    textalloc.allocate(axes, cost, late, list(labels.name), **rules, **look)


def _scales(axes: Axes, spots: pd.DataFrame, late: float) -> None:
    """Cost from the least, lateness from 0, with the part in which the target is met."""
    low, high = min(1.0, spots.cost.min()), max(1.0, spots.cost.max())
    room = 0.16 * max(0.2, high - low)
    axes.set_xlim(low - room, high + room)
    if low > 0 and high / low > 12:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.25, high * 1.6)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}×"))
    axes.set_xlabel("replica-seconds, as a multiple of the oracle's")
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1.5)
    axes.set_yscale("symlog", linthresh=0.001, linscale=0.55)  # so that none late has its place
    axes.set_yticks([0.0, 0.001, 0.01, 0.1, 1.0], ["0 %", "0.1 %", "1 %", "10 %", "100 %"])
    axes.set_ylim(-0.00028, min(1.7, max(0.05, spots.late.max() * 3)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("late events, logarithmic from 0.1 %")
    target = f"target: at most {100 * late:.3g} % late"
    axes.axhspan(-1, late, color=GREEN, alpha=0.09, linewidth=1.3, zorder=0.5, label=target)
