"""No more changes than do good: a bound on how often an operator's replicas change."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common.checks import positive
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, inside

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
        self._seen: Mapping[str, int] = {}  # replicas in the snapshot before
        self._left: dict[str, float] = {}  # changes that are allowed now, where that is not the most

    def __repr__(self) -> str:
        return f"Calm({self.policy!r}, per_minute={self.per_minute})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, without scale-ins that would be too many."""
        plan = self.policy.plan(snapshot, forecast)
        passed_s = 0.0 if self._time_s is None else max(0.0, snapshot.time_s - self._time_s)
        self._time_s = snapshot.time_s
        self._left = self._allowed(snapshot, passed_s)
        self._seen = snapshot.loads.replicas
        wanted = plan.replicas if self._left else {}
        held = {
            name: self._seen[name]
            for name, left in self._left.items()
            if left < 1 - 1e-9 and name in wanted and wanted[name] < self._seen[name]
        }
        return plan.limited(held, lambda name: self._why(snapshot.operators[name]))

    def rate(self, load: OperatorLoad) -> float:
        """Changes per minute that the operator may have."""
        return self._rate(load.state_bytes)

    def _rate(self, state_bytes: int) -> float:
        if state_bytes <= 0 or self._priced:
            return self.per_minute
        move_s = MOVE_LATENCY_S + state_bytes / MOVE_BYTES_PER_S
        return min(self.per_minute, 60 * MOVING / move_s)

    def _allowed(self, snapshot: Snapshot, passed_s: float) -> dict[str, float]:
        """The changes that are left, of operators that have had some or keep state; the others may have the most."""
        loads, seen, most = snapshot.loads, self._seen, _most(self.per_minute)
        changed = {name for name, count in loads.replicas.items() if seen.get(name, count) != count}
        keep = () if self._priced else (name for name, size in loads.state_bytes.items() if size > 0)
        allowed: dict[str, float] = {}
        for name in dict.fromkeys((*self._left, *changed, *keep)):
            if name in loads:
                rate = self._rate(loads.state_bytes[name])
                left = self._left.get(name, most) + rate * passed_s / 60
                allowed[name] = min(_most(rate), left) - (name in changed)
        return {name: left for name, left in allowed.items() if left < most}

    def _why(self, load: OperatorLoad) -> str:
        return f"scale-in waits: {self.rate(load):.3g} changes a minute are enough"


def _most(rate: float) -> float:
    """The changes that may come at once, of so many a minute."""
    return max(1.0, rate * BURST_S / 60)
