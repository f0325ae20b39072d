"""No more changes than do good: a bound on how often an operator's replicas change."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.checks import positive
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, Target, inside

PER_MINUTE = 60.0
BURST_S = 10.0  # the changes of so long may come at once
MOVE_LATENCY_S = 0.1  # of state, until it is there, beside what its size takes
MOVE_BYTES_PER_S = 10e6
MOVING = 0.05  # of the time may be spent on moving state


class Calm:
    """At most `per_minute` changes of each operator, in the long run; scale-out is never held.

    An allowance of changes grows with time, up to that of 10 s, and every change that is carried out takes one. As long
    as there is none, scale-in waits: each scale-out needs a scale-in before the next, so both are bounded. Where state
    moves with a change, the allowance is smaller: moving all of it may take a twentieth of the time. Policies that have
    a price for that themselves (`move`) weigh it on their own.

        per minute ≤ 60 · 0.05 / (0.1 s + bytes / 10 MB/s)      with state
    """

    def __init__(self, policy: Policy, *, per_minute: float = PER_MINUTE) -> None:
        self.policy = policy
        self.per_minute = positive("guard 'calm'", "per_minute", per_minute)
        self._priced = any(hasattr(one, "move") for one in inside(policy))
        self._time_s: float | None = None
        self._seen: dict[str, int] = {}  # replicas in the snapshot before
        self._left: dict[str, float] = {}  # changes that are allowed now

    def __repr__(self) -> str:
        return f"Calm({self.policy!r}, per_minute={self.per_minute})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, without scale-ins that would be too many."""
        plan = self.policy.plan(snapshot, forecast)
        passed_s = 0.0 if self._time_s is None else max(0.0, snapshot.time_s - self._time_s)
        self._time_s = snapshot.time_s
        self._left = {name: self._allowed(load, passed_s) for name, load in snapshot.operators.items()}
        self._seen = {name: len(load.active) for name, load in snapshot.operators.items()}
        held = {
            name: self._held(target, snapshot.operators[name])
            for name, target in plan.targets.items()
            if target.replicas < self._seen[name] and self._left[name] < 1 - 1e-9
        }
        return replace(plan, targets={**plan.targets, **held}) if held else plan

    def rate(self, load: OperatorLoad) -> float:
        """Changes per minute that the operator may have."""
        if load.state_bytes <= 0 or self._priced:
            return self.per_minute
        move_s = MOVE_LATENCY_S + load.state_bytes / MOVE_BYTES_PER_S
        return min(self.per_minute, 60 * MOVING / move_s)

    def _allowed(self, load: OperatorLoad, passed_s: float) -> float:
        rate = self.rate(load)
        most = max(1.0, rate * BURST_S / 60)
        left = self._left.get(load.name, most) + rate * passed_s / 60
        now = len(load.active)
        return min(most, left) - (self._seen.get(load.name, now) != now)

    def _held(self, target: Target, load: OperatorLoad) -> Target:
        why = f"scale-in waits: {self.rate(load):.3g} changes a minute are enough"
        return target.limited(load.replicas, why)
