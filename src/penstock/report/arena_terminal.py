"""The arena's ranking for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from penstock.report.arena_data import is_oracle, meets, ranking
from penstock.report.arena_tables import late_share
from penstock.report.data import finite
from penstock.report.markup import ABSENT, count, decimal, milliseconds, percent
from penstock.simulator.result import SimulationResult

WIDEST = 110
_HEAD = ("ok", "replica-s", "×oracle", "saved", "proc.", "mean", "p99", "late", "changes", "backlog", "dropped")
_DISPENSABLE = ("backlog", "proc.", "changes", "dropped", "saved", "p99", "replica-s")  # the first to go comes first


def results_table(results: Sequence[SimulationResult], width: int = WIDEST) -> Table:
    """One row a policy, the best first; columns that a narrow terminal has no room for are left out."""
    order = ranking(results)
    rows = [_cells(result) for result in order]
    names = max((cell_len(result.policy) for result in order), default=0)
    shown, loose = _fitting(rows, names, min(width, WIDEST))
    gap = (0, int(loose), 0, 0)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=gap, pad_edge=False, show_edge=False)
    table.add_column("policy", overflow="fold")
    for place in shown:
        table.add_column(_HEAD[place], justify="center" if _HEAD[place] == "ok" else "right", no_wrap=True)
    for result, cells in zip(order, rows, strict=True):
        table.add_row(_name(result), *(cells[place] for place in shown))
    return table


def _fitting(rows: Sequence[Sequence[str]], names: int, width: int) -> tuple[list[int], bool]:
    """The columns that fit beside the names, and whether there is room between them."""
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    shown = list(range(len(_HEAD)))
    for name in ("", *_DISPENSABLE):
        shown = [place for place in shown if _HEAD[place] != name]
        taken = names + sum(widths[place] + 1 for place in shown)
        if taken <= width:
            break
    return shown, taken + len(shown) <= width


def _name(result: SimulationResult) -> Text:
    """The name as it is, whatever rich would make of its brackets; the oracle stands back."""
    shown = "".join(letter if letter.isprintable() else "□" for letter in result.policy)
    return Text(shown, style="dim" if is_oracle(result) else "")


def _cells(result: SimulationResult) -> list[str]:
    latency = result.latency_ms or {}
    return [
        "✓" if meets(result) else "–",
        short(result.replica_seconds),
        decimal(result.oracle_ratio, 2),
        percent(result.saved_resources),
        percent(result.processed_ratio),
        milliseconds(latency.get("mean")),
        milliseconds(latency.get("p99")),
        late_share(result.late_ratio),
        short(result.reconfigurations),
        short(result.max_backlog),
        short(sum((result.dropped or {}).values())),
    ]


def short(value: object) -> str:
    """A whole number that stays short.

    >>> short(61470.4), short(158_112_000), short(None)
    ('61,470', '158 M', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    return count(round(number)) if number < 1e8 else f"{count(round(number / 1e6))} M"
