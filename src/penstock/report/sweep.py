"""A sweep for the terminal and the page: what the promise costs under each policy."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from penstock.report.terminal import WIDEST, plain_table
from penstock.report.text import ABSENT, decimal, percent, several
from penstock.simulator.curves import AtLate, SweepResult
from penstock.simulator.run import ORACLE

_NARROW = 14  # of a column for one trace


def cost_table(result: SweepResult, width: int = WIDEST) -> Table:
    """One row a policy, those that keep the promise on most traces first; traces as far as there is room."""
    room = max(0, (min(width, WIDEST) - 56) // _NARROW)
    traces = result.traces[:room] if len(result.traces) > 1 else []
    table = plain_table(["policy", "kept", "×bound", "as it is", "late", *(_short(one) for one in traces)])
    for one in result.at_late():
        name = Text(one.policy, style="dim" if one.policy == ORACLE else "")
        table.add_row(name, *row_of(result, one), *(_times(one.traces[trace]) for trace in traces))
    return table


def row_of(result: SweepResult, one: AtLate) -> list[str]:
    """On how many traces the promise is kept, at which cost; and cost and lateness without headroom."""
    plain = [each for each in result.curves()[one.policy] if each.factor == 1.0]
    as_it_is = (_times(plain[0].cost), percent(plain[0].late)) if plain else (ABSENT, ABSENT)
    return [f"{one.kept} of {len(result.traces)}", _times(one.cost), *as_it_is]


def promise(result: SweepResult) -> str:
    """Who keeps the promise best, in a sentence.

    The oracle knows what comes, and is no policy.
    """
    best = next((one for one in result.at_late() if one.policy != ORACLE and one.kept), None)
    words = f"at most {100 * result.late:g} % late"
    if best is None:
        return f"No policy keeps the promise ({words}) on any trace, with any headroom that was tried."
    on = "on the trace" if len(result.traces) == 1 else f"on {best.kept} of {several(len(result.traces), 'trace')}"
    return (
        f"{best.policy} keeps the promise ({words}) {on}, with the headroom chosen in hindsight, at "
        f"{decimal(best.cost, 2)} × the replica-seconds that none can do without."
    )


def _times(value: float | None) -> str:
    shown = decimal(value, 2)
    return shown if shown == ABSENT else f"{shown}×"


def _short(trace: str) -> str:
    return trace if len(trace) < _NARROW else trace[: _NARROW - 2] + "…"
