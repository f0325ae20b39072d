"""The tables of the page: decisions with their reasons, what went wrong, and totals by operator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import groupby

from penstock.metrics.rows import DecisionRow, OperatorRow
from penstock.report import markup
from penstock.report.data import RunReport, finite
from penstock.report.markup import (
    ABSENT,
    Markup,
    count,
    decimal,
    duration,
    element,
    milliseconds,
    percent,
    several,
    swatch,
)
from penstock.report.palette import operator_colour
from penstock.report.series import operators_in_order

MOST_ROWS = 500


def decisions_table(report: RunReport) -> Markup:
    """The decisions that changed something, in order, with their reasons."""
    title, changes = "Decisions", report.changes
    if not changes:
        return markup.section(title, element("p", "No decision changed the replicas of an operator.", class_="note"))
    ends_s, colours = report.ends_s(), _colours(report)
    rows = [
        (
            count(row.number),
            duration(ends_s.get(row.number)),
            swatch(colours.get(row.operator, operator_colour(0)), row.operator),
            _change(row),
            _reason(row),
        )
        for row in changes[:MOST_ROWS]
    ]
    head = ("interval", "time", "operator", "replicas", "reason")
    return markup.section(
        title,
        element("p", f"{_changes_in_words(changes)}; decisions that kept what was are not listed.", class_="note"),
        markup.table(head, rows, numbers=(0, 1)),
        *_left_out(len(changes), "decisions"),
    )


def notes_table(report: RunReport) -> Markup:
    """What went wrong and what plans said of the whole; the same words once, with how often they were said."""
    title, found = "Notes and failures", _notes(report)
    if not found:
        return markup.section(title, element("p", "Nothing to note.", class_="note"))
    ends_s = report.ends_s()
    rows = [
        (spans(numbers), duration(ends_s.get(numbers[0])), said) for said, numbers in list(found.items())[:MOST_ROWS]
    ]
    return markup.section(
        title,
        markup.table(("intervals", "first at", "note"), rows, numbers=(1,)),
        *_left_out(len(found), "notes"),
    )


def operators_table(report: RunReport) -> Markup:
    """What each operator did in the whole run."""
    title, rows = "Operators", _by_operator(report.operators)
    if not rows:
        return markup.section(title, element("p", "No operators were recorded.", class_="note"))
    colours = _colours(report)
    head = ("operator", "received", "processed", "dropped", "peak backlog", "final backlog")
    more = ("mean replicas", "range, of pool", "busy share", "execution time")
    body = [_totals(report, swatch(colours[name], name), rows[name]) for name in colours]
    return markup.section(title, markup.table((*head, *more), body, numbers=range(1, 10)))


def spans(numbers: Iterable[int]) -> str:
    """Interval numbers, those in a row as a span.

    >>> spans([3, 4, 5, 9]), spans([1, 3, 5, 7, 9])
    ('3–5, 9', '1, 3, 5, … (5 intervals)')
    """
    ordered = sorted(set(numbers))
    groups = [[n for _, n in group] for _, group in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])]
    words = [str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}" for group in groups]
    return ", ".join(words) if len(words) <= 3 else f"{', '.join(words[:3])}, … ({len(ordered)} intervals)"


def _colours(report: RunReport) -> dict[str, str]:
    return {name: operator_colour(index) for index, name in enumerate(operators_in_order(report.operators))}


def _change(row: DecisionRow) -> Markup:
    up = row.after > row.before
    return element("span", f"{row.before} → {row.after} {'▲' if up else '▼'}", class_="out" if up else "in")


def _reason(row: DecisionRow) -> object:
    if row.failure is None:
        return row.reason
    return Markup(markup.text(row.reason) + element("span", f"not carried out: {row.failure}", class_="failure"))


def _changes_in_words(changes: list[DecisionRow]) -> str:
    out = sum(row.after > row.before for row in changes)
    inward = several(len(changes) - out, "scale-in")
    return f"{several(len(changes), 'change')}: {several(out, 'scale-out')}, {inward}"


def _left_out(total: int, what: str) -> list[Markup]:
    if total <= MOST_ROWS:
        return []
    return [
        element("p", f"{count(total - MOST_ROWS)} more {what} are left out here; the store has all.", class_="note")
    ]


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


def _by_operator(rows: Iterable[OperatorRow]) -> dict[str, list[OperatorRow]]:
    found: dict[str, list[OperatorRow]] = {}
    for row in rows:
        found.setdefault(row.operator, []).append(row)
    return found


def _totals(report: RunReport, name: Markup, rows: list[OperatorRow]) -> tuple[object, ...]:
    last, replicas = rows[-1], [row.replicas for row in rows]
    times_s = [row.execution_time_s for row in rows if finite(row.execution_time_s) is not None]
    busy = [row.busy_share for row in rows if math.isfinite(row.busy_share)]
    return (
        name,
        count(_total(report, last.operator, "received", sum(row.received for row in rows))),
        count(_total(report, last.operator, "processed", sum(row.processed for row in rows))),
        count(_total(report, last.operator, "dropped", sum(row.dropped for row in rows))),
        count(max(row.backlog for row in rows)),
        count(last.backlog),
        decimal(math.fsum(replicas) / len(replicas), 1),
        f"{count(min(replicas))}–{count(max(replicas))} of {count(last.pool)}",
        percent(math.fsum(busy) / len(busy)) if busy else ABSENT,
        milliseconds(times_s[-1] * 1000) if times_s and times_s[-1] is not None else ABSENT,
    )


def _total(report: RunReport, operator: str, name: str, counted: int) -> float:
    """As the summary says, which counts also what came after the last interval; or over the intervals."""
    operators = report.summary.get("operators")
    said = operators.get(operator) if isinstance(operators, Mapping) else None
    value = said.get(name) if isinstance(said, Mapping) else None
    if isinstance(value, Mapping):  # by sender or by cause
        value = sum(one for one in map(finite, value.values()) if one is not None)
    number = finite(value)
    return counted if number is None else number
