"""No fewer than one replica, no more than the pool, and together no more than the slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.common.checks import whole
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Policy, Target, share_slots


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
        plan = self.policy.plan(snapshot, forecast)
        targets = {name: _in_pool(target, snapshot.operators[name].pool) for name, target in plan.targets.items()}
        wanted = {name: target.replicas for name, target in targets.items()}
        total = sum(wanted.values())
        if self.slots is None or total <= self.slots:
            return replace(plan, targets=targets)
        floor = {
            name: min(count, snapshot.operators[name].replicas) if snapshot.incomplete else 1
            for name, count in wanted.items()
        }
        given = share_slots(wanted, floor, self.slots)
        why = f"{self.slots} slots are shared by need, {total} were wanted"
        for name, count in given.items():
            if count < wanted[name]:
                targets[name] = targets[name].limited(count, why)
        return replace(plan, targets=targets, notes=(*plan.notes, _note(total, given, self.slots)))


def _in_pool(target: Target, pool: int) -> Target:
    if target.replicas > pool:
        return target.limited(pool, f"the pool has {pool}")
    return target if target.replicas >= 1 else target.limited(1, "at least 1 stays")


def _note(total: int, given: Mapping[str, int], slots: int) -> str:
    running = sum(given.values())
    if running > slots:
        return f"{slots} slots do not suffice: {len(given)} operators cannot go below {running} replicas"
    return f"{slots} slots do not suffice for {total} replicas: shared by need"
