"""Spark's dynamic allocation, as a peer where workers come and go."""

from __future__ import annotations

import math

from penstock.common.checks import positive
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Supply
from penstock.policy.parts.window import Largest
from penstock.policy.psps import Psps

BACKLOG_S = 1.0
IDLE_S = 60.0


class DynamicAllocation:
    """Asks for workers as Spark does for executors: twice as many each time, for as long as work has no slot.

    Replicas are those of `psps` with `predecessor_backlog`; one that is wanted is a task, which waits where the workers
    that were asked for have no slot for it. Once some have waited for `backlog_s` (schedulerBacklogTimeout) one worker
    is asked for, then 2, 4, 8, … as long as some wait, every `sustained_s` (sustainedSchedulerBacklogTimeout; the same
    unless set), and never more than all tasks need; then it begins with one again. What was not needed for `idle_s`
    (executorIdleTimeout) is given back. Here tasks make room for that on other workers, so an executor is idle sooner
    than Spark's scheduler, which spreads them, would have it.

    >>> from penstock.testing.loads import load, snapshot
    >>> policy, supply, asked = DynamicAllocation(), Supply(slots=4, joining_s=12.0), []
    >>> for second in range(6):
    ...     clean = load("clean", {"in": 900 if second else 80}, execution_time_s=0.05)
    ...     _ = policy.plan(snapshot({"in": 900 if second else 80}, [clean], time_s=float(second)))
    ...     asked.append(policy.slots_ahead(supply)[0] // 4)
    >>> asked  # 4 replicas, then 45
    [1, 1, 2, 4, 8, 12]

    Apache Spark, "Job scheduling", dynamic resource allocation: request policy, remove policy.
    """

    def __init__(
        self, *, backlog_s: float = BACKLOG_S, sustained_s: float | None = None, idle_s: float = IDLE_S
    ) -> None:
        self.backlog_s = positive("policy 'dynamic_allocation'", "backlog_s", backlog_s)
        self.sustained_s = sustained_s
        if sustained_s is not None:
            positive("policy 'dynamic_allocation'", "sustained_s", sustained_s)
        self.idle_s = positive("policy 'dynamic_allocation'", "idle_s", idle_s)
        self._replicas = Psps(predecessor_backlog=True)
        self._time_s = 0.0
        self._active = self._tasks = 0
        self._asked: int | None = None  # workers, once it is known how many slots one has
        self._more = 1  # to ask for next
        self._due_s = math.inf  # when that is
        self._kept = Largest(self.idle_s)

    def __repr__(self) -> str:
        return f"DynamicAllocation(backlog_s={self.backlog_s:g}, idle_s={self.idle_s:g})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """As many replicas as `psps` wants."""
        plan = self._replicas.plan(snapshot, forecast)
        self._time_s, self._active = snapshot.time_s, snapshot.replicas
        self._tasks = sum(plan.replicas.values())
        return plan

    def slots_ahead(self, supply: Supply) -> tuple[int, str] | None:
        """The slots of all workers that Spark would have asked for, and not given back yet."""
        if not self._tasks:
            return None
        needed = math.ceil((self._tasks + supply.seats) / supply.slots)
        if self._asked is None:
            self._asked = math.ceil((self._active + supply.seats) / supply.slots)
        self._ask(needed)
        kept = self._kept.add(self._time_s, self._asked)
        why = f"{self._tasks} tasks need {needed} workers, {self._asked} are asked for"
        idle = f"; none goes that was needed within {self.idle_s:g} s" if kept > self._asked else ""
        return kept * supply.slots, why + idle

    def _ask(self, needed: int) -> None:
        """Raise what is asked for, as often as it was due; or lower it to what is needed."""
        assert self._asked is not None
        if needed <= self._asked:
            self._asked, self._more, self._due_s = needed, 1, math.inf
            return
        self._due_s = min(self._due_s, self._time_s + self.backlog_s)
        while self._due_s <= self._time_s and self._asked < needed:
            self._asked = min(needed, self._asked + self._more)
            self._more *= 2
            self._due_s += self.sustained_s or self.backlog_s
        if self._asked == needed:
            self._more, self._due_s = 1, math.inf
