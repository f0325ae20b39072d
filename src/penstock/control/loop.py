"""The MAPE loop: monitor, analyze, plan, execute, once every interval, and when it is woken.

Wladdimiro et al., SBAC-PAD 2022, §IV-B.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from penstock.control.analyze import missed_intervals
from penstock.control.execute import execute
from penstock.control.ports import Actuator, Analyzes, Clock, Levels, Monitors, Records, Wakes
from penstock.control.step import LoopState, Step, interval_record
from penstock.errors import InputError
from penstock.metrics.utilisation import Measure, booked
from penstock.policy.base import Policy, changes

log = logging.getLogger(__name__)

Result = TypeVar("Result")

SHORTEST_TD_S = 0.2
_CHANGES_SHOWN = 20
_OUTCOMES = {  # of phases that fail, where others go on
    "analyze": "planned by the last rates",
    "record": "the interval is not in the store",
    "infrastructure": "workers stay as they are",
    "levels": "nothing is known of workers",
    "steer": "orders are not carried out",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a loop is made of. Without an analyzer there is no forecast; without a recorder nothing is kept."""

    monitor: Monitors
    policy: Policy
    actuator: Actuator
    analyzer: Analyzes | None = None
    recorder: Records | None = None
    measure: Measure = booked  # of how used replicas are, for the load-balancing grouping
    infrastructure: Callable[[float], None] | None = None  # looks after the workers, after each step
    levels: Levels | None = None  # shows them, after that
    steer: Callable[[Parts], Parts] | None = None  # gives the parts as a person wants them, before each plan


class Loop:
    """Runs its parts once every td, and in between when it is woken.

    Whatever fails, the log says what and why, and the loop goes on.
    """

    def __init__(self, parts: Parts, clock: Clock) -> None:
        self.td_s = parts.monitor.rules.td_s
        check_td(self.td_s)
        self.state = LoopState()
        self._parts = parts
        self._clock = clock
        self._number = 0
        self._last_s: float | None = None
        self._wanted = threading.Event()  # somebody wants a step before the next is due
        self._jump: Mapping[str, float] | None = None  # why
        self._cut = False  # the last step came before its time
        self._failures: dict[str, str] = {}  # in this step, by phase
        self._failing: dict[str, str] = {}  # what the log has been told of

    def step(self, now_s: float, *, woken: bool = False, jump: Mapping[str, float] | None = None) -> Step:
        """One interval, as the papers have it. The first only looks where the counters stand.

        `woken`: it ends before its time; `jump`: the rates of the sources at its end, if these have jumped.
        """
        failures = self._begin(now_s)
        cut, self._cut = woken or self._cut, woken
        snapshot = self._try("monitor", self._parts.monitor.collect, now_s, cut)
        parts = self._steered()
        if snapshot is None:
            return self._finish(Step(number=self._number, time_s=now_s, failures=failures))
        if jump or snapshot.td_s != self.td_s:
            snapshot = replace(snapshot, td_s=self.td_s, jump=jump or {})
        forecast = self._try("analyze", parts.analyzer.analyze, snapshot) if parts.analyzer is not None else None
        plan = self._try("plan", parts.policy.plan, snapshot, forecast)
        undone = self._try("execute", execute, parts.actuator, snapshot, plan, parts.measure) if plan else None
        step = Step(
            number=self._number,
            time_s=now_s,
            snapshot=snapshot,
            forecast=forecast,
            plan=plan,
            changes=changes(snapshot, plan) if plan else (),
            not_executed=undone or {},
            failures=failures,
        )
        step = self._after(step)
        if parts.recorder is not None:
            self._try("record", parts.recorder.record, interval_record(step, snapshot))
        return self._finish(step)

    def run(self, stop: Callable[[], bool]) -> None:
        """Step at once and then every td, and when woken, until `stop` says so."""
        due_s = self._clock.now()
        while not stop():
            now_s, woken = self._clock.now(), self._wanted.is_set()
            self._wanted.clear()
            jump, self._jump = self._jump, None
            early = woken and now_s < due_s
            self.step(now_s, woken=early, jump=jump)
            if not early or due_s - now_s < SHORTEST_TD_S:
                due_s = next_due_s(due_s, now_s, self.td_s)
            self._sleep(due_s, min(due_s, now_s + SHORTEST_TD_S), stop)

    def wake(self, jump: Mapping[str, float] | None = None) -> None:
        """Something happened that cannot wait: step now, or 0.2 s after the last step; from any thread.

        `jump`: the rates to which sources have jumped, per second.
        """
        self._jump = jump or self._jump
        self._wanted.set()
        if isinstance(self._clock, Wakes):
            self._clock.wake()

    def _sleep(self, due_s: float, soonest_s: float, stop: Callable[[], bool]) -> None:
        """Until a step is due, or wanted and not too soon after the last."""
        self._clock.sleep_until(soonest_s)
        while self._wanted.is_set() and self._clock.now() < soonest_s and not stop():
            self._clock.sleep_until(soonest_s)
        if not self._wanted.is_set():
            self._clock.sleep_until(due_s)

    def _steered(self) -> Parts:
        """The parts with all orders carried out that came since the last step."""
        if self._parts.steer is not None:
            self._parts = self._try("steer", self._parts.steer, self._parts) or self._parts
            self.td_s = self._parts.monitor.rules.td_s
        return self._parts

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
        for decision in step.changes:
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
    return due_s if 0 < due_s - now_s <= td_s + SHORTEST_TD_S else now_s + td_s
