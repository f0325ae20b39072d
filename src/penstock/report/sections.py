"""The parts of the page: key figures, metrics, plots."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.report import markup, plots
from penstock.report.data import RunReport
from penstock.report.markup import (
    Markup,
    card,
    count,
    decimal,
    duration,
    element,
    image,
    milliseconds,
    percent,
    several,
)
from penstock.report.page import chips
from penstock.report.published import PUBLISHED, SOURCE
from penstock.report.series import run_series

NO_BREAK = "\N{NO-BREAK SPACE}"

_PICTURES = (
    (
        plots.rates_plot,
        "Input rate, throughput and forecast over time",
        "Means over each interval. A forecast stands where the interval it was made for ends.",
    ),
    (
        plots.replicas_plot,
        "Active replicas over time, in all and by operator",
        "All operators together, then each within its pool (grey line).",
    ),
    (
        plots.backlog_plot,
        "Backlog of each operator over time",
        "Events received and not yet processed at the end of each interval.",
    ),
    (
        plots.latency_plot,
        "Mean, median and 99th percentile of latency over time",
        "From when a source event was due to when a sink had processed it. Triangles: replicas were changed.",
    ),
)


def header(report: RunReport) -> Markup:
    """What ran, when, and with which settings."""
    run = report.run
    facts = {"run": run.run, "started": run.started_at, "finished": run.finished_at or "not recorded"}
    shown = {**facts, "td": f"{run.td_s:g} s", **run.settings}
    return element(
        "header",
        element("p", "Penstock run report", class_="kind"),
        element("h1", run.topology, element("span", " under "), run.policy),
        chips(shown),
    )


def cards(report: RunReport) -> Markup:
    """The key figures."""
    metrics, replicas = report.metrics(), [row.replicas for row in report.intervals]
    processed, dropped = report.figure("processed"), _dropped(report)
    busiest = f"{min(replicas)} to {max(replicas)}" if replicas else ""
    r_over = report.figure("r_over")
    peak = f"; the peak needs {count(r_over)}" if r_over is not None and replicas else ""
    return element(
        "dl",
        card("Events", count(_entered(report)), f"{count(processed)} processed" if processed is not None else ""),
        card("Processed ratio", percent(metrics.processed_ratio), dropped),
        card("Mean latency", milliseconds(metrics.latency_mean_ms), _latency_detail(report)),
        card("Saved resources", percent(metrics.saved_resources), "compared with sizing for the peak"),
        card("Replicas, mean", decimal(_mean(replicas), 1), busiest + peak),
        card("Degradation", percent(metrics.throughput_degradation), "of throughput, mean over intervals"),
        card("Changes", count(len(report.changes)), f"in {several(len(report.intervals), 'interval')}"),
        card("Duration", duration(report.duration_s()), _restarts(report)),
        class_="cards",
    )


def metrics_table(report: RunReport) -> Markup:
    """The four metrics, with the paper's own figures where the application is one of the paper's."""
    ours, paper = report.metrics(), PUBLISHED.get(report.run.topology)
    rows: list[list[object]] = []
    for title, meaning, name, digits in (
        ("Saved resources", "1 − r / r_over; higher is better", "saved_resources", 4),
        ("Throughput degradation", "|in − out| / in; lower is better", "throughput_degradation", 4),
        ("Processed ratio", "processed / received; higher is better", "processed_ratio", 4),
        ("Mean latency, ms", "end to end; lower is better", "latency_mean_ms", 2),
    ):
        row: list[object] = [element("b", title), meaning, decimal(getattr(ours, name), digits)]
        rows.append([*row, decimal(getattr(paper, name), digits)] if paper else row)
    head = ["metric", "meaning", "this run", *(["psps in the paper"] if paper else [])]
    note = (
        f"The paper's figures ({SOURCE}) come from 11 virtual machines, its own trace and td 30 s: "
        "compare the direction, not the digits."
        if paper
        else "The papers have no figures for this application."
    )
    return markup.section(
        "The four metrics", markup.table(head, rows, numbers=(2, 3)), element("p", note, class_="note")
    )


def pictures(report: RunReport) -> Markup:
    """All plots."""
    title, series = "Over time", run_series(report)
    if not series.ends_s.size:
        return markup.section(title, element("p", "No intervals were recorded: nothing to draw.", class_="note"))
    return markup.section(title, *(image(plot(series), alt, caption) for plot, alt, caption in _PICTURES))


def _entered(report: RunReport) -> float | None:
    said = report.figure("events")
    return said if said is not None or not report.intervals else sum(row.entered for row in report.intervals)


def _dropped(report: RunReport) -> str:
    """How many were dropped, by cause where the summary tells."""
    causes = report.summary.get("dropped")
    if isinstance(causes, Mapping):
        named = ", ".join(f"{count(value)} {cause}" for cause, value in causes.items() if value)
        return f"dropped: {named}" if named else "none dropped"
    total = report.figure("dropped")
    if total is None and report.intervals:
        total = sum(row.dropped for row in report.intervals)
    return "" if total is None else f"{count(total)} dropped" if total else "none dropped"


def _latency_detail(report: RunReport) -> str:
    known = {name: report.figure("latency_ms", name) for name in ("p50", "p90", "p99")}
    return ", ".join(
        f"{name} {milliseconds(value)}".replace(" ", NO_BREAK) for name, value in known.items() if value is not None
    )


def _restarts(report: RunReport) -> str:
    repeated, restarts = report.figure("repeated"), report.figure("restarts")
    parts = []
    if restarts is not None:
        parts.append(several(int(restarts), "restart"))
    if repeated:
        parts.append(f"{count(repeated)} events repeated")
    return ", ".join(parts)


def _mean(values: list[int]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
