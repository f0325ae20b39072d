"""Writes a run's report: one HTML file that needs nothing else, without scripts or links."""

from __future__ import annotations

from pathlib import Path

from penstock.report import sections, tables
from penstock.report.data import RunReport
from penstock.report.page import page, write_page
from penstock.report.timetable_section import timetable_section
from penstock.report.workers_section import run_workers_section

__all__ = ["RunReport", "write_run_report"]


def write_run_report(path: Path, data: RunReport) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, run_page(data))


def run_page(data: RunReport) -> str:
    """The report as HTML."""
    return page(
        f"{data.run.topology} under {data.run.policy} – Penstock",
        sections.header(data),
        sections.cards(data),
        sections.metrics_table(data),
        sections.pictures(data),
        timetable_section(data),
        run_workers_section(data),
        tables.decisions_table(data),
        tables.notes_table(data),
        tables.operators_table(data),
    )
