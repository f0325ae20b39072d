"""A run at the end of one interval: every operator and what troubles it, the last decisions, workers, checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from penstock.control.orders import parse_order
from penstock.control.steering import after_all, in_words
from penstock.metrics import rows, schema
from penstock.metrics.store import Store
from penstock.ui.decided import decisions, refusals, scores_by_policy

SHOWN = 12  # words of managers, faults, orders
NEARLY_BUSY = 0.85
BUSY_AT_POOL = 0.7
OLD_INTERVALS = 5  # between checkpoints: as old as the last may be, as in the alert
_CALM, _WARNING, _BAD = "calm", "warning", "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How an operator does, in a word for the colour and in sentences."""

    level: str
    why: tuple[str, ...]


def trouble(row: rows.OperatorRow, interval_s: float, td_s: float) -> Trouble:
    """What is wrong with an operator, worst first.

    Its backlog is a matter of time: what it would take to work it off at the pace of the interval.
    """
    bad, warning = [], []
    waits_s = waiting_s(row, interval_s)
    if row.incomplete is not None:
        bad.append(f"numbers are not to be trusted: {row.incomplete}")
    if row.dropped:
        bad.append(f"dropped {row.dropped:,} events")
    if row.backlog and (waits_s is None or waits_s > td_s):
        bad.append("backlog is more than it gets done in an interval")
    elif waits_s is not None and waits_s > td_s / 4:
        warning.append("backlog is more than a quarter of what it gets done in an interval")
    if row.busy_share > NEARLY_BUSY:
        warning.append(f"replicas are {row.busy_share:.0%} busy")
    if row.replicas >= row.pool and row.busy_share > BUSY_AT_POOL:
        warning.append("all replicas of its pool are active")
    return Trouble(level=_BAD if bad else _WARNING if warning else _CALM, why=(*bad, *warning))


def waiting_s(row: rows.OperatorRow, interval_s: float) -> float | None:
    """How long its backlog takes at the pace of the interval; None where there is none, and events wait."""
    if not row.backlog:
        return 0.0
    return row.backlog * interval_s / row.processed if row.processed else None


def latency_s(row: rows.OperatorRow, interval_s: float) -> float | None:
    """About how long an event that comes now will be here: what its backlog takes, and its own execution time."""
    waits_s = waiting_s(row, interval_s)
    return None if waits_s is None or row.execution_time_s is None else waits_s + row.execution_time_s


def moment(store: Store, run: rows.RunRow, number: int, start_s: float) -> dict[str, Any] | None:
    """All that the page shows of this interval, or the last before it; None if there is none."""
    table = schema.intervals.c
    query = sa.select(schema.intervals).where(table.run == run.run, table.number <= number)
    found = store.select(query.order_by(table.number.desc()).limit(1))
    if not found:
        return None
    interval = rows.IntervalRow(**_without_run(found[0]))
    number = interval.number
    seen = _rows(store, rows.OperatorRow, schema.operators, run.run, number)
    until_s = interval.time_s
    return {
        "number": number,
        "time_s": round(until_s - start_s, 3),
        "interval": asdict(interval),
        "operators": _operators(store, run, interval, seen),
        "sources": _sources(store, run, interval, [row.operator for row in seen]),
        "decisions": decisions(store, run.run, number),
        "refusals": refusals(store, run.run, number),
        "scores": scores_by_policy(store, run.run, number),
        "deciders": _last(store, schema.deciders, rows.DeciderRow, run.run, until_s, start_s),
        "workers": [asdict(one) for one in _rows(store, rows.WorkerRow, schema.workers, run.run, number)],
        "managers": _last(store, schema.managers, rows.ManagerRow, run.run, until_s, start_s),
        "pauses": _last(store, schema.pauses, rows.PauseRow, run.run, until_s, start_s),
        "faults": _last(store, schema.faults, rows.FaultRow, run.run, until_s, start_s),
        "checkpoints": _checkpoints(store, run.run, number),
        "steering": _steering(store, run.run, until_s, start_s),
        "promise": _promise(store, run.run, number),
    }


def _checkpoints(store: Store, run: str, number: int) -> dict[str, Any] | None:
    """How checkpoints went at the end of the interval, and whether the last is too old; None where there are none."""
    for row in _rows(store, rows.CheckpointRow, schema.checkpoints, run, number):
        return {**asdict(row), "old": row.age_s > OLD_INTERVALS * row.every_s}
    return None


