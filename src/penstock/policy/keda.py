"""KEDA: size each operator by what waits for it."""

from __future__ import annotations

from penstock.common.checks import at_least, positive
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import distrusted, kept
from penstock.policy.parts.window import Largest

_ROUNDING = 1e-9


class Keda:
    """Scaling by backlog, as KEDA and Kubernetes do it: one replica for what one replica does in `seconds`.

        r_i = ⌈q_i / threshold_i⌉, from 1 to the pool      threshold_i = seconds / et_i

    Where q_i is within `tolerance` of what the present replicas are for, it keeps them. Scale-out is at once. Scale-in
    goes no lower than the largest wish of the last `cooldown_s` seconds; the replicas it finds at the start count as
    the first wish.

    >>> from penstock.testing.loads import load, snapshot
    >>> plan = Keda(seconds=5).plan(snapshot({"in": 900}, [load("clean", {"in": 900}, backlog=600,
    ...                                                         execution_time_s=0.02)]))
    >>> plan.targets["clean"].replicas, plan.targets["clean"].reason
    (3, '600 events wait, of 20 ms each: 2.4 replicas do them in 5 s')

    KEDA, "Scaling deployments" (external metrics with a target per replica); Kubernetes, "Horizontal pod autoscaling"
    (the stabilisation window for scale-in, the tolerance of 10 %).
    """

    own_windows = True  # short intervals make it no noisier

    def __init__(self, seconds: float = 5.0, *, cooldown_s: float = 300.0, tolerance: float = 0.1) -> None:
        self.seconds = positive("policy 'keda'", "seconds", seconds)
        self.cooldown_s = at_least("policy 'keda'", "cooldown_s", cooldown_s)
        self.tolerance = at_least("policy 'keda'", "tolerance", tolerance)
        self._wishes: dict[str, Largest] = {}

    def __repr__(self) -> str:
        return f"Keda({self.seconds:g}, cooldown_s={self.cooldown_s:g})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, each by its own backlog."""
        self._wishes = {name: self._wishes_of(load, snapshot.time_s) for name, load in snapshot.operators.items()}
        return Plan(
            {
                name: distrusted(load, snapshot) or self._target(load, snapshot.time_s)
                for name, load in snapshot.operators.items()
            }
        )

    def _wishes_of(self, load: OperatorLoad, time_s: float) -> Largest:
        known = self._wishes.get(load.name)
        if known is None:
            known = Largest(self.cooldown_s)
            known.add(time_s, load.replicas)
        return known

    def _target(self, load: OperatorLoad, time_s: float) -> Target:
        if load.execution_time_s is None:
            return kept(load, f"{load.backlog} events wait, of unknown execution time")
        need = load.backlog * load.execution_time_s / self.seconds
        wait = f"{load.backlog} events wait, of {load.execution_time_s * 1000:.4g} ms each"
        target = Target(replicas_for(need), f"{wait}: {need:.4g} replicas do them in {self.seconds:g} s")
        if target.replicas != load.replicas and abs(need / max(1, load.replicas) - 1) <= self.tolerance + _ROUNDING:
            target = target.limited(load.replicas, f"within {self.tolerance:.0%} of what {load.replicas} are for")
        if target.replicas > load.pool:
            target = target.limited(load.pool, f"the pool has {load.pool}")
        largest = self._wishes[load.name].add(time_s, target.replicas)
        held = min(load.replicas, largest)
        if held <= target.replicas:
            return target
        return target.limited(held, f"scale-in waits until it has wished for fewer for {self.cooldown_s:g} s")
