"""One step of the loop: what was seen, expected, planned and done; and its rows for the store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.forecast.base import Forecast
from penstock.metrics.rows import (
    DeciderRow,
    DecisionRow,
    ForecastRow,
    IntervalRecord,
    IntervalRow,
    LateRow,
    LevelRows,
    LimitRow,
    ManagerRow,
    OperatorRow,
    ShadowRow,
    TimetableRow,
    WaitingRow,
)
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Beside, Decision, Plan, decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step did. Parts that failed are None, and `failures` says why, by phase."""

    number: int
    time_s: float
    snapshot: Snapshot | None = None
    forecast: Forecast | None = None
    plan: Plan | None = None
    changes: tuple[Decision, ...] = ()  # of replicas
    not_executed: dict[str, str] = field(default_factory=dict)  # why, by operator
    failures: dict[str, str] = field(default_factory=dict)  # why, by phase
    levels: LevelRows | None = None  # where there are workers

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided for each operator, with those that stay as they are; made when somebody asks."""
        return decisions(self.snapshot, self.plan) if self.snapshot and self.plan else ()


@dataclass(frozen=True, slots=True)
class LoopState:
    """What a live view shows: the last step, the last one with a snapshot, the last changes with their times.

    Where there are workers, also what managers said last. `failures`: how often each phase has failed so far.
    """

    last: Step | None = None
    seen: Step | None = None
    changes: tuple[tuple[float, Decision], ...] = ()
    said: tuple[ManagerRow, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)

    def after(self, step: Step, *, changes: int) -> LoopState:
        """The state after one more step, with at most so many changes, and words of managers."""
        new = tuple((step.time_s, decision) for decision in step.changes)
        said = step.levels.managers if step.levels else ()
        seen = step if step.snapshot else self.seen
        failed = {*step.failures, *(("execute",) if step.not_executed else ())}
        failures = {**self.failures, **{phase: self.failures.get(phase, 0) + 1 for phase in failed}}
        return LoopState(step, seen, (*self.changes, *new)[-changes:], (*self.said, *said)[-changes:], failures)


def interval_record(step: Step, snapshot: Snapshot) -> IntervalRecord:
    """A step as rows of the store."""
    latency, decided, beside = snapshot.latency, step.decisions, step.plan.beside if step.plan else None
    return IntervalRecord(
        interval=_interval(step, snapshot),
        operators=tuple(
            _operator(step.number, load, snapshot.incomplete.get(name)) for name, load in snapshot.operators.items()
        ),
        forecasts=_forecasts(step),
        decisions=tuple(_decision(step, decision) for decision in decided),
        limits=tuple(_limit(step.number, one) for one in decided if one.wanted not in (None, one.after)),
        timetables=_timetables(step),
        levels=step.levels or LevelRows(),
        waiting=_waiting(step.number, snapshot),
        lateness=() if latency.late is None else (LateRow(number=step.number, late=latency.late),),
        shadows=_shadows(step, beside) if beside else (),
        deciders=_deciders(step, beside) if beside else (),
        decided_by=beside.policy if beside else "",
    )


def _interval(step: Step, snapshot: Snapshot) -> IntervalRow:
    latency = snapshot.latency
    notes = step.plan.notes if step.plan else ()
    failures = tuple(f"{phase}: {reason}" for phase, reason in step.failures.items())
    return IntervalRow(
        number=step.number,
        time_s=step.time_s,
        interval_s=snapshot.interval_s,
        source_input={name: n for name, n in snapshot.source_input.items() if name not in snapshot.incomplete},
        entered=snapshot.entered,
        source_output=snapshot.source_output,
        replicas=snapshot.replicas,
        backlog=snapshot.backlog,
        dropped=sum(sum(load.dropped.values()) for load in snapshot.operators.values()),
        latency_count=latency.count,
        latency_mean_ms=_finite(latency.mean_ms),
        latency_p50_ms=_finite(latency.p50_ms),
        latency_p99_ms=_finite(latency.p99_ms),
        note="; ".join((*notes, *failures)),
    )


def _operator(number: int, load: OperatorLoad, incomplete: str | None) -> OperatorRow:
    return OperatorRow(
        number=number,
        operator=load.name,
        received=load.received,
        received_by=load.received_by,
        processed=load.processed,
        backlog=load.backlog,
        dropped=sum(load.dropped.values()),
        replicas=load.replicas,
        pool=load.pool,
        busy_share=sum(load.busy_share.values()) / max(1, load.replicas),
        cpu_share=load.cpu_share,
        execution_time_s=load.execution_time_s,
        incomplete=incomplete,
    )


def _waiting(number: int, snapshot: Snapshot) -> tuple[WaitingRow, ...]:
    return tuple(
        WaitingRow(number=number, operator=load.name, held=load.held, booked=load.booked, outside=load.outside)
        for load in snapshot.operators.values()
        if load.held or load.outside or load.booked
    )


def _forecasts(step: Step) -> tuple[ForecastRow, ...]:
    if step.forecast is None:
        return ()
    name = step.forecast.forecaster
    return tuple(
        ForecastRow(number=step.number, series=series, step=ahead, rate=rate, forecaster=name)
        for series, rates in step.forecast.rates.items()
        for ahead, rate in enumerate(rates, start=1)
    )


def _decision(step: Step, decision: Decision) -> DecisionRow:
    return DecisionRow(
        number=step.number,
        operator=decision.operator,
        before=decision.before,
        after=decision.after,
        expected=decision.expected,
        reason=decision.reason,
        failure=step.not_executed.get(decision.operator),
    )


def _timetables(step: Step) -> tuple[TimetableRow, ...]:
    if step.plan is None:
        return ()
    return tuple(
        TimetableRow(number=step.number, operator=operator, step=ahead, replicas=replicas)
        for operator, timetable in step.plan.timetables.items()
        for ahead, replicas in enumerate(timetable, start=1)
    )


def _limit(number: int, one: Decision) -> LimitRow:
    return LimitRow(number=number, operator=one.operator, wanted=one.wanted or 0, told=one.limit or "")


def _shadows(step: Step, beside: Beside) -> tuple[ShadowRow, ...]:
    return tuple(
        ShadowRow(number=step.number, policy=beside.other, operator=name, replicas=one.replicas, reason=one.reason)
        for name, one in beside.targets.items()
    )


def _deciders(step: Step, beside: Beside) -> tuple[DeciderRow, ...]:
    if beside.why is None:
        return ()
    row = DeciderRow(
        number=step.number, time_s=step.time_s, policy=beside.policy, before=beside.before, reason=beside.why
    )
    return (row,)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
