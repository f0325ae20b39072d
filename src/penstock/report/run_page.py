"""The page of a run: key figures, plots, timetables, workers, decisions with their reasons, operators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.metrics.rows import OperatorRow
from penstock.report import plots
from penstock.report.page import MOST_ROWS, render, write_page
from penstock.report.run import PUBLISHED, SOURCE, RunReport
from penstock.report.series import RunSeries, rows_frame, run_series, timetables_of
from penstock.report.text import NO_BREAK, count, finite, milliseconds
from penstock.report.workers import workers_of


def write_run_report(path: Path, report: RunReport) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, run_page(report))


def run_page(report: RunReport) -> str:
    """The report as HTML."""
    run, series, workers = report.run, run_series(report), workers_of(report)
    facts = {"run": run.run, "started": run.started_at, "finished": run.finished_at or "not recorded"}
    return render(
        "run.html",
        report=report,
        facts={**facts, "td": f"{run.td_s:g} s", **run.settings},
        metrics=report.metrics(),
        paper=PUBLISHED.get(run.topology),
        source=SOURCE,
        series=series,
        ends_s=report.ends_s(),
        plots=plots,
        timetables=timetables_of(report, series),
        workers={} if workers is None else {run.policy: workers},
        out=sum(row.after > row.before for row in report.changes),
        notes=_notes(report),
        operators=_operators(report, series),
        most=MOST_ROWS,
        **_details(report),
    )


def _details(report: RunReport) -> dict[str, Any]:
    """What stands on the cards beside the metrics."""
    rows, entered, dropped = report.intervals, report.figure("events"), report.figure("dropped")
    if rows:
        entered = sum(row.entered for row in rows) if entered is None else entered
        dropped = sum(row.dropped for row in rows) if dropped is None else dropped
    latency = {name: report.figure("latency_ms", name) for name in ("p50", "p90", "p99")}
    return {
        "entered": entered,
        "dropped": _dropped(report.said("dropped"), dropped),
        "replicas": [row.replicas for row in rows],
        "latency": [
            f"{name} {milliseconds(value)}".replace(" ", NO_BREAK)
            for name, value in latency.items()
            if value is not None
        ],
    }


def _dropped(by_cause: object, total: float | None) -> str:
    """How many were dropped, by cause where the summary tells."""
    if isinstance(by_cause, Mapping):
        named = ", ".join(f"{count(value)} {cause}" for cause, value in by_cause.items() if value)
        return f"dropped: {named}" if named else "none dropped"
    return "" if total is None else f"{count(total)} dropped" if total else "none dropped"


def _notes(report: RunReport) -> dict[str, list[int]]:
    """Interval numbers by what was said in them."""
    said = [(row.number, row.note) for row in report.intervals if row.note]
    said += [
        (row.number, f"operator '{row.operator}' incomplete: {row.incomplete}")
        for row in report.operators
        if row.incomplete
    ]
    said += [
        (row.number, f"operator '{row.operator}' could not be changed: {row.failure}")
        for row in report.decisions
        if row.failure
    ]
    found: dict[str, list[int]] = {}
    for number, words in sorted(said, key=lambda pair: pair[0]):
        found.setdefault(words, []).append(number)
    return found


def _operators(report: RunReport, series: RunSeries) -> list[dict[str, Any]]:
    """What each operator did in the whole run."""
    found = rows_frame(OperatorRow, report.operators)
    by_name = {name: rows for name, rows in found.groupby("operator")}  # noqa: C416 (a group is no pair)
    return [
        {
            "name": name,
            **{what: _total(report, name, what, rows[what].sum()) for what in ("received", "processed", "dropped")},
            "backlog": rows.backlog,
            "replicas": rows.replicas,
            "pool": rows.pool.iloc[-1],
            "busy": rows.busy_share.astype(float).mean(),
            "time_ms": next(iter(rows.execution_time_s.dropna()[::-1] * 1000), None),
        }
        for name in series.operators["replicas"]
        for rows in [by_name[name]]
    ]


def _total(report: RunReport, operator: str, name: str, counted: float) -> float:
    """As the summary says, which counts also what came after the last interval; or over the intervals."""
    said = report.said("operators", operator, name)
    if isinstance(said, Mapping):  # by sender or by cause
        said = sum(one for one in map(finite, said.values()) if one is not None)
    number = finite(said)
    return counted if number is None else number
