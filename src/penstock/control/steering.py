"""Steering: what a person's orders come to, a guard that keeps to it, and how they reach the loop between two steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

from penstock.common.names import one_of
from penstock.control.analyze import Analyzer
from penstock.control.loop import Parts, check_td
from penstock.control.monitor import Monitor
from penstock.control.orders import (
    Freeze,
    Hold,
    Limit,
    Order,
    Release,
    SetTd,
    Stop,
    Unfreeze,
    UseCanary,
    UseForecaster,
    UsePolicy,
    UseShadow,
)
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.interval import IntervalRules
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, Target

Bounds = tuple[int | None, int | None]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """All orders that are in force. What is None is as the run was started.

    >>> steering = Steering().after(Freeze()).after(Hold("clean", 4)).after(Limit("store", most=6))
    >>> steering.told
    ('frozen', 'clean by hand: 4 replicas', 'store: at most 6')
    >>> steering.after(Unfreeze()).after(Release("clean")).after(Limit("store")) == Steering()
    True
    """

    frozen: bool = False
    by_hand: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, Bounds] = field(default_factory=dict)  # least and most
    policy: str | None = None
    shadow: str | None = None  # an order for it takes the place of one for a canary, and the other way round
    canary: str | None = None
    forecaster: str | None = None
    td_s: float | None = None
    stop_within_s: float | None = None  # once it is to stop

    def after(self, order: Order) -> Steering:
        """What is in force after one more order."""
        match order:
            case Freeze() | Unfreeze():
                return replace(self, frozen=isinstance(order, Freeze))
            case Hold(operator, replicas):
                return replace(self, by_hand={**self.by_hand, operator: replicas})
            case Release(operator):
                return replace(self, by_hand=_without(self.by_hand, operator))
            case Limit(operator, None, None):
                return replace(self, limits=_without(self.limits, operator))
            case Limit(operator, least, most):
                return replace(self, limits={**self.limits, operator: (least, most)})
            case UsePolicy(policy):
                return replace(self, policy=policy)
            case UseShadow(policy):
                return replace(self, shadow=policy, canary=None)
            case UseCanary(policy):
                return replace(self, canary=policy, shadow=None)
            case UseForecaster(forecaster):
                return replace(self, forecaster=forecaster)
            case SetTd(td_s):
                return replace(self, td_s=td_s)
            case Stop(within_s):
                return replace(self, stop_within_s=within_s)

    @property
    def told(self) -> tuple[str, ...]:
        """What is in force, for people."""
        limits = (Limit(name, least, most) for name, (least, most) in self.limits.items())
        chosen = {"policy": self.policy, "shadow": self.shadow, "canary": self.canary, "forecaster": self.forecaster}
        chosen["td"] = None if self.td_s is None else f"{self.td_s:g} s"
        return (
            *(["frozen"] if self.frozen else []),
            *(str(Hold(name, count)) for name, count in self.by_hand.items()),
            *map(str, limits),
            *(f"{name} {value}" for name, value in chosen.items() if value is not None),
            *(["stopping"] if self.stop_within_s is not None else []),
        )


def after_all(orders: Iterable[Order]) -> Steering:
    """What is in force after these orders."""
    return reduce(Steering.after, orders, Steering())


def in_words(steering: Steering) -> dict[str, Any]:
    """What is in force as JSON has it, and `told` in words."""
    return {**asdict(steering), "told": steering.told}


def check_order(order: Order, pools: Mapping[str, int]) -> None:
    """An InputError where the topology has no such operator, or its pool not so many replicas; or no such interval."""
    if isinstance(order, SetTd):
        check_td(order.td_s)
    if not isinstance(order, (Hold, Release, Limit)):
        return
    one_of("order, operator", order.operator, pools)
    wanted: tuple[int | None, ...] = (order.replicas,) if isinstance(order, Hold) else ()
    wanted = (order.least, order.most) if isinstance(order, Limit) else wanted
    pool = pools[order.operator]
    for count in wanted:
        if count is not None and count > pool:
            raise InputError(f"order: operator {order.operator!r} has a pool of {pool}; got {count} replicas")


class Steered:
    """A guard that keeps to what a person said.

    By hand goes before all else; then, while frozen, replicas stay as they are; then come least and most. What a person
    orders is done on incomplete numbers, too: it does not follow from them.
    """

    def __init__(self, policy: Policy, steering: Steering | None = None) -> None:
        self.policy = policy
        self.steering = steering or Steering()

    def __repr__(self) -> str:
        return f"Steered({self.policy!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, as far as it may decide. It is asked while frozen, too, so that it learns."""
        plan, steering = self.policy.plan(snapshot, forecast), self.steering
        if not (steering.frozen or steering.by_hand or steering.limits):
            return plan
        targets = {name: self._steered(target, snapshot.operators[name]) for name, target in plan.targets.items()}
        notes = (*plan.notes, "frozen by hand") if steering.frozen else plan.notes
        return replace(plan, targets=targets, notes=notes)

    def _steered(self, target: Target, load: OperatorLoad) -> Target:
        steering, name, wanted = self.steering, load.name, target.replicas
        if name in steering.by_hand:
            return replace(target, replicas=steering.by_hand[name], reason="set by hand", which=None)
        if steering.frozen:
            return target if wanted == load.replicas else target.limited(load.replicas, f"frozen; wanted {wanted}")
        least, most = steering.limits.get(name, (None, None))
        if least is not None and wanted < least:
            return target.limited(least, f"at least {least} by order")
        if most is not None and wanted > most:
            return target.limited(most, f"at most {most} by order")
        return target


