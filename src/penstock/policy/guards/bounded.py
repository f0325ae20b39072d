"""No fewer than one replica, no more than the pool, and together no more than the slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.common.checks import whole
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy, share_slots


class Bounded:
    """Keeps each operator within 1 and its pool, and all of them within `slots` (None: no limit).

    Where the slots do not suffice they are shared by need: everyone keeps one, and the rest is divided in proportion
    to what each wants beyond it, whole slots first and then the largest remainders (of equal ones, the larger need).
    On an incomplete snapshot nobody is made smaller for it: only what would be added is shared.
    """

    def __init__(self, policy: Policy, *, slots: int | None = None) -> None:
        self.policy = policy
        self.slots = slots if slots is None else whole("guard 'bounded'", "slots", slots)

    def __repr__(self) -> str:
        return f"Bounded({self.policy!r}, slots={self.slots})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, within the bounds."""
        plan = _in_pools(self.policy.plan(snapshot, forecast), snapshot.loads.pool)
        wanted = plan.replicas
        total = sum(wanted.values())
        if self.slots is None or total <= self.slots:
            return plan
        active = snapshot.loads.replicas
        floor = {name: min(count, active[name]) if snapshot.incomplete else 1 for name, count in wanted.items()}
        given = share_slots(wanted, floor, self.slots)
        why = f"{self.slots} slots are shared by need, {total} were wanted"
        fewer = {name: count for name, count in given.items() if count < wanted[name]}
        noted = replace(plan, notes=(*plan.notes, _note(total, given, self.slots)))
        return noted.limited(fewer, lambda _: why)


def _in_pools(plan: Plan, pools: Mapping[str, int]) -> Plan:
    wanted = plan.replicas
    beyond = {name: pools[name] for name, count in wanted.items() if count > pools[name]}
    below = {name: 1 for name, count in wanted.items() if count < 1 and name not in beyond}
    plan = plan.limited(beyond, lambda name: f"the pool has {beyond[name]}")
    return plan.limited(below, lambda _: "at least 1 stays")


def _note(total: int, given: Mapping[str, int], slots: int) -> str:
    running = sum(given.values())
    if running > slots:
        return f"{slots} slots do not suffice: {len(given)} operators cannot go below {running} replicas"
    return f"{slots} slots do not suffice for {total} replicas: shared by need"
