"""A store with a run of two operators in three intervals, and its dashboard on a free port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.metrics.rows import (
    CheckpointRow,
    DecisionRow,
    FaultRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    LateRow,
    LevelRows,
    ManagerRow,
    OperatorRow,
    PauseRow,
    PromiseRow,
    RunRow,
    TimetableRow,
    WaitingRow,
    WorkerRow,
)
from penstock.metrics.store import Store
from penstock.ui.listen import Listen
from penstock.ui.server import serving

RUN = "words-1"
TD_S = 2.0
Make = Callable[[int], IntervalRecord]


def operator(number: int, name: str, sender: str, **changes: object) -> OperatorRow:
    values: dict[str, object] = {
        "received": 100 + number,
        "received_by": {sender: 100 + number},
        "processed": 100,
        "backlog": 10 * number,
        "dropped": 0,
        "replicas": number,
        "pool": 8,
        "busy_share": 0.5,
        "cpu_share": 0.4,
        "execution_time_s": 0.01,
        "incomplete": None,
    }
    return OperatorRow(number=number, operator=name, **{**values, **changes})  # type: ignore[arg-type]


def checkpoint(number: int) -> CheckpointRow:
    """None in the first interval; from the third on the last one is too old."""
    last = number - 1 or None
    return CheckpointRow(
        number=number,
        checkpoint=last,
        age_s=25.0 * number,
        took_s=None if last is None else 0.02 * last,
        size_bytes=None if last is None else 1000 * last,
        committed=number - 1,
        given_up=number // 3,
        every_s=10.0,
    )


def record(number: int) -> IntervalRecord:
    """Interval `number`, which ends at 10 s + 2 s · number by the run's clock."""
    time_s = 10.0 + TD_S * number
    rows = (operator(number, "split", "lines"), operator(number, "count", "split"))
    return IntervalRecord(
        interval=IntervalRow(
            number=number,
            time_s=time_s,
            interval_s=TD_S,
            source_input={"lines": 200 * number},
            entered=200 * number,
            source_output=190.0 * number,
            replicas=2 * number,
            backlog=20 * number,
            dropped=0,
            latency_count=number,
            latency_mean_ms=12.5 * number,
            latency_p50_ms=10.0 * number,
            latency_p99_ms=None if number == 2 else 90.0,
        ),
        operators=rows,
        forecasts=tuple(
            ForecastRow(number=number, series=series, step=step, rate=100.0 * number + 10 * step, forecaster="drift")
            for series in ("lines", "count")
            for step in (1, 2)
        ),
        decisions=tuple(
            DecisionRow(
                number=number, operator=row.operator, before=number, after=number + 1, expected=1.0, reason=f"r{number}"
            )
            for row in rows
        ),
        timetables=(TimetableRow(number=number, operator="count", step=1, replicas=number + 1),),
        levels=LevelRows(
            workers=(
                WorkerRow(
                    number=number,
                    time_s=time_s,
                    worker="w0",
                    region="here",
                    state="available",
                    capacity=4,
                    hosted=2,
                    utilisation=0.5,
                    price=1.0,
                ),
            ),
            managers=(
                ManagerRow(sequence=number, time_s=time_s, who="operator", word="granted", subject="s", reason="why"),
            ),
            pauses=(PauseRow(time_s=time_s, why="a worker came", seconds=0.02),) if number == 3 else (),
        ),
        lateness=(LateRow(number=number, late=1 if number == 3 else 0),),
        waiting=(WaitingRow(number=number, operator="split", held=1, booked=2 * number, outside=3),),
        checkpoints=(checkpoint(number),),
        faults=(FaultRow(number=1, time_s=time_s - 1, cause="worker lost", deaths=1, seconds=1.5),)
        if number == 2
        else (),
    )


@pytest.fixture
def make() -> Make:
    return record


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A store with intervals 1 to 3 of a run that goes on."""
    with closing(Store(str(tmp_path / "metrics.db"))) as store:
        run = RunRow(run=RUN, topology="words", policy="psps", td_s=TD_S, started_at="2026-01-01T00:00:00Z")
        store.start_run(run, PromiseRow(late=0.01, target_ms=80.0))
        for number in (1, 2, 3):
            store.write(RUN, record(number))
    return str(tmp_path / "metrics.db")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with closing(Store(place)) as opened:
        yield opened


@pytest.fixture
def url(store: Store) -> Iterator[str]:
    """The address of the dashboard."""
    with serving(store, Listen(port=0)) as address:
        yield address
