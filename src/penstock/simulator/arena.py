"""The arena: several policies on the same input, side by side, and the oracle beside all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from penstock.control.analyze import analyzer_for, asks
from penstock.control.ports import Records
from penstock.forecast.shared import SharedForecasts
from penstock.policy.base import Policy, name_of
from penstock.policy.registry import POLICIES
from penstock.simulator.hindsight import hindsight
from penstock.simulator.parallel import done, made_once
from penstock.simulator.prepare import Prepared, prepare
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import ORACLE, freed, made_policy, play
from penstock.simulator.scenario import Scenario
from penstock.simulator.store import kept_in

VARIANTS: dict[str, tuple[str, ...]] = {
    "static": ("static:mean", "static:peak"),
    "flink": ("flink", "flink:short"),
    "dynamic_allocation": (),  # replicas as `psps` has them: of interest where there are workers
}

Watch = Callable[[str, float, float], None]  # policy, time simulated, time at which input ends
Placed = tuple[int, str | Policy]  # a policy with its place among all


def compare(
    scenario: Scenario, policies: str | Iterable[str | Policy] = "all", *, store: str | None = None, jobs: int = 1
) -> list[SimulationResult]:
    """Simulate every policy on the same input; those on time first, the cheapest first.

    Policies are names with their options, in one text (`"psps,static:4"`) or several, and objects of your own. `jobs`
    is the number of processes that share the work; a program that wants several needs the usual
    `if __name__ == "__main__"`.

    >>> from penstock.workload import constant
    >>> results = compare(Scenario("dns", constant(100.0, duration_s=30.0)), ["static:1", "static:3", "oracle"])
    >>> [(one.policy, one.meets_target) for one in results]
    [('oracle', True), ('static:3', True), ('static:1', False)]
    """
    return ranked(Arena(scenario, policies).run(store=store, jobs=jobs))


def policies_named(text: str) -> list[str]:
    """`all`, or names with their options, separated by commas.

    >>> policies_named("psps:predecessor_backlog,use_forecast,static:4,keda")
    ['psps:predecessor_backlog,use_forecast', 'static:4', 'keda']
    """
    if text == "all":
        return [spec for name in POLICIES.distinct for spec in VARIANTS.get(name, (name,))]
    return POLICIES.specs(text)


def ranked(results: Sequence[SimulationResult]) -> list[SimulationResult]:
    """Those that meet the target first, the cheapest first; then the others, the least late first.

    Last come those of which lateness or cost is not known.
    """

    def place(one: SimulationResult) -> tuple[int, float]:
        if not one.is_known:
            return 2, 0.0
        return (0, one.replica_seconds) if one.meets_target else (1, one.late_ratio)

    return sorted(results, key=place)


class Arena:
    """Policies and the scenario they compete in; every name and option is checked before anything runs."""

    def __init__(self, scenario: Scenario, policies: str | Iterable[str | Policy] = "all") -> None:
        self.scenario = scenario
        self.prepared = prepare(scenario)
        self.policies = list[str | Policy](policies_named(policies) if isinstance(policies, str) else policies)
        self._made = [made_policy(policy, self.prepared) for policy in self.policies]

    def run(self, *, store: str | None = None, watch: Watch | None = None, jobs: int = 1) -> list[SimulationResult]:
        """Simulate them; the results in the order of the policies, with ratios to the oracle and to `hindsight`.

        The oracle has none of the limits of the others, also where it is one of the policies. Several jobs share the
        work where nothing is stored.
        """
        played = self._in_parts(jobs, watch) if jobs > 1 and store is None else self._here(store, watch)
        least_s = hindsight(self.prepared, late=self.scenario.contest.late)
        best, *results = played
        return [_beside(one, best.replica_seconds, least_s) for one in results]

    def _here(self, store: str | None, watch: Watch | None) -> list[SimulationResult]:
        """The results of the oracle and of all policies, one after another."""
        shared = SharedForecasts({asks(policy) for policy in self._made})
        with kept_in(store, self.scenario) as keep:
            kept = [keep(name_of(policy)) for policy in self.policies]
            recorder = kept[self.policies.index(ORACLE)] if ORACLE in self.policies else None
            best = _play(ORACLE, freed(self.prepared), recorder, watch, shared)
            return [
                best,
                *(
                    best if policy == ORACLE else _play(policy, self.prepared, recorder, watch, shared)
                    for policy, recorder in zip(self.policies, kept, strict=True)
                ),
            ]

    def _in_parts(self, jobs: int, watch: Watch | None) -> list[SimulationResult]:
        """The same in several processes: those who share forecasts in one of them, and it begins first."""
        contest, arena = self.prepared.scenario.contest, uuid4().hex
        ahead: list[Placed] = []
        others: list[Placed] = []
        for place, (policy, made) in enumerate(zip(self.policies, self._made, strict=True)):
            foresees = analyzer_for(made, contest.forecaster, contest.td_s, contest.day_s) is not None
            if policy != ORACLE:
                (ahead if foresees else others).append((place, policy))
        apart: list[list[Placed]] = [[one] for one in (*others, (-1, ORACLE))]
        parts = [ahead, *apart] if ahead else apart
        found: dict[int, SimulationResult] = {}
        for part, results in done(_played, [_Part(arena, self.scenario, tuple(one)) for one in parts], jobs):
            for (place, policy), result in zip(part.policies, results, strict=True):
                found[place] = result
                if watch is not None:
                    watch(name_of(policy), self.prepared.trace.duration_s, self.prepared.trace.duration_s)
        oracle = found[-1]
        return [oracle, *(found.get(place, oracle) for place in range(len(self.policies)))]


@dataclass(frozen=True)
class _Part:
    """Some of an arena's policies with their places."""

    arena: str
    scenario: Scenario
    policies: tuple[Placed, ...]


def _played(part: _Part) -> list[SimulationResult]:
    """Simulate some of the policies, in a process for such parts."""
    prepared = made_once(part.arena, lambda: prepare(part.scenario))
    policies = [policy for _, policy in part.policies]
    shared = SharedForecasts({asks(made_policy(policy, prepared)) for policy in policies})
    return [_play(one, freed(prepared) if one == ORACLE else prepared, None, None, shared) for one in policies]


def _beside(result: SimulationResult, oracle_s: float, least_s: float) -> SimulationResult:
    """The result with its cost as a ratio to those of the oracle and of hindsight."""
    oracle, bound = (result.replica_seconds / cost_s if cost_s else math.nan for cost_s in (oracle_s, least_s))
    return replace(result, oracle_ratio=oracle, hindsight_ratio=bound)


def _play(
    policy: str | Policy, prepared: Prepared, recorder: Records | None, watch: Watch | None, shared: SharedForecasts
) -> SimulationResult:
    name = name_of(policy)

    def progress(now_s: float, end_s: float) -> None:
        if watch is not None:
            watch(name, now_s, end_s)

    return play(prepared, made_policy(policy, prepared), name, recorder=recorder, progress=progress, shared=shared)
