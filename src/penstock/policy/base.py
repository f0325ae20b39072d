"""What a policy is, and what it gives: a plan with a reason for each operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan wants for one operator: how many replicas, perhaps which, and why.

    `expected` is what the policy thinks the operator has to process in the next interval, where it thinks so.
    """

    replicas: int
    reason: str
    expected: float | None = None
    which: tuple[int, ...] | None = None

    def limited(self, replicas: int, why: str) -> Target:
        """This target with another number of replicas and the guard's reason added.

        >>> Target(9, "needs 8.3 replicas").limited(8, "the pool has 8")
        Target(replicas=8, reason='needs 8.3 replicas; the pool has 8', expected=None, which=None)
        """
        return replace(self, replicas=replicas, reason=f"{self.reason}; {why}", which=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many replicas each operator shall have in the next interval; notes concern the whole topology.

    A timetable says how many in the next interval, the one after it, and so on; only its first step is carried out.
    """

    targets: Mapping[str, Target]
    notes: tuple[str, ...] = ()
    timetables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # replicas ahead, where a policy plans them

    @property
    def replicas(self) -> dict[str, int]:
        """The number of replicas by operator."""
        return {name: target.replicas for name, target in self.targets.items()}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a plan changes for one operator, or keeps."""

    operator: str
    before: int
    after: int
    reason: str
    expected: float | None = None

    @property
    def changed(self) -> bool:
        """Whether replicas are activated or deactivated."""
        return self.after != self.before

    def __str__(self) -> str:
        return f"{self.operator} {self.before} → {self.after}: {self.reason}"


@runtime_checkable
class Policy(Protocol):
    """Decides, from one interval's snapshot and perhaps a forecast, on the replicas of the next.

    Whatever a policy remembers it keeps in itself; the time is the snapshot's.
    """

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target for every operator of the snapshot."""


@runtime_checkable
class Starts(Protocol):
    """A policy that knows how many replicas it wants before the first interval."""

    def initial(self, pools: Mapping[str, int], td_s: float) -> Mapping[str, int]:
        """Replicas by operator, for the first interval of td_s; `pools` has every operator's pool."""


@runtime_checkable
class PlansAhead(Protocol):
    """A policy that plans over a forecast of every operator's input, so many intervals ahead."""

    horizon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What workers are like: the slots of one, how long one takes to join, and how many there may be (None: any).

    `seats`: slots that are taken by others than replicas, as sources do.
    """

    slots: int
    joining_s: float
    seats: int = 0
    most: int | None = None


@runtime_checkable
class SizesWorkers(Protocol):
    """A policy that also says how many slots there should be when a worker that is asked for now has joined."""

    def slots_ahead(self, supply: Supply) -> tuple[int, str] | None:
        """Slots, and why; None as long as it does not know."""


@runtime_checkable
class Careful(Protocol):
    """A policy that plans ahead and also asks for the quantile of this level; None for none."""

    @property
    def level(self) -> float | None:
        """Above 0 and below 1."""


def inside(policy: Policy) -> Iterator[object]:
    """The policy, and what its guards wrap, from the outside in."""
    inner: object = policy
    yield inner
    while hasattr(inner, "policy"):  # guards keep what they wrap there
        inner = inner.policy
        yield inner


def name_of(policy: str | Policy) -> str:
    """A policy in the results: as it was named, as it describes itself, or by its class.

    >>> from penstock.policy.static import Static
    >>> name_of("static:4"), name_of(Static(4)), name_of(object())
    ('static:4', 'Static(4)', 'object')
    """
    if isinstance(policy, str):
        return policy
    described = type(policy).__repr__ is not object.__repr__
    return repr(policy) if described else type(policy).__name__


def initial_replicas(policy: Policy, pools: Mapping[str, int], td_s: float, slots: int | None = None) -> dict[str, int]:
    """What the policy wants before the first interval, inside any guards and within the pools; else 1 each.

    One that sizes workers as well begins with the `slots` that there are, shared by need.

    >>> from penstock.policy.guards import guarded
    >>> from penstock.policy.static import Static
    >>> initial_replicas(guarded(Static(4)), {"clean": 2, "store": 8}, td_s=30.0)
    {'clean': 2, 'store': 4}
    """
    starts = next((one for one in inside(policy) if isinstance(one, Starts)), None)
    wanted = starts.initial(pools, td_s) if starts else {}
    first = {name: max(1, min(pool, wanted.get(name, 1))) for name, pool in pools.items()}
    grows = any(isinstance(one, SizesWorkers) for one in inside(policy))
    if slots is None or sum(first.values()) <= slots or not grows:
        return first
    return share_slots(first, dict.fromkeys(first, 1), slots)


def share_slots(wanted: Mapping[str, int], floor: Mapping[str, int], slots: int) -> dict[str, int]:
    """Divide slots in proportion to what each wants beyond its floor; the largest remainders get what is left.

    Where not even the floors fit, everyone gets the floor.

    >>> share_slots({"a": 2, "b": 9, "c": 5}, {"a": 1, "b": 1, "c": 1}, 9)
    {'a': 1, 'b': 5, 'c': 3}
    """
    free = slots - sum(floor.values())
    beyond = {name: count - floor[name] for name, count in wanted.items()}
    need = sum(beyond.values())
    if free <= 0 or need <= 0:
        return dict(floor)
    exact = {name: min(1.0, free / need) * count for name, count in beyond.items()}
    given = {name: floor[name] + int(part) for name, part in exact.items()}
    left = min(free, need) - sum(int(part) for part in exact.values())
    for name in sorted(exact, key=lambda name: (int(exact[name]) - exact[name], -beyond[name]))[:left]:
        given[name] += 1
    return given


def decisions(snapshot: Snapshot, plan: Plan) -> tuple[Decision, ...]:
    """The plan beside what is active now, operator by operator."""
    return tuple(
        Decision(name, snapshot.operators[name].replicas, target.replicas, target.reason, target.expected)
        for name, target in plan.targets.items()
        if name in snapshot.operators
    )
