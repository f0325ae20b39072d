"""Operators over time, in as many points as a chart can show."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from penstock.metrics import schema
from penstock.metrics.store import Store
from penstock.ui.series import POINTS


def operator_series(store: Store, run: str, operator: str, points: int = POINTS) -> dict[str, Any]:
    """One operator over time, by its numbers: the mean of rates and busy share, the most of the others."""
    table, times = schema.operators.c, schema.intervals.c
    width, first = _width(store, run, points)
    length = sa.func.sum(sa.case((table.number.is_not(None), times.interval_s)))
    mine = (table.run == times.run) & (table.number == times.number) & (table.operator == operator)
    query = (
        sa.select(
            sa.func.max(table.number).label("number"),
            (sa.func.sum(table.received) / length).label("received"),
            (sa.func.sum(table.processed) / length).label("processed"),
            sa.func.max(table.replicas).label("replicas"),
            sa.func.max(table.pool).label("pool"),
            sa.func.max(table.backlog).label("backlog"),
            sa.func.avg(table.busy_share).label("busy_share"),
            sa.func.max(table.execution_time_s * 1000).label("execution_ms"),
        )
        # An outer join, so that SQLite looks for its row of each interval, and not through those of all operators.
        .select_from(schema.intervals.outerjoin(schema.operators, mine))
        .where(times.run == run)
        .group_by((times.number - first) // width)
        .order_by(sa.func.max(times.number))
    )
    found = [row for row in store.select(query) if row.number is not None]
    names = ("number", "received", "processed", "replicas", "pool", "backlog", "busy_share", "execution_ms")
    return {name: [getattr(row, name) for row in found] for name in names}


def replicas_over_time(store: Store, run: str, points: int = POINTS // 2) -> dict[str, Any]:
    """The replicas of every operator at the end of every so many intervals, and of the last, by their numbers."""
    table = schema.operators.c
    numbers = _chosen(store, run, points)
    query = sa.select(table.number, table.operator, table.replicas).where(table.run == run, table.number.in_(numbers))
    found = store.tuples(query)
    places = {number: place for place, number in enumerate(numbers)}
    replicas: dict[str, list[int | None]] = {name: [None] * len(numbers) for _, name, _ in found}
    for number, name, active in found:
        replicas[name][places[number]] = active
    return {"numbers": numbers, "replicas": replicas}


def _chosen(store: Store, run: str, points: int) -> list[int]:
    """The numbers of so many intervals, evenly spread, with the last."""
    table = schema.intervals.c
    query = sa.select(table.number).where(table.run == run).order_by(table.number.desc())
    numbers = [number for (number,) in store.tuples(query)]
    return numbers[:: max(1, -(-len(numbers) // points))][::-1]


def _width(store: Store, run: str, points: int) -> tuple[int, int]:
    """How many numbers go into one of so many points, and the first number."""
    table = schema.intervals.c
    bounds = sa.select(sa.func.min(table.number).label("first"), sa.func.max(table.number).label("last"))
    found = store.select(bounds.where(table.run == run))[0]
    if found.first is None:
        return 1, 0
    return max(1, -(-(found.last - found.first + 1) // points)), found.first
