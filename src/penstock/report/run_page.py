"""The page of a run: key figures, plots, timetables, workers, decisions with their reasons, operators."""

from __future__ import annotations

import math
from collections import Counter
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.metrics.paper import PUBLISHED, SOURCE
from penstock.metrics.rows import CheckpointRow, OperatorRow, WaitingRow
from penstock.report import draw
from penstock.report.draw import BLUE, FAINT, GREEN, INK, PURPLE, VERMILLION
from penstock.report.page import render
from penstock.report.run import RunReport, rows_frame
from penstock.report.scores import by_policy, scores_plot
from penstock.report.workers import workers_of, workers_plot

MOST_OPERATORS = 12  # apart in a plot
_LATENCY = {"p99": (PURPLE, 1.3), "mean": (INK, 1.9), "p50": (GREEN, 1.5)}
_LOG_FROM = 100.0  # beyond two decades a linear axis hides the small values


def run_page(report: RunReport) -> str:
    """The report as HTML."""
    run, workers = report.run, workers_of(report)
    return render(
        "run.html",
        report=report,
        facts={"run": run.run, "started": run.started_at, "finished": run.finished_at or "not recorded"}
        | {"td": f"{run.td_s:g} s", **run.settings},
        paper=PUBLISHED.get(run.topology),
        source=SOURCE,
        plots=(rates_plot, replicas_plot, backlog_plot, latency_plot),
        styles=styles_of(report),
        workers={} if workers is None else {run.policy: workers},
        workers_plot=workers_plot,
        mean=draw.mean,
        out=sum(row.after > row.before for row in report.changes),
        scores=by_policy(report),
        scores_plot=scores_plot,
        checkpoints_plot=checkpoints_plot,
        notes=_notes(report),
        operators=_operators(report),
    )


def styles_of(report: RunReport) -> dict[str, dict[str, Any]]:
    """Colour and dashes of each operator, the same in every plot and table."""
    return dict(zip(report.by_operator["replicas"], cycle(draw.OPERATORS), strict=False))


def largest(values: pd.DataFrame) -> pd.DataFrame:
    """All operators, in their order; of very many, those with the largest sums."""
    return values[[name for name in values if name in values.sum().nlargest(MOST_OPERATORS)]]


@draw.plot
def rates_plot(report: RunReport) -> Figure:
    """Input rate, throughput and forecast over time."""
    figure, (axes,) = draw.rows([3.4])
    over, forecast = report.over.set_index("end_s"), report.forecast
    draw.line(axes, over.input_rate, fill=0.12, color=BLUE, label="input rate")
    draw.line(axes, over.throughput, color=GREEN, label="throughput")
    if len(forecast):
        draw.line(axes, forecast, label="forecast of the input rate", **draw.DASHED)
    _finish(axes, report, "Rates", "events/s")
    return figure


@draw.plot
def replicas_plot(report: RunReport) -> Figure:
    """Active replicas over time, in all and by operator."""
    over, r_over, active = report.over, report.figure("r_over"), largest(report.by_operator["replicas"])
    names, planned = list(active), report.planned
    pairs = [[place, min(place + 1, len(names))] for place in range(1, len(names) + 1, 2)]
    figure, (axes, *others) = draw.rows([2.3, *[1.5] * len(pairs)], 0.7, [[0, 0], *pairs])
    draw.steps(axes, over.replicas, over, fill=0.1, color=INK, label="all operators")
    if r_over is not None:
        axes.axhline(r_over, label=f"the peak needs {r_over:g} (r_over)", **draw.DASHED)
    axes.set_title("Active replicas")
    axes.tick_params(labelbottom=True)  # it is wider than those below
    draw.count_axis(axes, over.replicas, [r_over or 0.0], bins=6)
    draw.legend(axes)
    for axes, name in zip(others, names, strict=True):
        pool, colour = report.by_operator["pool"][name], styles_of(report)[name]["color"]
        draw.steps(axes, pool, over, color=FAINT, linewidth=1.4)
        if name in planned:
            draw.band(axes, planned[name]["min"], planned[name]["max"], over, color=colour, alpha=0.35)
        draw.steps(axes, active[name], over, fill=0.1, color=INK if name in planned else colour, linewidth=1.5)
        draw.panel(axes, name, f"pool {pool.dropna().iloc[-1]:g}" if pool.notna().any() else "", colour)
        draw.count_axis(axes, active[name], pool, planned[name]["max"] if name in planned else [])
    draw.time_axis(figure.axes[-1], over.end_s.max())
    return figure


