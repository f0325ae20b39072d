"""After a change, wait before the next."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.checks import at_least
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, Target


class Cooldown:
    """Holds an operator's scale-in for `scale_in_s` after its last change, and its scale-out for `scale_out_s`.

    A change is one that was carried out: the active replicas differ from those of the snapshot before, and it
    counts from that snapshot's time. A clock that goes back does not make the wait longer than it was meant to be.
    """

    def __init__(self, policy: Policy, *, scale_in_s: float = 0.0, scale_out_s: float = 0.0) -> None:
        self.policy = policy
        self.scale_in_s = at_least("guard 'cooldown'", "scale_in_s", scale_in_s)
        self.scale_out_s = at_least("guard 'cooldown'", "scale_out_s", scale_out_s)
        self._time_s: float | None = None
        self._seen: dict[str, int] = {}  # replicas in the snapshot before
        self._changed_s: dict[str, float] = {}  # when they last changed

    def __repr__(self) -> str:
        return f"Cooldown({self.policy!r}, scale_in_s={self.scale_in_s}, scale_out_s={self.scale_out_s})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, without the changes that come too early."""
        plan = self.policy.plan(snapshot, forecast)
        if not self.scale_in_s and not self.scale_out_s:
            return plan
        self._look(snapshot)
        targets = {
            name: self._hold(target, snapshot.operators[name], snapshot.time_s) for name, target in plan.targets.items()
        }
        return replace(plan, targets=targets)

    def _look(self, snapshot: Snapshot) -> None:
        before_s = snapshot.time_s if self._time_s is None else min(self._time_s, snapshot.time_s)
        changed_s = {}
        for name, load in snapshot.operators.items():
            if self._seen.get(name, load.replicas) != load.replicas:
                changed_s[name] = before_s
            elif name in self._changed_s:
                changed_s[name] = min(self._changed_s[name], snapshot.time_s)
        self._changed_s = changed_s
        self._seen = {name: load.replicas for name, load in snapshot.operators.items()}
        self._time_s = snapshot.time_s

    def _hold(self, target: Target, load: OperatorLoad, time_s: float) -> Target:
        changed_s = self._changed_s.get(load.name)
        if changed_s is None or target.replicas == load.replicas:
            return target
        down = target.replicas < load.replicas
        wait_s = self.scale_in_s if down else self.scale_out_s
        passed_s = time_s - changed_s
        if passed_s >= wait_s:
            return target
        what = "scale-in" if down else "scale-out"
        return target.limited(
            load.replicas, f"{what} waits until {wait_s:g} s after the last change, {passed_s:.4g} s ago"
        )
