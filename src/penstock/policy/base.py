"""What a policy is, and what it gives: a plan with a reason for each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan wants for one operator: how many replicas, perhaps which, and why.

    `expected` is what the policy thinks the operator has to process in the next interval, where it thinks so. Where a
    guard has changed it, `wanted` is what it was before, and `limit` what the last guard said.
    """

    replicas: int
    reason: str
    expected: float | None = None
    which: tuple[int, ...] | None = None
    wanted: int | None = field(default=None, repr=False, compare=False)
    limit: str | None = field(default=None, repr=False, compare=False)

    def limited(self, replicas: int, why: str) -> Target:
        """This target with another number of replicas and the guard's reason added.

        >>> Target(9, "needs 8.3 replicas").limited(8, "the pool has 8")
        Target(replicas=8, reason='needs 8.3 replicas; the pool has 8', expected=None, which=None)
        """
        wanted = self.replicas if self.wanted is None else self.wanted
        return Target(replicas, f"{self.reason}; {why}", self.expected, None, wanted, why)


class Targets(Mapping[str, Target]):
    """The targets of many operators: how many replicas each shall have is known, the rest when it is looked at.

    Reasons are for people, who read few of them, so the target of an operator is made when somebody asks for it.

    >>> wanted = Targets({"clean": 9, "store": 2}, lambda name: Target(9 if name == "clean" else 2, "busy"))
    >>> within = wanted.limited({"clean": 8}, lambda name: "the pool has 8")
    >>> within.replicas, within["clean"].reason, within["store"].reason
    ({'clean': 8, 'store': 2}, 'busy; the pool has 8', 'busy')
    """

    def __init__(
        self,
        replicas: Mapping[str, int],
        make: Callable[[str], Target],
        which: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.replicas = replicas
        self.which = which or {}  # just which, where a policy says so
        self._make = make

    @classmethod
    def of(cls, targets: Mapping[str, Target]) -> Targets:
        """These targets."""
        if isinstance(targets, Targets):
            return targets
        which = {name: one.which for name, one in targets.items() if one.which is not None}
        return cls({name: one.replicas for name, one in targets.items()}, targets.__getitem__, which)

    def limited(self, counts: Mapping[str, int], why: Callable[[str], str]) -> Targets:
        """With other numbers of replicas for some, and the guard's reason for each of these."""

        def make(name: str) -> Target:
            return self[name].limited(counts[name], why(name)) if name in counts else self[name]

        which = {name: one for name, one in self.which.items() if name not in counts}
        return Targets({**self.replicas, **counts}, make, which)

    def __len__(self) -> int:
        return len(self.replicas)

    def __iter__(self) -> Iterator[str]:
        return iter(self.replicas)

    def __contains__(self, name: object) -> bool:
        return name in self.replicas

    def __getitem__(self, name: str) -> Target:
        return self._make(name)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, Target]], tuple[dict[str, Target]]]:
        return dict, (dict(self),)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many replicas each operator shall have in the next interval; notes concern the whole topology.

    A timetable says how many in the next interval, the one after it, and so on; only its first step is carried out.
    """

    targets: Mapping[str, Target]
    notes: tuple[str, ...] = ()
    timetables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # replicas ahead, where a policy plans them
    beside: Beside | None = None  # where another policy decides in the shadow

    @property
    def replicas(self) -> dict[str, int]:
        """The number of replicas by operator."""
        return dict(Targets.of(self.targets).replicas)

    def limited(self, counts: Mapping[str, int], why: Callable[[str], str]) -> Plan:
        """This plan with other numbers of replicas for some operators, and a guard's reason for each of these."""
        return replace(self, targets=Targets.of(self.targets).limited(counts, why)) if counts else self


@dataclass(frozen=True, slots=True)
class Beside:
    """Who made a plan, and what another would have planned; where another decides from now on, who did, and why."""

    policy: str
    other: str
    targets: Mapping[str, Target]  # the other's
    before: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a plan changes for one operator, or keeps."""

    operator: str
    before: int
    after: int
    reason: str
    expected: float | None = None
    wanted: int | None = None  # where a guard had something to say to it
    limit: str | None = None

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

    `seats`: slots that are taken by others than replicas, as sources do. `spare`: slots to keep free in any case.
    `workers`: how many there are, or have been asked for.
    """

    slots: int
    joining_s: float
    seats: int = 0
    most: int | None = None
    spare: int = 0
    workers: int = 0


@runtime_checkable
class SizesWorkers(Protocol):
    """A policy that also says how many slots there should be when a worker that is asked for now has joined."""

    def slots_ahead(self, supply: Supply) -> tuple[int, str] | None:
        """Slots, and why; None as long as it does not know."""


@runtime_checkable
class Recalls(Protocol):
    """A policy that learns from what came, and can be told what came before the run."""

    def recall(self, rates: Sequence[float], step_s: float) -> None:
        """Take in events per second of all sources together, step by step, until now."""


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


def recall(policy: Policy, rates: Sequence[float], step_s: float) -> None:
    """Tell the policy, and what its guards wrap, what came before the run, if they learn from that."""
    for one in inside(policy):
        if isinstance(one, Recalls):
            one.recall(rates, step_s)


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
    before = snapshot.loads.replicas
    return tuple(
        Decision(name, before[name], one.replicas, one.reason, one.expected, one.wanted, one.limit)
        for name, one in plan.targets.items()
        if name in before
    )


def changes(snapshot: Snapshot, plan: Plan) -> tuple[Decision, ...]:
    """The decisions that activate or deactivate replicas."""
    before = snapshot.loads.replicas
    changed = {name: plan.targets[name] for name, now in plan.replicas.items() if before.get(name, now) != now}
    return decisions(snapshot, replace(plan, targets=changed)) if changed else ()
