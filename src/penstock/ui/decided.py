"""What was decided in a run, what was refused, who decided, and how it turned out."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from penstock.metrics import schema
from penstock.metrics.scores import DECIDES
from penstock.metrics.store import Store

SHOWN = 12
LOOKED_BACK = 1000  # intervals
_OF_SCORE = ("too_many", "too_few", "late", "nothing_late", "nothing_replicas", "runner_up", "runner_up_late")


def decisions(store: Store, run: str, number: int) -> list[dict[str, Any]]:
    """The last that changed something or failed, newest first, each with the score of all that were made with it."""
    table = schema.decisions.c
    query = (
        sa.select(schema.decisions)
        .where(*_lately(schema.decisions, run, number))
        .where((table.before != table.after) | table.failure.is_not(None))
        .order_by(table.number.desc(), table.operator)
        .limit(SHOWN)
    )
    found = [_without_run(row) for row in store.select(query)]
    scores = _scores(store, run, {row["number"] for row in found}, number)
    return [{**row, "score": scores.get(row["number"])} for row in found]


def _scores(store: Store, run: str, numbers: set[int], until: int) -> dict[int, dict[str, Any]]:
    """The scores of what was decided at the ends of these intervals, as far as they are known at the end of one."""
    if not store.has(schema.scores):
        return {}
    table = schema.scores.c
    query = sa.select(table.number, *(table[name] for name in _OF_SCORE))
    query = query.where(table.run == run, table.role == DECIDES, table.number.in_(numbers), table.number < until)
    return {row.number: {name: getattr(row, name) for name in _OF_SCORE} for row in store.select(query)}


def refusals(store: Store, run: str, number: int) -> list[dict[str, Any]]:
    """What policies wanted and were not let have, by operator and by what they were told; the last first."""
    if not store.has(schema.limits):
        return []
    table, made = schema.limits.c, schema.decisions.c
    both = schema.limits.join(
        schema.decisions, (table.run == made.run) & (table.number == made.number) & (table.operator == made.operator)
    )
    query = (
        sa.select(
            table.operator,
            table.told,
            sa.func.min(table.number).label("first"),
            sa.func.max(table.number).label("last"),
            sa.func.count().label("times"),
            sa.func.min(table.wanted).label("wanted_least"),
            sa.func.max(table.wanted).label("wanted_most"),
            sa.func.max(made.after).label("replicas"),
        )
        .select_from(both)
        .where(*_lately(schema.limits, run, number), made.before == made.after)
        .group_by(table.operator, table.told)
        .order_by(sa.func.max(table.number).desc(), table.operator)
        .limit(SHOWN)
    )
    return [dict(row._mapping) for row in store.select(query)]


def scores_by_policy(store: Store, run: str, number: int) -> list[dict[str, Any]]:
    """How policies did over the last intervals up to this one, who decides first; late events are those of a fluid."""
    if not store.has(schema.scores):
        return []
    table, total = schema.scores.c, sa.func.sum
    seconds = total(table.seconds)
    query = (
        sa.select(
            table.policy,
            table.role,
            sa.func.count().label("intervals"),
            total(table.events).label("events"),
            (total(table.too_many * table.seconds) / seconds).label("too_many"),
            (total(table.too_few * table.seconds) / seconds).label("too_few"),
            total(table.late).label("late"),
            total(table.nothing_late).label("nothing_late"),
            sa.func.avg(table.forecast_error).label("forecast_error"),
            sa.func.avg(table.naive_error).label("naive_error"),
        )
        .where(table.run == run, table.number < number, table.number >= number - LOOKED_BACK)
        .group_by(table.role, table.policy)
        .order_by(table.role, table.policy)
    )
    return [_plain(row) for row in store.select(query)]


def _lately(table: sa.Table, run: str, number: int) -> tuple[Any, ...]:
    return table.c.run == run, table.c.number <= number, table.c.number > number - LOOKED_BACK


def _plain(row: sa.Row[Any]) -> dict[str, Any]:
    """Sums of whole numbers as JSON has them, whatever the database calls them."""
    return {name: int(value) if name == "events" else value for name, value in row._mapping.items()}


def _without_run(row: sa.Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "run"}
