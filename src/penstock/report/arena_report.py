"""Writes the arena's report: one HTML file that needs nothing else, without scripts or links."""

from __future__ import annotations

from pathlib import Path

from penstock.report import markup
from penstock.report.arena_data import ArenaReport
from penstock.report.arena_plots import backlog_plot, latency_plot, replicas_plot
from penstock.report.arena_scatter import arena_spots, scatter_plot
from penstock.report.arena_series import ArenaSeries, arena_series
from penstock.report.arena_tables import header, length, ranking_table
from penstock.report.arena_verdict import verdict
from penstock.report.markup import Markup, element, image
from penstock.report.page import page, write_page
from penstock.report.workers_section import arena_workers_section

__all__ = ["ArenaReport", "write_arena_report"]


def write_arena_report(path: Path, data: ArenaReport) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, arena_page(data))


def arena_page(data: ArenaReport) -> str:
    """The report as HTML."""
    return page(
        f"{data.app} under {data.trace.name}: policies compared – Penstock",
        header(data),
        verdict(data),
        ranking_table(data),
        _scatter(data),
        _over_time(data),
        arena_workers_section(data),
        styles=("style.css", "arena.css"),
    )


def _scatter(data: ArenaReport) -> Markup:
    title, spots = "Cost and lateness", arena_spots(data)
    if not spots:
        words = "Of no policy both cost and lateness are known: nothing to draw."
        return markup.section(title, element("p", words, class_="note"))
    content, left_out = scatter_plot(spots)
    caption = "Down is less late, left is cheaper. Colours are those of the plots below."
    if left_out:
        caption += f" There was no room for the names of {', '.join(left_out)}."
    return markup.section(title, image(content, "Cost against share of late events, by policy", caption))


def _over_time(data: ArenaReport) -> Markup:
    title, series = "Over time", arena_series(data)
    if not any(line.replicas.size for line in series.lines):
        return markup.section(title, element("p", "No intervals were recorded: nothing to draw.", class_="note"))
    return markup.section(title, element("p", _which(data, series), class_="note"), *_pictures(data, series))


def _pictures(data: ArenaReport, series: ArenaSeries) -> list[Markup]:
    point_s = series.grouped * data.scenario.contest.td_s
    mean, most = "", ""
    if series.grouped > 1:
        mean, most = f"; means over {length(point_s)}", f"; the greatest within {length(point_s)}"
    return [
        image(
            replicas_plot(series),
            "Input rate, and active replicas under each policy, over time",
            f"Input: means over {length(series.input_step_s)}. Active replicas of all operators together{mean}.",
        ),
        image(
            latency_plot(series),
            "Mean latency per interval under each policy, over time",
            f"Mean over the events that left in an interval{most}. Filled: above the target.",
        ),
        image(
            backlog_plot(series),
            "Backlog under each policy, over time",
            f"Source events that had entered and not left at the end of an interval{most}.",
        ),
    ]


def _which(data: ArenaReport, series: ArenaSeries) -> str:
    """Which policies are drawn, and what lies beyond the axis."""
    shown, total = len(series.lines), len(data.results)
    words = "All policies." if shown == total else f"The first {shown} of {total} policies"
    if shown < total:
        words += " in the ranking, the oracle among them." if data.oracle else " in the ranking."
    for label, end_s in series.longer_s.items():
        words += f" {label} had events waiting until {length(end_s)}, which is not drawn."
    return words
