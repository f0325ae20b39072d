"""Writes a run's report: one HTML file that needs nothing else, without scripts or links."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from penstock.errors import InputError
from penstock.report import sections, tables
from penstock.report.data import RunReport
from penstock.report.markup import Markup, element

__all__ = ["RunReport", "write_run_report"]


def write_run_report(path: Path, data: RunReport) -> None:
    """Write the report to a file; folders above it are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(run_page(data), encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"report '{path}': cannot be written; {error.strerror or error}") from error


def run_page(data: RunReport) -> str:
    """The report as HTML."""
    style = files("penstock.report").joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", f"{data.run.topology} under {data.run.policy} – Penstock"),
        Markup(f"<style>\n{style}</style>"),
    )
    body = element(
        "main",
        sections.header(data),
        sections.cards(data),
        sections.metrics_table(data),
        sections.pictures(data),
        tables.decisions_table(data),
        tables.notes_table(data),
        tables.operators_table(data),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"
