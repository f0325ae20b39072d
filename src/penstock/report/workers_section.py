"""The part of a page that shows the workers: how many, how full, and what their managers decided."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.report.arena_data import ArenaReport
from penstock.report.arena_series import distinct
from penstock.report.data import RunReport
from penstock.report.managers_table import managers_tables
from penstock.report.markup import (
    Markup,
    card,
    count,
    decimal,
    duration,
    element,
    image,
    percent,
    section,
    several,
    table,
)
from penstock.report.workers_plot import compared_plot, workers_plot
from penstock.report.workers_series import WorkersOverTime, simulated_workers, workers_of

TITLE = "Workers"


def run_workers_section(report: RunReport) -> Markup:
    """Of one run; nothing where it had no workers."""
    found = workers_of(report)
    return _section(found) if found is not None else Markup("")


def arena_workers_section(report: ArenaReport) -> Markup:
    """Of one policy as of a run, of several side by side; nothing where none are modelled."""
    shown = [(one.policy, simulated_workers(one)) for one in report.drawn]
    known = [(policy, found) for policy, found in shown if found is not None]
    if not known:
        return Markup("")
    if len(known) == 1:
        return _section(known[0][1])
    labels = distinct([policy for policy, _ in known])
    series = {label: found for label, (_, found) in zip(labels, known, strict=True)}
    return section(TITLE, _comparison(series))


def _section(series: WorkersOverTime) -> Markup:
    caption = (
        "At the end of each interval. Available workers may be used; one that drains gets nothing more, one that "
        "starts nothing yet. Slots offered: of available workers. Used: by active replicas and sources, on any worker."
    )
    if series.pauses:
        caption += " Red: the next shift took over, for which sources stood still."
    alt = "Workers by state, and slots offered and used, over time"
    return section(
        TITLE,
        _cards(series),
        element("div", image(workers_plot(series), alt, caption), class_="below"),
        *_pauses_table(series),
        *managers_tables(series),
    )


def _comparison(series: Mapping[str, WorkersOverTime]) -> Markup:
    caption = "Workers at the end of each interval: available, draining (get nothing more) and starting."
    return image(compared_plot(series), "Workers by state under each policy, over time", caption)


def _cards(series: WorkersOverTime) -> Markup:
    workers, used, offered = series.workers, series.mean(series.used), series.mean(series.offered)
    between = f"{count(round(workers.min()))} to {count(round(workers.max()))}"
    slots = f"{decimal(used, 1)} of {decimal(offered, 1)}"
    shown = [
        card("Workers, mean", decimal(series.mean(workers), 1), between),
        card("Worker-seconds", count(round(series.worker_seconds)), "from start to stop of each"),
        card("Slots used", percent(used / offered if offered else None), slots),
    ]
    if series.pauses:
        longest = decimal(max(one.seconds for one in series.pauses), 1)
        shown.append(card("Pauses of events", count(len(series.pauses)), f"the longest: {longest} s"))
    return element("dl", *shown, class_="cards")


def _pauses_table(series: WorkersOverTime) -> list[Markup]:
    if not series.pauses:
        return []
    rows = [(duration(one.time_s - one.seconds), f"{decimal(one.seconds, 2)} s", one.why) for one in series.pauses]
    total = sum(one.seconds for one in series.pauses)
    words = f"{several(len(rows), 'pause')}, {decimal(total, 1)} s in all"
    return [
        element("h3", "Pauses"),
        element("p", words, class_="note"),
        element("div", table(("at", "sources stood still", "why"), rows, numbers=(0, 1)), class_="snug"),
    ]