def _operators(
    store: Store, run: rows.RunRow, interval: rows.IntervalRow, seen: Sequence[rows.OperatorRow]
) -> list[dict[str, Any]]:
    number, length_s = interval.number, max(interval.interval_s, 1e-9)
    waits = {one.operator: one for one in _rows(store, rows.WaitingRow, schema.waiting, run.run, number)}
    planned: dict[str, list[int]] = {}
    for step in _rows(store, rows.TimetableRow, schema.timetables, run.run, number):
        planned.setdefault(step.operator, []).append(step.replicas)
    return [
        {
            **asdict(row),
            "received_rate": row.received / length_s,
            "processed_rate": row.processed / length_s,
            "waiting_s": waiting_s(row, length_s),
            "latency_s": latency_s(row, length_s),
            "held": waits[row.operator].held if row.operator in waits else 0,
            "booked": waits[row.operator].booked if row.operator in waits else 0,
            "outside": waits[row.operator].outside if row.operator in waits else 0,
            "planned": planned.get(row.operator, []),
            "trouble": asdict(trouble(row, length_s, run.td_s)),
        }
        for row in seen
    ]


def _sources(
    store: Store, run: rows.RunRow, interval: rows.IntervalRow, operators: Sequence[str]
) -> list[dict[str, Any]]:
    """What entered by source, per second, and what is expected of the next intervals."""
    expected: dict[str, list[float]] = {}
    for one in _rows(store, rows.ForecastRow, schema.forecasts, run.run, interval.number):
        if one.series not in operators:
            expected.setdefault(one.series, []).append(one.rate)
    length_s = max(interval.interval_s, 1e-9)
    return [
        {"name": name, "rate": count / length_s, "expected": expected.get(name, [])}
        for name, count in interval.source_input.items()
    ]


def _promise(store: Store, run: str, number: int) -> dict[str, float | None] | None:
    """What was promised, and what share of events was late: in the interval, and up to its end; None if unknown."""
    promise = store.promise(run)
    if promise is None:
        return None
    late, seen = schema.lateness.c, schema.intervals.c
    both = schema.lateness.join(schema.intervals, (late.run == seen.run) & (late.number == seen.number))
    sums = sa.func.sum(late.late).label("late"), sa.func.sum(seen.latency_count).label("events")
    query = sa.select(*sums).select_from(both).where(late.run == run)
    (so_far,), (now,) = (
        store.select(query.where(late.number <= number)),
        store.select(query.where(late.number == number)),
    )
    return {**asdict(promise), "so_far": _share(so_far), "now": _share(now)}


def _share(row: sa.Row[Any]) -> float | None:
    return int(row.late) / int(row.events) if row.events else None


def _steering(store: Store, run: str, until_s: float, start_s: float) -> dict[str, Any]:
    """The orders up to that time, newest first, each in words, and what was in force then."""
    given = [one for one in store.steering(run) if one.time_s <= until_s]
    orders = [parse_order(one.order) for one in given]
    told = [
        {"time_s": one.time_s - start_s, "given_at": one.given_at, "who": one.who, "told": str(order)}
        for one, order in zip(given, orders, strict=True)
    ]
    return {"orders": told[: -SHOWN - 1 : -1], "in_force": in_words(after_all(orders))}


def _last(store: Store, table: sa.Table, kind: type, run: str, until_s: float, start_s: float) -> list[dict[str, Any]]:
    """The last rows of a table that has times, newest first; times are since the start."""
    if not store.has(table):
        return []
    order = [one.desc() for one in table.primary_key.columns if one.name != "run"]
    query = sa.select(table).where(table.c.run == run, table.c.time_s <= until_s).order_by(*order).limit(SHOWN)
    names = [one.name for one in fields(kind)]
    found = store.select(query)
    return [{**{name: getattr(row, name) for name in names}, "time_s": row.time_s - start_s} for row in found]


def _rows(store: Store, kind: type, table: sa.Table, run: str, number: int) -> list[Any]:
    """The rows of one interval, in the store's own order."""
    if not store.has(table):
        return []
    query = sa.select(table).where(table.c.run == run, table.c.number == number)
    keys = [one for one in table.primary_key.columns if one.name not in ("run", "number")]
    return [kind(**_without_run(row)) for row in store.select(query.order_by(*keys))]


def _without_run(row: sa.Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "run"}
