"""What a sweep came to: points, the curves of policies, the frontier, and what a promise costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.simulator.run import ORACLE


@dataclass(frozen=True)
class Point:
    """What one policy with one headroom made of one trace with one seed."""

    trace: str
    seed: int
    policy: str
    factor: float
    late: float  # share of events
    replica_seconds: float
    worker_seconds: float | None = None


@dataclass(frozen=True)
class Setting:
    """A policy with a headroom, over several traces or seeds: the share late on average, and the cost.

    `cost` is the geometric mean of its cost over the bound.
    """

    policy: str
    factor: float
    late: float
    cost: float


@dataclass(frozen=True)
class AtLate:
    """What it costs to keep the promise with a policy: the headroom chosen for each trace, in hindsight.

    `cost` is the geometric mean over the traces on which it is kept, `traces` the cost of each; None: no headroom that
    was tried keeps it there.
    """

    policy: str
    kept: int
    cost: float | None
    traces: Mapping[str, float | None]


@dataclass(frozen=True)
class SweepResult:
    """All points of a sweep, and what is read from them."""

    settings: Mapping[str, Any]
    late: float
    bound: Mapping[str, float]  # by trace: what none can do without that keeps the promise; the mean over seeds
    points: Sequence[Point]
    bounds: Mapping[tuple[str, int], float] = field(default_factory=dict)  # by trace and seed, where seeds differ

    @property
    def traces(self) -> list[str]:
        """The traces, in the order given."""
        return list(self.bound)

    def curves(self, trace: str | None = None) -> dict[str, list[Setting]]:
        """By policy: its headrooms, over all traces or one."""
        found: dict[str, dict[float, list[Point]]] = {}
        for one in self.points:
            if trace in (None, one.trace):
                found.setdefault(one.policy, {}).setdefault(one.factor, []).append(one)
        return {
            policy: [self._setting(policy, factor, several) for factor, several in sorted(factors.items())]
            for policy, factors in found.items()
        }

    def frontier(self, trace: str | None = None) -> list[Setting]:
        """The settings that no other beats in both cost and lateness, the cheapest first; without the oracle."""
        curves = {policy: several for policy, several in self.curves(trace).items() if policy != ORACLE}
        every = [one for several in curves.values() for one in several if math.isfinite(one.cost)]
        found: list[Setting] = []
        for one in sorted(every, key=lambda one: (one.cost, one.late)):
            if not found or one.late < found[-1].late:
                found.append(one)
        return found

    def at_late(self) -> list[AtLate]:
        """Every policy with what the promise costs; those that keep it on most traces first, the cheapest first."""
        curves = {trace: self.curves(trace) for trace in self.traces}
        found = []
        for policy in dict.fromkeys(one.policy for one in self.points):
            costs = {trace: _cheapest(curves[trace].get(policy, ()), self.late) for trace in self.traces}
            kept = [cost for cost in costs.values() if cost is not None]
            found.append(AtLate(policy, len(kept), geometric_mean(kept) if kept else None, costs))
        return sorted(found, key=lambda one: (-one.kept, one.cost or math.inf))

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        frontier = {trace: [asdict(one) for one in self.frontier(trace)] for trace in self.traces}
        return {
            "settings": dict(self.settings),
            "bound": dict(self.bound),
            "points": [asdict(one) for one in self.points],
            "frontier": {"all": [asdict(one) for one in self.frontier()], "traces": frontier},
            "cost_at_late": [asdict(one) for one in self.at_late()],
        }

    def _setting(self, policy: str, factor: float, points: Sequence[Point]) -> Setting:
        late = sum(one.late for one in points) / len(points)
        costs = [one.replica_seconds / self.bounds.get((one.trace, one.seed), self.bound[one.trace]) for one in points]
        return Setting(policy, factor, late, geometric_mean(costs))


def geometric_mean(values: Sequence[float]) -> float:
    """The mean of ratios; NaN where there is none, or one is no positive number.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    if not values or not all(0 < one < math.inf for one in values):
        return math.nan
    return math.exp(math.fsum(math.log(one) for one in values) / len(values))


def _cheapest(curve: Iterable[Setting], late: float) -> float | None:
    return min((one.cost for one in curve if one.late <= late and math.isfinite(one.cost)), default=None)
