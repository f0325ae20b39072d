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


def results_table(results: Sequence[SimulationResult]) -> Table:
    """One row a policy, the best first; at most 110 columns wide, for which long names are folded."""
    order = ranking(results)
    rows = [_cells(result) for result in order]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    room = WIDEST - sum(widths) - len(widths)  # for names; 1 column between two others
    loose = max((cell_len(result.policy) for result in order), default=0) + len(widths) <= room
    gap = (0, int(loose), 0, 0)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=gap, pad_edge=False, show_edge=False)
    table.add_column("policy", overflow="fold", max_width=max(room, 1))
    for name in _HEAD:
        table.add_column(name, justify="center" if name == "ok" else "right", no_wrap=True)
    for result, cells in zip(order, rows, strict=True):
        table.add_row(_name(result), *cells)
    return table


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
