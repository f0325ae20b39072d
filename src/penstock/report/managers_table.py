"""What managers proposed, granted and refused: how often, and why."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.metrics.rows import ManagerRow
from penstock.report.markup import Markup, count, duration, element, table
from penstock.report.workers_series import WorkersOverTime

WORDS = ("proposed", "granted", "refused", "done", "cancelled", "lost")
MOST_ROWS = 500
LONGEST = 110  # letters of a reason that are shown without being asked for
_HEAD = ("first at", "times", "manager", "word", "subject", "reason")
_CLASSES = {"granted": "out", "done": "out", "refused": "in", "cancelled": "in", "lost": "failure"}


def managers_tables(series: WorkersOverTime) -> list[Markup]:
    """Counts by manager, and below every word once, with how often it was said."""
    if not series.counts:
        return [element("p", "The managers had nothing to propose.", class_="note")]
    found = together(series.said)
    rows = [
        (duration(first.time_s), count(times), first.who, _word(first.word), first.subject, folded(first.reason))
        for first, times in found[:MOST_ROWS]
    ]
    return [
        element("h3", "Managers"),
        _counts_table(series),
        element("p", *_note(series, len(found)), class_="note"),
        element("div", table(_HEAD, rows, numbers=(0, 1)), class_="managers"),
    ]


def together(said: Iterable[ManagerRow]) -> list[tuple[ManagerRow, int]]:
    """The same words once, in the order in which they first came, and how often they did."""
    found: dict[tuple[str, str, str, str], tuple[ManagerRow, int]] = {}
    for row in said:
        key = row.who, row.word, row.subject, row.reason
        first, times = found.get(key, (row, 0))
        found[key] = first, times + 1
    return list(found.values())


def folded(reason: str) -> object:
    """A reason; of a long one the beginning, and the rest when it is asked for.

    >>> folded("there is a free slot"), folded("because " * 20)[:42]
    ('there is a free slot', '<details><summary>because because because ')
    """
    if len(reason) <= LONGEST:
        return reason
    start = reason[:LONGEST].rsplit(" ", 1)[0]
    return element("details", element("summary", f"{start} …"), f"… {reason[len(start) :].lstrip()}")


def _counts_table(series: WorkersOverTime) -> Markup:
    said = {word for _, word in series.counts}
    words = [*(word for word in WORDS if word in said), *sorted(said - set(WORDS))]
    managers = sorted({who for who, _ in series.counts})
    rows = [(who, *(count(series.counts.get((who, word), 0)) for word in words)) for who in managers]
    return table(("manager", *words), rows, numbers=range(1, len(words) + 1))


def _note(series: WorkersOverTime, different: int) -> list[str]:
    total = sum(series.counts.values())
    notes = ["The same words stand once, where they were first said."]
    if total > len(series.said):
        notes.append(f" Of {count(total)}, the last {count(len(series.said))} were kept.")
    if different > MOST_ROWS:
        notes.append(f" {count(different - MOST_ROWS)} more are left out here.")
    return notes


def _word(word: str) -> Markup:
    return element("span", word, class_=_CLASSES.get(word, "said"))