@dataclass(frozen=True, slots=True)
class Planning:
    """What a loop plans with, and the steering that it was made for."""

    steering: Steering
    policy: Policy
    analyzer: Analyzer | None
    rules: IntervalRules


Make = Callable[[Steering, Planning | None], Planning]  # of what is to be, and what was; keeps what need not change


class Helm:
    """Takes orders from any thread; the loop takes them over between two steps.

    An order that cannot be carried out is refused at once: what is to be planned with is made before the loop sees it.
    """

    def __init__(self, pools: Mapping[str, int], make: Make, steering: Steering | None = None) -> None:
        self._pools = pools
        self._make = make
        self._lock = threading.Lock()
        self._wanted = make(steering or Steering(), None)
        self._taken = self._wanted
        self.guard = Steered(self._wanted.policy, self._wanted.steering)

    @property
    def steering(self) -> Steering:
        """All orders so far, also those that the loop has not taken over yet."""
        return self._wanted.steering

    @property
    def planning(self) -> Planning:
        """What the loop plans with."""
        return self._taken

    def give(self, order: Order) -> Steering:
        """Have an order carried out before the next plan; an InputError where that cannot be."""
        check_order(order, self._pools)
        with self._lock:
            self._wanted = self._make(self._wanted.steering.after(order), self._wanted)
            return self._wanted.steering

    def remake(self) -> Planning:
        """Make what is planned with anew, when more is known than at first; before the loop begins."""
        with self._lock:
            self._wanted = self._taken = self._make(self._wanted.steering, None)
            self.guard.steering, self.guard.policy = self._taken.steering, self._taken.policy
            return self._taken

    def take(self, parts: Parts) -> Parts:
        """The loop's parts, as they are from now on; for the loop."""
        before, now = self._taken, self._wanted
        if now is before:
            return parts
        self._taken = now
        self.guard.steering, self.guard.policy = now.steering, now.policy
        if isinstance(parts.monitor, Monitor):
            parts.monitor.rules = now.rules
        if now.analyzer is not None and now.analyzer is not before.analyzer and before.analyzer is not None:
            now.analyzer.follow(before.analyzer)
        return replace(parts, analyzer=now.analyzer)


def _without(values: Mapping[str, Value], name: str) -> dict[str, Value]:
    return {key: value for key, value in values.items() if key != name}