@draw.plot
def backlog_plot(report: RunReport) -> Figure:
    """Backlog of each operator over time."""
    backlog = largest(report.by_operator["backlog"]).set_axis(report.over.end_s)
    figure, (axes,) = draw.rows([3.4], 0.2 * ((backlog.shape[1] - 1) // 6))
    for name, values in backlog.items():
        draw.line(axes, values, fill=0.1, linewidth=1.5, label=draw.plain(name), **styles_of(report)[name])
    _finish(axes, report, "Backlog", "events")
    return figure


@draw.plot
def latency_plot(report: RunReport) -> Figure:
    """Mean, median and 99th percentile of latency over time, with marks where replicas changed."""
    figure, (axes,) = draw.rows([3.4])
    over = report.over.set_index("end_s")
    for name, (colour, width) in _LATENCY.items():
        if over[name].notna().any():
            draw.line(axes, over[name], color=colour, linewidth=width, label=name)
    for grown, height, style in (
        (True, 0.975, {"marker": "^", "color": BLUE, "label": "scale-out"}),
        (False, 0.935, {"marker": "v", "color": VERMILLION, "label": "scale-in"}),
    ):
        numbers = {row.number for row in report.changes if (row.after > row.before) == grown}
        draw.marks(axes, report.over.end_s[report.over.index.isin(numbers)], height, s=22, **style)
    _finish(axes, report, "End-to-end latency", "ms")
    known = over[list(_LATENCY)].where(lambda values: values > 0)
    low, high = known.min(axis=None), known.max(axis=None)
    if high > 0:
        axes.set_ylim(0, high * 1.2)  # room above for the marks
    if high / low > _LOG_FROM:
        draw.log_axis(axes, low / 1.5, high * (high / low) ** 0.15)
        axes.set_ylabel("ms, logarithmic")
    return figure


@draw.plot
def checkpoints_plot(report: RunReport) -> Figure:
    """How old the last checkpoint was at the end of each interval, and how long it had taken."""
    figure, (axes,) = draw.rows([2.4])
    found = rows_frame(CheckpointRow, report.checkpoints).set_index("number").reindex(report.over.index)
    for name, colour, label in (("age_s", BLUE, "age of the last"), ("took_s", VERMILLION, "it took")):
        draw.line(axes, found[name].astype(float).set_axis(report.over.end_s), color=colour, linewidth=1.5, label=label)
    _finish(axes, report, "Checkpoints", "s")
    return figure


def _finish(axes: Axes, report: RunReport, title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    draw.time_axis(axes, report.over.end_s.max())
    draw.legend(axes)


def _notes(report: RunReport) -> pd.DataFrame:
    """How often something was said, and in which intervals at first and at last."""
    said = [(row.number, row.note) for row in report.intervals if row.note]
    unsure = [row for row in report.operators if row.incomplete]
    said += [(row.number, f"operator '{row.operator}' incomplete: {row.incomplete}") for row in unsure]
    numbers = pd.DataFrame(said, columns=["number", "words"]).groupby("words").number
    return numbers.agg(times="count", first="min", last="max").sort_values("first", kind="stable")


def _operators(report: RunReport) -> pd.DataFrame:
    """What each operator did in the whole run, as the summary says: it knows what came after the last interval."""
    seen = rows_frame(OperatorRow, report.operators).astype({"busy_share": float, "execution_time_s": float})
    kinds = {"received": ["sum"], "processed": ["sum"], "dropped": ["sum"], "backlog": ["max", "last"]}
    kinds |= {"replicas": ["mean", "min", "max"], "pool": ["last"], "busy_share": ["mean"]}
    kinds["execution_time_s"] = ["last"]
    found = seen.groupby("operator").agg(kinds).reindex(report.by_operator["replicas"].columns)
    found.columns = found.columns.map("_".join)
    for what in ("received", "processed", "dropped"):
        counted = found[f"{what}_sum"]
        found[f"{what}_sum"] = [report.figure("operators", name, what, otherwise=one) for name, one in counted.items()]
    most = rows_frame(WaitingRow, report.waiting).groupby("operator")[["held", "booked", "outside"]].max()
    minutes = math.fsum(row.interval_s for row in report.intervals) / 60
    changed = Counter(row.operator for row in report.changes if row.failure is None)
    found["changes"] = [changed[name] / minutes if minutes > 0 else math.nan for name in found.index]
    return found.join(most.reindex(found.index, fill_value=0))
