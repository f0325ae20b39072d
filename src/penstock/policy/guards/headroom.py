"""More replicas than a policy wants, or fewer: what makes a curve of a policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from penstock.common.checks import positive
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, SizesWorkers, Supply, Target, initial_replicas, inside

_ROUNDING = 1e-9


class Headroom:
    """Gives every operator ⌈factor · n⌉ replicas where the policy wants n.

    The policy is shown the world as if its own n were at work: so many are active, and they have the busy times and
    queues of all. Else one that goes by how busy replicas are would take back what it is given beyond its wish, and one
    that keeps what is there would be given more each time. Of a policy that also sizes workers, the slots that it asks
    for replicas are as many times more.

    >>> from penstock.policy.static import Static
    >>> from penstock.testing.loads import load, snapshot
    >>> Headroom(Static(4), 1.3).plan(snapshot({"in": 9}, [load("clean", {"in": 9})])).targets["clean"]
    Target(replicas=6, reason='static; 1.3 × 4', expected=None, which=None)
    """

    def __init__(self, policy: Policy, factor: float) -> None:
        self.policy = policy
        self.factor = positive("guard 'headroom'", "factor", factor)
        self.own_windows = getattr(policy, "own_windows", False)
        self._wanted: dict[str, int] = {}
        sizes = next((one for one in inside(policy) if isinstance(one, SizesWorkers)), None)
        if sizes is not None:  # else this must not look like one that does
            self.slots_ahead = partial(self._slots_ahead, sizes)

    def __repr__(self) -> str:
        return f"Headroom({self.policy!r}, {self.factor:g})"

    def initial(self, pools: Mapping[str, int], td_s: float) -> Mapping[str, int]:
        """Before the first interval it is the same."""
        self._wanted = initial_replicas(self.policy, pools, td_s)
        return {name: self._more(count) for name, count in self._wanted.items()}

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan with its headroom."""
        shown = {name: shrunk(load, self._wanted.get(name, load.replicas)) for name, load in snapshot.operators.items()}
        plan = self.policy.plan(replace(snapshot, operators=shown), forecast)
        self._wanted = plan.replicas
        return replace(plan, targets={name: self._raised(target) for name, target in plan.targets.items()})

    def _slots_ahead(self, sizes: SizesWorkers, supply: Supply) -> tuple[int, str] | None:
        """The wrapped policy's slots with their headroom; the seats of others stay as many."""
        found = sizes.slots_ahead(supply)
        if found is None:
            return None
        slots, why = found
        more = supply.seats + self._more(slots - supply.seats)
        return more, why if more == slots else f"{why}; {self.factor:g} × {slots - supply.seats}"

    def _raised(self, target: Target) -> Target:
        count = self._more(target.replicas)
        if count == target.replicas:
            return target
        return target.limited(count, f"{self.factor:g} × {target.replicas}")

    def _more(self, count: int) -> int:
        return max(1, math.ceil(self.factor * count - _ROUNDING))


def shrunk(load: OperatorLoad, count: int) -> OperatorLoad:
    """The load as if so many of its active replicas did the work of all of them.

    >>> from penstock.testing.loads import load
    >>> seen = shrunk(load("clean", {"in": 9}, replicas=3, busy_share={0: 0.5, 1: 0.3, 2: 0.4}), 2)
    >>> seen.active, {replica: round(share, 3) for replica, share in seen.busy_share.items()}
    ((0, 1), {0: 0.75, 1: 0.45})
    """
    if not 0 < count < len(load.active):
        return load
    active = load.active[:count]
    return replace(
        load,
        active=active,
        busy_share=_gathered(load.busy_share, load.active, active),
        queued_by={name: round(many) for name, many in _gathered(load.queued_by, load.active, active).items()},
        processed_by={name: round(many) for name, many in _gathered(load.processed_by, load.active, active).items()},
    )


def _gathered(values: Mapping[int, float], all_: tuple[int, ...], few: tuple[int, ...]) -> dict[int, float]:
    """What all have, shared by the few as their own is; evenly where they have none."""
    if not values:
        return {}
    total, own = (sum(values.get(one, 0) for one in some) for some in (all_, few))
    shares = {one: values.get(one, 0) * total / own if own > 0 else total / len(few) for one in few}
    rest = {one: value for one, value in values.items() if one not in all_}
    return rest | shares
