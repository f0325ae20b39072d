"""A run at the end of one interval: every operator and what troubles it, the last decisions, workers, checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from penstock.control.orders import parse_order
from penstock.control.steering import after_all, in_words
from penstock.metrics import rows, schema
from penstock.metrics.store import Store
from penstock.ui.decided import Lately

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


def moment(
    store: Store, run: rows.RunRow, number: int, start_s: float, lately: Lately | None = None
) -> dict[str, Any] | None:
    """All that the page shows of this interval, or the last before it; None if there is none.

    Who asks for one interval after the other gives what it knows of the one before.
    """
    found = store.select(_last_interval(), run=run.run, number=number)
    if not found:
        return None
    interval = rows.IntervalRow(**_fields(rows.IntervalRow, found[0]))
    number = interval.number
    seen = _rows(store, rows.OperatorRow, schema.operators, run.run, number)
    until_s, lately = interval.time_s, (lately or Lately(store, run.run)).at(number)
    return {
        "number": number,
        "time_s": round(until_s - start_s, 3),
        "interval": asdict(interval),
        "operators": _operators(store, run, interval, seen),
        "sources": _sources(store, run, interval, [row.operator for row in seen]),
        "decisions": lately.decisions(),
        "refusals": lately.refusals(),
        "scores": lately.scores(),
        "deciders": _last(store, schema.deciders, rows.DeciderRow, run.run, until_s, start_s),
        "workers": [asdict(one) for one in _rows(store, rows.WorkerRow, schema.workers, run.run, number)],
        "managers": _last(store, schema.managers, rows.ManagerRow, run.run, until_s, start_s),
        "pauses": _last(store, schema.pauses, rows.PauseRow, run.run, until_s, start_s),
        "faults": _last(store, schema.faults, rows.FaultRow, run.run, until_s, start_s),
        "checkpoints": _checkpoints(store, run.run, number),
        "steering": _steering(store, run.run, until_s, start_s),
        "promise": _promise(store.promise(run.run), lately),
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
            **values(row),
            "received_rate": row.received / length_s,
            "processed_rate": row.processed / length_s,
            "waiting_s": waiting_s(row, length_s),
            "latency_s": latency_s(row, length_s),
            "held": waits[row.operator].held if row.operator in waits else 0,
            "booked": waits[row.operator].booked if row.operator in waits else 0,
            "outside": waits[row.operator].outside if row.operator in waits else 0,
            "planned": planned.get(row.operator, []),
            "trouble": values(trouble(row, length_s, run.td_s)),
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


def _promise(promise: rows.PromiseRow | None, lately: Lately) -> dict[str, float | None] | None:
    """What was promised, and what share of events was late: in the interval, and up to its end; None if unknown."""
    if promise is None:
        return None
    so_far, now = _share(lately.late, lately.events), _share(lately.late_now, lately.events_now)
    return {**asdict(promise), "so_far": so_far, "now": now}


def _share(late: int, events: int) -> float | None:
    return late / events if events else None


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
    found = store.select(_last_rows(table), run=run, until_s=until_s)
    return [{**_fields(kind, row), "time_s": row.time_s - start_s} for row in found]


def _rows(store: Store, kind: type, table: sa.Table, run: str, number: int) -> list[Any]:
    """The rows of one interval, in the store's own order."""
    if not store.has(table):
        return []
    return [kind(**_fields(kind, row)) for row in store.select(_rows_of_interval(table), run=run, number=number)]


# Made once: to put a query together takes longer than to ask it.


@cache
def _last_interval() -> sa.Select[Any]:
    table = schema.intervals.c
    query = sa.select(schema.intervals).where(table.run == sa.bindparam("run"), table.number <= sa.bindparam("number"))
    return query.order_by(table.number.desc()).limit(1)


@cache
def _last_rows(table: sa.Table) -> sa.Select[Any]:
    order = [one.desc() for one in table.primary_key.columns if one.name != "run"]
    query = sa.select(table).where(table.c.run == sa.bindparam("run"), table.c.time_s <= sa.bindparam("until_s"))
    return query.order_by(*order).limit(SHOWN)


@cache
def _rows_of_interval(table: sa.Table) -> sa.Select[Any]:
    keys = [one for one in table.primary_key.columns if one.name not in ("run", "number")]
    query = sa.select(table).where(table.c.run == sa.bindparam("run"), table.c.number == sa.bindparam("number"))
    return query.order_by(*keys)


def values(row: Any) -> dict[str, Any]:
    """The fields of a row as they are; `asdict` copies what is in them, too, which takes its time."""
    return {name: getattr(row, name) for name in row.__slots__}


def _fields(kind: type, row: sa.Row[Any]) -> dict[str, Any]:
    """What a row of the store has for a class of rows: its columns are the run, and then the fields."""
    return dict(zip(kind.__slots__, row[1:], strict=True))  # type: ignore[attr-defined]
