"""The store's tables, made from the row classes: a column for each field, under the same name.

Version 2 added the table `timetables`, version 3 `workers`, `managers` and `pauses`, version 4 `faults`, version 5
`waiting`, version 6 `steering`, version 7 `promises` and `lateness`, version 8 `scores`, `limits`,
`shadows` and `deciders`, version 9 `checkpoints`; the others stay as they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

import sqlalchemy as sa

from penstock.metrics.rows import (
    CheckpointRow,
    DeciderRow,
    DecisionRow,
    FaultRow,
    ForecastRow,
    IntervalRow,
    LateRow,
    LimitRow,
    ManagerRow,
    OperatorRow,
    PauseRow,
    PromiseRow,
    RunRow,
    ScoreRow,
    ShadowRow,
    SteeringRow,
    TimetableRow,
    WaitingRow,
    WorkerRow,
)

VERSION = 9  # grows with every change of the tables
OLDEST = 1  # that lacks nothing but whole tables, which can be added

_TYPES: dict[type, sa.types.TypeEngine[Any]] = {
    int: sa.BigInteger(),
    float: sa.Double(),
    str: sa.Text(),
    Mapping: sa.JSON(),
}

metadata = sa.MetaData()


def _columns(row: type, keys: tuple[str, ...]) -> list[sa.Column[Any]]:
    hints = get_type_hints(row)
    return [_column(field.name, hints[field.name], keys) for field in dataclasses.fields(row)]


def _column(name: str, hint: Any, keys: tuple[str, ...]) -> sa.Column[Any]:
    choices = [one for one in get_args(hint) if one is not type(None)]
    optional = type(None) in get_args(hint)
    kind = choices[0] if optional else (get_origin(hint) or hint)
    return sa.Column(name, _TYPES[kind], primary_key=name in keys, nullable=optional, autoincrement=False)


def _table(name: str, row: type, *keys: str) -> sa.Table:
    run = sa.Column("run", sa.Text(), sa.ForeignKey("runs.run"), primary_key=True)
    return sa.Table(name, metadata, run, *_columns(row, keys))


schema_version = sa.Table("schema_version", metadata, sa.Column("version", sa.Integer, primary_key=True))
runs = sa.Table("runs", metadata, *_columns(RunRow, ("run",)))
intervals = _table("intervals", IntervalRow, "number")
operators = _table("operators", OperatorRow, "number", "operator")
forecasts = _table("forecasts", ForecastRow, "number", "series", "step")
decisions = _table("decisions", DecisionRow, "number", "operator")
timetables = _table("timetables", TimetableRow, "number", "operator", "step")
workers = _table("workers", WorkerRow, "number", "worker")
managers = _table("managers", ManagerRow, "sequence")
pauses = _table("pauses", PauseRow, "time_s", "why")
faults = _table("faults", FaultRow, "number")
waiting = _table("waiting", WaitingRow, "number", "operator")
steering = _table("steering", SteeringRow, "sequence")
promises = _table("promises", PromiseRow)
lateness = _table("lateness", LateRow, "number")
scores = _table("scores", ScoreRow, "number", "policy")
limits = _table("limits", LimitRow, "number", "operator")
shadows = _table("shadows", ShadowRow, "number", "policy", "operator")
deciders = _table("deciders", DeciderRow, "number")
checkpoints = _table("checkpoints", CheckpointRow, "number")

SINCE = {  # the version that brought the table; the others were there from the beginning
    timetables: 2,
    **dict.fromkeys((workers, managers, pauses), 3),
    faults: 4,
    waiting: 5,
    steering: 6,
    **dict.fromkeys((promises, lateness), 7),
    **dict.fromkeys((scores, limits, shadows, deciders), 8),
    checkpoints: 9,
}
