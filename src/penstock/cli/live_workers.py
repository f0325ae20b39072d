"""The workers in the live view, and what their managers said last; nothing where there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from penstock.control.step import LoopState
from penstock.metrics.rows import ManagerRow, WorkerRow

WORKERS_SHOWN = 8
WORDS_SHOWN = 4
WIDEST_BAR = 16
_STATE_STYLES = {"starting": "dim", "joining": "dim", "draining": "yellow"}
_WORD_STYLES = {"refused": "yellow", "cancelled": "yellow", "lost": "red", "granted": "green", "done": "green"}


def workers_view(state: LoopState, started_s: float) -> list[RenderableType]:
    """A table of the workers and a few lines below it."""
    seen = state.seen
    if seen is None or seen.levels is None:
        return []
    said = [_line(row, started_s) for row in state.said[-WORDS_SHOWN:]]
    return [Text(_title(seen.levels.workers), style="bold"), _table(seen.levels.workers), *said]


def _title(workers: Sequence[WorkerRow]) -> str:
    """How many there are, by state, and the slots of all.

    >>> _title(())
    'no workers'
    """
    if not workers:
        return "no workers"
    states = ", ".join(f"{count} {state}" for state, count in Counter(one.state for one in workers).items())
    used, slots = sum(one.hosted for one in workers), sum(one.capacity for one in workers)
    return f"workers: {states}; {used} of {slots} slots used"


def _table(workers: Sequence[WorkerRow]) -> Table:
    regions = len({one.region for one in workers}) > 1
    table = Table(header_style="bold", expand=False)
    for name in ("worker", *(["region"] if regions else []), "state", "slots"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    table.add_column("used", justify="right", no_wrap=True)
    shown = workers if len(workers) <= WORKERS_SHOWN else workers[: WORKERS_SHOWN - 1]
    for one in shown:
        use = "–" if one.utilisation is None else f"{one.utilisation:.0%}"
        cells = (one.worker, *([one.region] if regions else []), one.state, _slots(one), use)
        table.add_row(*map(Text, cells), style=_STATE_STYLES.get(one.state))
    if len(shown) < len(workers):
        table.add_row(f"{len(workers) - len(shown)} more", style="dim")
    return table


def _slots(worker: WorkerRow) -> str:
    """Slots taken and free, as boxes where there are few.

    >>> about = {"number": 0, "time_s": 0.0, "worker": "w", "region": "here", "state": "available", "price": 1.0}
    >>> _slots(WorkerRow(**about, capacity=4, hosted=3, utilisation=0.5))
    '■■■□ 3/4'
    """
    taken = f"{worker.hosted}/{worker.capacity}"
    if worker.capacity > WIDEST_BAR:
        return taken
    return f"{'■' * worker.hosted}{'□' * (worker.capacity - worker.hosted)} {taken}"


def _line(row: ManagerRow, started_s: float) -> Text:
    line = Text(f"{row.time_s - started_s:5.0f} s  {row.who} ", overflow="ellipsis", no_wrap=True)
    line.append(row.word, style=_WORD_STYLES.get(row.word, ""))
    return line.append(f" {row.subject}: {row.reason}")
