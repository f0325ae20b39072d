"""What an interval leaves in a store, made for its tests."""

from __future__ import annotations

import dataclasses

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
    SteeringRow,
    TimetableRow,
    WaitingRow,
    WorkerRow,
)


def record(number, operators=2):
    interval = IntervalRow(
        number=number,
        time_s=5.0 * number,
        interval_s=5.0,
        source_input={"tweets": 100},
        entered=100,
        source_output=95.5,
        replicas=4,
        backlog=7,
        dropped=0,
        latency_count=95,
        latency_mean_ms=12.5,
        latency_p50_ms=10.0,
        latency_p99_ms=None,
        note="slots do not suffice",
    )
    names = [f"operator-{n:04}" for n in range(operators)]
    return IntervalRecord(
        interval=interval,
        operators=tuple(operator_row(number, name) for name in names),
        forecasts=(ForecastRow(number=number, series="tweets", step=1, rate=21.5, forecaster="drift"),),
        decisions=tuple(
            DecisionRow(number=number, operator=name, before=1, after=2, expected=100.5, reason="θ = 0.5")
            for name in names
        ),
        timetables=tuple(
            TimetableRow(number=number, operator=name, step=step, replicas=1 + step)
            for name in names
            for step in (1, 2)
        ),
        levels=levels(number),
        faults=(FaultRow(number=number, time_s=5.0 * number, cause="a worker was killed", deaths=1, seconds=2.5),),
        lateness=(LateRow(number=number, late=3),),
        checkpoints=(checkpoint_row(number),),
        waiting=tuple(WaitingRow(number=number, operator=name, held=4, booked=2, outside=1) for name in names),
    )


def checkpoint_row(number):
    return CheckpointRow(
        number=number,
        checkpoint=1_000_000_007,
        age_s=3.5,
        took_s=0.02,
        size_bytes=None,
        committed=7,
        given_up=1,
        every_s=10.0,
    )


def levels(number):
    """Two workers, one of which starts; two words a manager, and a pause."""
    worker = WorkerRow(
        number=number,
        time_s=5.0 * number,
        worker="here-1",
        region="here",
        state="available",
        capacity=2,
        hosted=1,
        utilisation=0.35,
        price=1.5,
    )
    said = ManagerRow(
        sequence=2 * number,
        time_s=5.0 * number,
        who="region here",
        word="proposed",
        subject="start a worker of here",
        reason="0 slots are free, 1 should be",
    )
    return LevelRows(
        workers=(worker, dataclasses.replace(worker, worker="here-2", state="starting", hosted=0, utilisation=None)),
        managers=(said, dataclasses.replace(said, sequence=2 * number + 1, who="infrastructure", word="granted")),
        pauses=(PauseRow(time_s=5.0 * number + 1, why="here-2 joined", seconds=2.25),),
    )


def operator_row(number, name):
    return OperatorRow(
        number=number,
        operator=name,
        received=100,
        received_by={"tweets": 100},
        processed=93,
        backlog=7,
        dropped=0,
        replicas=2,
        pool=8,
        busy_share=0.75,
        cpu_share=0.5,
        execution_time_s=None,
        incomplete=None,
    )


def order(number):
    return SteeringRow(
        sequence=number,
        time_s=5.0 * number,
        given_at="2026-01-01T00:00:00Z",
        who="Ana (127.0.0.1)",
        order={"order": "hold", "operator": "clean", "replicas": number + 1},
    )
