"""Settled: no decision while the last one takes effect."""

from __future__ import annotations

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy
from penstock.policy.parts.expected import kept


class Settled:
    """Wraps a policy: after a change it sees nothing for `settle_s` seconds, and everything stays as it is.

    "At each scale-in or scale-out, system monitoring is disabled while the system stabilizes": Kotto-Kombi et al.,
    "DABS-Storm", TLDKS 40, 2019, §4.1. Storm, too, takes no second rebalance while one is under way.

    >>> from penstock.policy.incremental import Incremental
    >>> from penstock.testing.loads import load, snapshot
    >>> policy = Settled(Incremental(), settle_s=40.0)
    >>> busy = load("clean", {"in": 90}, busy_share={0: 1.0})
    >>> [policy.plan(snapshot({"in": 90}, [busy])).targets["clean"].reason for _ in range(2)]
    ['replicas are busy 1 of the time, above 0.8: one more', 'keeps 1: the last change settles']
    """

    def __init__(self, policy: Policy, settle_s: float) -> None:
        self.policy = policy
        self.settle_s = settle_s
        self._until_s = float("-inf")

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, or what is there already."""
        if snapshot.time_s < self._until_s:
            return Plan({name: kept(load, "the last change settles") for name, load in snapshot.operators.items()})
        plan = self.policy.plan(snapshot, forecast)
        changed = [
            name
            for name, load in snapshot.operators.items()
            if max(1, min(load.pool, plan.targets[name].replicas)) != load.replicas
        ]
        if changed:
            self._until_s = snapshot.time_s + self.settle_s
        return plan
