"""The arena: several policies on the same input, side by side, and the oracle beside all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from penstock.control.ports import Records
from penstock.policy.base import Policy, name_of
from penstock.policy.registry import POLICIES
from penstock.simulator.prepare import Prepared, prepare
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import made_policy, play
from penstock.simulator.scenario import Cluster, Scenario
from penstock.simulator.store import kept_in

VARIANTS = {"static": ("static:mean", "static:peak"), "flink": ("flink", "flink:short")}
ORACLE = "oracle"

Watch = Callable[[str, float, float], None]  # policy, time simulated, time at which input ends


def compare(
    scenario: Scenario, policies: str | Iterable[str | Policy] = "all", *, store: str | None = None
) -> list[SimulationResult]:
    """Simulate every policy on the same input; those on time first, the cheapest first.

    Policies are names with their options, in one text (`"psps,static:4"`) or several, and objects of your own.

    >>> from penstock.workload import constant
    >>> results = compare(Scenario("dns", constant(100.0, duration_s=30.0)), ["static:1", "static:3", "oracle"])
    >>> [(one.policy, one.meets_target) for one in results]
    [('oracle', True), ('static:3', True), ('static:1', False)]
    """
    return ranked(Arena(scenario, policies).run(store=store))


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
        for policy in self.policies:
            made_policy(policy, self.prepared)

    def run(self, *, store: str | None = None, watch: Watch | None = None) -> list[SimulationResult]:
        """Simulate them, and the oracle for the ratio to it; the results in the order of the policies.

        The oracle changes replicas at no cost, whatever the others pay for it.
        """
        with kept_in(store, self.scenario) as keep:
            free = _free(self.prepared)
            best = _play(ORACLE, free, None, watch)
            results = []
            for policy in self.policies:
                known = policy == ORACLE and free.scenario == self.prepared.scenario and store is None
                result = best if known else _play(policy, self.prepared, keep(name_of(policy)), watch)
                ratio = result.replica_seconds / best.replica_seconds if best.replica_seconds else math.nan
                results.append(replace(result, oracle_ratio=ratio))
        return results


def _free(prepared: Prepared) -> Prepared:
    """The same with nothing dropped, room for every replica, and changes that cost nothing."""
    free = prepared.scenario.changed(cluster=Cluster(), actuation="pool", t_out_s=None, q_size=None)
    if prepared.model.stateful:
        free = free.changed(move_bandwidth=math.inf, move_latency_s=0.0)
    return replace(prepared, scenario=free)


def _play(policy: str | Policy, prepared: Prepared, recorder: Records | None, watch: Watch | None) -> SimulationResult:
    name = name_of(policy)

    def progress(now_s: float, end_s: float) -> None:
        if watch is not None:
            watch(name, now_s, end_s)

    return play(prepared, made_policy(policy, prepared), name, recorder=recorder, progress=progress)
