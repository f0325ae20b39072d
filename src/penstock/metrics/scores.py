"""Decisions scored once it is known what came: replicas, late events, and the forecast beside the last rate.

What was decided at the end of an interval is for the next. When that is over, its numbers say how many replicas would
have been enough; and a fluid, from the state at hand, how many events were late by what was decided, by doing nothing,
and by the best plan that is one replica off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.metrics.fluid import Flow, late_part, slack_s, through_s
from penstock.metrics.paper import replicas_for
from penstock.metrics.rows import IntervalRecord, OperatorRow, PromiseRow, ScoreRow

DECIDES, SHADOW = "decides", "shadow"
TRIED = 4  # operators of which a runner-up has one replica more or less


class Scored:
    """Adds to each interval's record the scores of what was decided before it.

    `policy` is what the run goes by where a record does not say who decided.
    """

    def __init__(self, policy: str, promise: PromiseRow) -> None:
        self.policy = policy
        self.promise = promise
        self._last: IntervalRecord | None = None

    def after(self, record: IntervalRecord) -> IntervalRecord:
        """The record, with the scores of the one before it."""
        last = self._last
        self._last = record = record if record.decided_by else replace(record, decided_by=self.policy)
        return record if last is None else replace(record, scores=scores(last, record, self.promise))


def scores(before: IntervalRecord, after: IntervalRecord, promise: PromiseRow) -> tuple[ScoreRow, ...]:
    """How what was decided at the end of an interval turned out in the next, and what others would have decided.

    Nothing where an interval was missed, or its numbers are not to be trusted.
    """
    now, came = before.interval, after.interval
    untrusted = any(row.incomplete for row in (*before.operators, *after.operators))
    if came.number != now.number + 1 or untrusted or not (came.interval_s > 0 and now.interval_s > 0):
        return ()
    decided = {before.decided_by: {row.operator: row.after for row in before.decisions}} if before.decisions else {}
    shadows: dict[str, dict[str, int]] = {}
    for row in before.shadows:
        shadows.setdefault(row.policy, {})[row.operator] = row.replicas
    known = _Known.of(before, after, promise)
    return (
        *(known.score(policy, DECIDES, plan) for policy, plan in decided.items()),
        *(known.score(policy, SHADOW, plan) for policy, plan in shadows.items() if policy not in decided),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of an interval's end and of the next interval, whoever decided."""

    number: int
    seconds: float
    events: int
    before: Mapping[str, OperatorRow]
    flows: Mapping[str, Flow]  # of operators whose execution time is known
    slack_s: float
    late: float  # that was promised, as a share
    errors: tuple[float | None, float | None]

    @classmethod
    def of(cls, before: IntervalRecord, after: IntervalRecord, promise: PromiseRow) -> _Known:
        """From the records of both intervals."""
        came = {row.operator: row for row in after.operators}
        entered, seconds = after.interval.entered, after.interval.interval_s
        way_s = through_s((row.operator, row.received_by, row.execution_time_s) for row in before.operators)
        return cls(
            number=before.interval.number,
            seconds=seconds,
            events=entered,
            before={row.operator: row for row in before.operators},
            flows={
                row.operator: _flow(row, came[row.operator], after) for row in _timed(before) if row.operator in came
            },
            slack_s=slack_s(promise.target_ms / 1000, way_s),
            late=promise.late,
            errors=_errors(before, after),
        )

    def score(self, policy: str, role: str, plan: Mapping[str, int]) -> ScoreRow:
        """One policy's decisions."""
        planned = {name: _within(plan.get(name, row.replicas), row.pool) for name, row in self.before.items()}
        there = {name: max(1, row.replicas) for name, row in self.before.items()}
        needed = {name: replicas_for(one.rate * one.execution_time_s) for name, one in self.flows.items()}
        spare = [planned[name] - count for name, count in needed.items()]
        return ScoreRow(
            number=self.number,
            policy=policy,
            role=role,
            seconds=self.seconds,
            events=self.events,
            replicas=planned,
            needed=needed,
            too_many=sum(one for one in spare if one > 0),
            too_few=-sum(one for one in spare if one < 0),
            late=self._late(planned),
            nothing_late=self._late(there),
            nothing_replicas=sum(there.values()),
            **self._beside(planned, there),
            forecast_error=self.errors[0],
            naive_error=self.errors[1],
        )

    def _late(self, replicas: Mapping[str, int]) -> float | None:
        return self.events * late_part(self.flows, replicas, self.seconds, self.slack_s) if self.flows else None

    def _beside(self, planned: Mapping[str, int], there: Mapping[str, int]) -> dict[str, Any]:
        """The runner-up, and what it would have come to."""
        found = self._runner_up(planned, there)
        plan = planned if found is None else {**planned, found[0]: found[1]}
        return {
            "runner_up": None if found is None else f"{found[0]} {found[1]}",
            "runner_up_late": None if found is None else self._late(plan),
            "runner_up_replicas": None if found is None else sum(plan.values()),
        }

    def _runner_up(self, planned: Mapping[str, int], there: Mapping[str, int]) -> tuple[str, int] | None:
        """The best plan that is one replica off; one that keeps the promise, or else the least late."""
        changed = [name for name in self.flows if planned[name] != there[name]]
        others = [
            (name, count)
            for name in (changed or list(self.flows))[:TRIED]
            for count in (planned[name] - 1, planned[name] + 1)
            if 1 <= count <= self.before[name].pool and count != there[name]
        ]

        def rank(one: tuple[str, int]) -> tuple[float, int]:
            late = self._late({**planned, one[0]: one[1]}) or 0.0
            return max(0.0, late - self.late * self.events), one[1] - planned[one[0]]

        return min(others, key=rank, default=None)


def _timed(record: IntervalRecord) -> Iterator[OperatorRow]:
    """The operators whose execution time is known."""
    return (row for row in record.operators if row.execution_time_s)


def _flow(row: OperatorRow, came: OperatorRow, after: IntervalRecord) -> Flow:
    entered = after.interval.entered
    part = min(1.0, came.received / entered) if entered else 1.0
    return Flow(came.received / after.interval.interval_s, row.execution_time_s or math.nan, row.backlog, part)


def _within(replicas: int, pool: int) -> int:
    return max(1, min(replicas, pool))


def _errors(before: IntervalRecord, after: IntervalRecord) -> tuple[float | None, float | None]:
    """How far off the forecast was, and the last rate, by what came; of all sources that both are known of."""
    now, came = _rates(before), _rates(after)
    expected = {row.series: row.rate for row in before.forecasts if row.step == 1 and row.series in came}
    return _error(expected, came), _error({name: rate for name, rate in now.items() if name in came}, came)


def _error(expected: Mapping[str, float], came: Mapping[str, float]) -> float | None:
    total = math.fsum(came[name] for name in expected)
    return math.fsum(abs(rate - came[name]) for name, rate in expected.items()) / total if total > 0 else None


def _rates(record: IntervalRecord) -> dict[str, float]:
    interval = record.interval
    return {name: count / interval.interval_s for name, count in interval.source_input.items()}
