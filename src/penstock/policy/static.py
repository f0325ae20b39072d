"""Static: the same replicas for the whole run."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.paper import static_replicas
from penstock.metrics.snapshot import Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.workload import Workload


class Static:
    """A fixed number of replicas: the same for every operator, or one by name (others keep what they have).

    >>> Static(4).replicas, Static({"clean": 2, "store": 5}).replicas
    (4, {'clean': 2, 'store': 5})
    """

    own_windows = True  # short intervals make it no noisier

    def __init__(self, replicas: int | Mapping[str, int], why: str = "static") -> None:
        counts = [replicas] if isinstance(replicas, int) else replicas.values()
        for count in counts:
            whole("policy 'static'", "replicas", count)
        self.replicas = replicas
        self.why = why

    def __repr__(self) -> str:
        return f"Static({self.replicas!r})"

    def initial(self, pools: Mapping[str, int], td_s: float) -> dict[str, int]:  # noqa: ARG002
        """Its numbers, within the pools; 1 for an operator that has none."""
        return {name: min(pool, self._count(name, 1)) for name, pool in pools.items()}

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """The same as ever."""
        counts = {name: self._count(name, load.replicas) for name, load in snapshot.operators.items()}
        return Plan({name: Target(max(1, count), self.why) for name, count in counts.items()})

    def _count(self, operator: str, otherwise: int) -> int:
        return self.replicas if isinstance(self.replicas, int) else self.replicas.get(operator, otherwise)


def make_static(replicas: int | str = 1, workload: Workload | None = None) -> Static:
    """`static:4`, or `static:peak` and `static:mean`: ⌈rate · θ_i · et_i⌉ for the peak or mean rate of the workload.

    >>> workload = Workload(400, 100, {"clean": 1.0, "store": 0.5}, {"clean": 0.01, "store": 0.016})
    >>> make_static("peak", workload).replicas, make_static("mean", workload).replicas
    ({'clean': 4, 'store': 4}, {'clean': 1, 'store': 1})
    """
    if isinstance(replicas, int):
        return Static(replicas)
    if replicas not in ("peak", "mean"):
        raise InputError(f"policy 'static': must be a number, peak or mean; got {replicas!r}")
    if workload is None:
        raise InputError(f"policy 'static:{replicas}': needs the workload's rates, shares and execution times")
    rate = workload.peak_rate if replicas == "peak" else workload.mean_rate
    counts = static_replicas(rate, workload.shares, workload.execution_times_s)
    return Static(counts, f"static, sized for the {replicas} rate of {rate:.4g} events per second")
