"""Refuse to act on numbers that are missing, invalid or stale."""

from __future__ import annotations

from dataclasses import replace

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, Target


class RefuseIncomplete:
    """On an incomplete snapshot nothing is scaled in, and operators with bad numbers hold the last plan.

    Operators with good numbers may still be scaled out. Where all numbers are bad (a clock that jumped) the wrapped
    policy is not even asked, so that it does not learn from them.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._held: dict[str, int] = {}  # the last plan

    def __repr__(self) -> str:
        return f"RefuseIncomplete({self.policy!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, or what of it can be trusted."""
        if not snapshot.incomplete:
            plan = self.policy.plan(snapshot, forecast)
        elif snapshot.incomplete.keys() >= snapshot.operators.keys():
            plan = self._careful(Plan({}), snapshot)
        else:
            plan = self._careful(self.policy.plan(snapshot, forecast), snapshot)
        self._held = plan.replicas
        return plan

    def _careful(self, plan: Plan, snapshot: Snapshot) -> Plan:
        targets = {
            name: self._target(plan.targets.get(name), load, snapshot.incomplete.get(name))
            for name, load in snapshot.operators.items()
        }
        operators, reason = len(snapshot.incomplete), next(iter(snapshot.incomplete.values()))
        note = f"incomplete snapshot ({operators} of operators and sources; the first: {reason}): nothing is scaled in"
        return replace(plan, targets=targets, notes=(*plan.notes, note))

    def _target(self, target: Target | None, load: OperatorLoad, doubt: str | None) -> Target:
        held = max(load.replicas, self._held.get(load.name, 1))
        if target is None or doubt:
            return Target(held, f"holds {held}: numbers are not to be trusted ({doubt})")
        if target.replicas < load.replicas:
            return target.limited(load.replicas, "not scaled in while other operators' numbers are missing")
        return target
