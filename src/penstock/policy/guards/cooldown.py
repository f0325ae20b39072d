"""After a change, wait before the next."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common.checks import at_least
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy


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
        self._seen: Mapping[str, int] = {}  # replicas in the snapshot before
        self._changed_s: dict[str, float] = {}  # when they last changed

    def __repr__(self) -> str:
        return f"Cooldown({self.policy!r}, scale_in_s={self.scale_in_s}, scale_out_s={self.scale_out_s})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, without the changes that come too early."""
        plan = self.policy.plan(snapshot, forecast)
        if not self.scale_in_s and not self.scale_out_s:
            return plan
        self._look(snapshot)
        active, passed_s = snapshot.loads.replicas, self._passed_s(snapshot.time_s)
        held = {
            name: active[name]
            for name, wanted in plan.replicas.items()
            if name in passed_s and wanted != active[name] and passed_s[name] < self._wait_s(wanted < active[name])
        }
        return plan.limited(held, lambda name: self._why(plan.replicas[name] < held[name], passed_s[name]))

    def _look(self, snapshot: Snapshot) -> None:
        before_s = snapshot.time_s if self._time_s is None else min(self._time_s, snapshot.time_s)
        now, seen = snapshot.loads.replicas, self._seen
        changed_s = {name: min(at_s, snapshot.time_s) for name, at_s in self._changed_s.items() if name in now}
        changed_s |= {name: before_s for name, count in now.items() if seen.get(name, count) != count}
        self._changed_s, self._seen, self._time_s = changed_s, now, snapshot.time_s

    def _passed_s(self, time_s: float) -> dict[str, float]:
        return {name: time_s - changed_s for name, changed_s in self._changed_s.items()}

    def _wait_s(self, down: bool) -> float:
        return self.scale_in_s if down else self.scale_out_s

    def _why(self, down: bool, passed_s: float) -> str:
        what = "scale-in" if down else "scale-out"
        return f"{what} waits until {self._wait_s(down):g} s after the last change, {passed_s:.4g} s ago"
