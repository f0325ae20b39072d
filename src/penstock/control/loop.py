"""The MAPE loop: monitor, analyze, plan, execute, once every interval.

Wladdimiro et al., SBAC-PAD 2022, §IV-B.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from penstock.control.analyze import Analyzer, missed_intervals
from penstock.control.execute import execute
from penstock.control.monitor import Monitor
from penstock.control.ports import Actuator, Clock, Levels, Records
from penstock.control.step import LoopState, Step, interval_record
from penstock.errors import InputError
from penstock.metrics.utilisation import Measure, booked
from penstock.policy.base import Policy, decisions

log = logging.getLogger(__name__)

Result = TypeVar("Result")

SHORTEST_TD_S = 1.0
_CHANGES_SHOWN = 20
_OUTCOMES = {  # of phases that fail, where others go on
    "analyze": "planned by the last rates",
    "record": "the interval is not in the store",
    "infrastructure": "workers stay as they are",
    "levels": "nothing is known of workers",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a loop is made of. Without an analyzer there is no forecast; without a recorder nothing is kept."""

    monitor: Monitor
    policy: Policy
    actuator: Actuator
    analyzer: Analyzer | None = None
    recorder: Records | None = None
    measure: Measure = booked  # of how used replicas are, for the load-balancing grouping
    infrastructure: Callable[[float], None] | None = None  # looks after the workers, after each step
    levels: Levels | None = None  # shows them, after that


class Loop:
    """Runs its parts once every td. Whatever fails, the log says what and why, and the loop goes on."""

    def __init__(self, parts: Parts, clock: Clock) -> None:
        self.td_s = parts.monitor.rules.td_s
        check_td(self.td_s)
        self.state = LoopState()
        self._parts = parts
        self._clock = clock
        self._number = 0
        self._last_s: float | None = None
        self._failures: dict[str, str] = {}  # in this step, by phase
        self._failing: dict[str, str] = {}  # what the log has been told of

    def step(self, now_s: float) -> Step:
        """One interval, as the papers have it. The first only looks where the counters stand."""
        parts, failures = self._parts, self._begin(now_s)
        snapshot = self._try("monitor", parts.monitor.collect, now_s)
        if snapshot is None:
            return self._finish(Step(number=self._number, time_s=now_s, failures=failures))
        forecast = self._try("analyze", parts.analyzer.analyze, snapshot) if parts.analyzer is not None else None
        plan = self._try("plan", parts.policy.plan, snapshot, forecast)
        undone = self._try("execute", execute, parts.actuator, snapshot, plan, parts.measure) if plan else None
        step = Step(
            number=self._number,
            time_s=now_s,
            snapshot=snapshot,
            forecast=forecast,
            plan=plan,
            decisions=decisions(snapshot, plan) if plan else (),
            not_executed=undone or {},
            failures=failures,
        )
        step = self._after(step)
        if parts.recorder is not None:
            self._try("record", parts.recorder.record, interval_record(step, snapshot))
        return self._finish(step)

    def run(self, stop: Callable[[], bool]) -> None:
        """Step at once and then every td, until `stop` says so."""
        due_s = self._clock.now()
        while not stop():
            now_s = self._clock.now()
            self.step(now_s)
            due_s = next_due_s(due_s, now_s, self.td_s)
            self._clock.sleep_until(due_s)

    def _after(self, step: Step) -> Step:
        """Look after the workers, and note how they are."""
        parts = self._parts
        if parts.infrastructure is not None:
            self._try("infrastructure", parts.infrastructure, step.time_s)
        if parts.levels is None:
            return step
        return replace(step, levels=self._try("levels", parts.levels.look, step.number, step.time_s))

    def _begin(self, now_s: float) -> dict[str, str]:
        """Intervals that were missed have numbers too: nothing is known of them."""
        if self._last_s is not None:
            self._number += missed_intervals(self._last_s, now_s, self.td_s)
        self._last_s, self._failures = now_s, {}
        return self._failures

    def _try(self, phase: str, work: Callable[..., Result], *values: object) -> Result | None:
        """The result of one phase; None, and a failure noted, where it raises."""
        try:
            return work(*values)
        except Exception as error:
            self._failures[phase] = f"{type(error).__name__}: {error}"
            return None

    def _finish(self, step: Step) -> Step:
        self._number += 1
        failures = step.failures | {f"execute {name}": reason for name, reason in step.not_executed.items()}
        for phase, reason in failures.items():
            if self._failing.get(phase) != reason:
                outcome = _OUTCOMES.get(phase, "the last plan holds")
                log.warning("interval %d: %s failed: %s; %s", step.number, phase, reason, outcome)
        for phase in self._failing.keys() - failures.keys():
            log.warning("interval %d: %s works again", step.number, phase)
        self._failing = failures
        for decision in step.decisions:
            if decision.changed:
                log.info("interval %d: %s", step.number, decision)
        self.state = self.state.after(step, changes=_CHANGES_SHOWN)
        return step


def check_td(td_s: float) -> None:
    """Raise an InputError unless a loop can run at this interval."""
    if not SHORTEST_TD_S <= td_s < math.inf:
        raise InputError(f"interval: td must be at least {SHORTEST_TD_S:g} s; got {td_s:g} s")


def next_due_s(due_s: float, now_s: float, td_s: float) -> float:
    """When the next step is due: td after the last was, or td from now where the clock jumped or steps were missed.

    >>> next_due_s(10.0, 10.1, 2.0), next_due_s(10.0, 99.0, 2.0), next_due_s(10.0, 3.0, 2.0)
    (12.0, 101.0, 5.0)
    """
    due_s += td_s
    return due_s if 0 < due_s - now_s <= td_s else now_s + td_s
