"""A keeper as people read it, and as programs do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from penstock.attached.model.query import QueryState
from penstock.report.text import figure, milliseconds, percent, several

if TYPE_CHECKING:
    from penstock.attached.keeper import Keeper

SAID = 5  # words of managers that are shown


def query_summary(state: QueryState) -> dict[str, Any]:
    """What a query came to: rows, their delays, and what its batches cost."""
    cost, delays = state.cost, state.delays
    found = delays.histogram
    return {
        "trigger_s": state.trigger_s,
        "rows": state.processed,
        "late": delays.late,
        "late_ratio": _number(delays.late / delays.rows if delays.rows else math.nan),
        "delay_ms": {name: _number(found.percentile_ms(q)) for name, q in (("p50", 0.5), ("p99", 0.99))}
        | {"mean": _number(found.mean_ms)},
        "rate": _number(state.rate(state.pace.period_s)),
        "cost": None
        if cost is None
        else {
            "by_row_s": _number(cost.by_row_s),
            "by_batch_s": _number(cost.by_batch_s),
            "fixed_s": _number(cost.fixed_s),
            "spread": _number(cost.spread),
            "surprise": _number(cost.surprise),
        },
        "most_slots": state.most_slots,
    }


def shown(keeper: Keeper) -> str:
    """The queries, the executors, what was decided last and why."""
    lines = [_first(keeper)]
    for state in keeper.monitor.states.values():
        lines += _query(state)
    lines += [f"  decided: {one}" for one in keeper.decisions]
    if keeper.kept is not None:
        lines += [f"  {entry.said}" for entry in keeper.kept.diary.entries[-SAID:]]
    return "\n".join(lines)


def _first(keeper: Keeper) -> str:
    bounds, spent = keeper.options.bounds, figure(keeper.executor_seconds)
    if not keeper.alive:
        how = "not started" if keeper.reason is None else f"stopped, as {keeper.reason}"
        return f"keeper of {keeper.application.id}: {how}; {spent} executor-seconds"
    there, wanted = keeper.application.count(), keeper.wanted_executors
    doing = "asks for" if keeper.options.acting else "would have"
    return (
        f"keeper of {keeper.application.id} ({keeper.options.mode}): {several(there, 'executor')}, {doing} {wanted} "
        f"of {bounds.least} to {bounds.most}; {spent} executor-seconds, {figure(keeper.wanted_seconds)} as planned"
    )


def _query(state: QueryState) -> list[str]:
    found, cost, pace = state.delays.histogram, state.cost, state.pace
    late = percent(state.delays.late / state.delays.rows) if state.delays.rows else "–"
    half, most = (milliseconds(found.percentile_ms(q)) for q in (0.5, 0.99))
    rate, target_s = figure(state.rate(pace.period_s)), state.promise.target_s
    lines = [f"query '{state.name}': {rate} rows/s; p50 {half}, p99 {most}, {late} over {target_s:g} s"]
    if cost is not None:
        lines.append(
            f"  a row takes {figure(1000 * cost.by_row_s)} ms of a slot, a batch {figure(cost.by_batch_s)} s of a slot "
            f"and {figure(cost.fixed_s)} s whatever the slots"
        )
    if state.most_slots is not None:
        lines.append(f"  its state has {state.most_slots} partitions: more slots than that do not help it")
    if note := state.note():
        lines.append(f"  {note}")
    return lines


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
