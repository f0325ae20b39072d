"""The arena: several policies on the same input, side by side, and the oracle beside all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.control.ports import Records
from penstock.metrics.utilisation import Measure, booked
from penstock.policy.base import Policy
from penstock.policy.guards import guarded
from penstock.policy.registry import POLICIES, policy_for
from penstock.simulator.options import SimulationOptions
from penstock.simulator.result import ON_TIME, SimulationResult
from penstock.simulator.run import Setup, simulate

VARIANTS = {"static": ("static:mean", "static:peak"), "flink": ("flink", "flink:short")}
ORACLE = "oracle"
ON_TIME_TEXT = f"{ON_TIME:.0%}"

Watch = Callable[[str, float, float], None]  # policy, time simulated, time at which input ends


@dataclass(frozen=True, kw_only=True)
class Contest:
    """How policies compete: what each is made with and bounded by."""

    forecaster: str | None = None
    slots: int | None = None  # replicas that all operators may have together
    cooldown_s: float = 0.0
    measure: Measure = booked  # of how used replicas are, for the load-balancing grouping
    keep: Callable[[str], Records] | None = None  # where the intervals of a policy go, by its name

    def policy(self, spec: str, setup: Setup) -> Policy:
        """The policy of that name, within its guards."""
        policy = policy_for(spec, workload=setup.workload, forecaster=self.forecaster)
        return guarded(policy, slots=self.slots, scale_in_s=self.cooldown_s)


def policies_named(text: str) -> list[str]:
    """`all`, or names with their options, separated by commas.

    >>> policies_named("psps:predecessor_backlog,use_forecast,static:4,keda")
    ['psps:predecessor_backlog,use_forecast', 'static:4', 'keda']
    """
    if text == "all":
        return [spec for name in POLICIES.distinct for spec in VARIANTS.get(name, (name,))]
    return POLICIES.specs(text)


def compete(
    setup: Setup, specs: Sequence[str], contest: Contest | None = None, watch: Watch | None = None
) -> list[SimulationResult]:
    """Simulate every policy, and the oracle for the ratio to it; the results in the order of `specs`.

    Every name and option is checked before anything runs. The oracle changes replicas at no cost, whatever the others
    pay for it.
    """
    rules = contest or Contest()
    for spec in specs:
        rules.policy(spec, setup)
    free = replace(setup, cluster=None, options=_free(setup))
    best = _run(ORACLE, free, replace(rules, keep=None), watch)
    results = []
    for spec in specs:
        known = spec == ORACLE and free == setup and rules.keep is None
        result = best if known else _run(spec, setup, rules, watch)
        ratio = result.replica_seconds / best.replica_seconds if best.replica_seconds else float("nan")
        results.append(replace(result, oracle_ratio=ratio))
    return results


def _free(setup: Setup) -> SimulationOptions:
    """The options with nothing dropped, and changes that cost nothing."""
    free = replace(setup.options, actuation="pool", t_out_s=None, q_size=None)
    return replace(free, move_bandwidth=math.inf, move_latency_s=0.0) if setup.model.stateful else free


def ranked(results: Sequence[SimulationResult]) -> list[SimulationResult]:
    """Those that meet the target first, the cheapest first; then the others, the least late first."""
    return sorted(
        results,
        key=lambda one: (not one.meets_target, one.replica_seconds if one.meets_target else one.late_ratio),
    )


def _run(spec: str, setup: Setup, rules: Contest, watch: Watch | None) -> SimulationResult:
    def progress(now_s: float, end_s: float) -> None:
        if watch is not None:
            watch(spec, now_s, end_s)

    return simulate(
        setup,
        rules.policy(spec, setup),
        name=spec,
        forecaster=rules.forecaster,
        recorder=rules.keep(spec) if rules.keep is not None else None,
        measure=rules.measure,
        progress=progress,
    )
