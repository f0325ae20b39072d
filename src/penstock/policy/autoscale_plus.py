"""AUTOSCALE+: size every operator for the trend of its input, its parents' output and its queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.common.checks import choice, share, whole
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.autoscale_capacity import CpuRules, Need
from penstock.policy.autoscale_input import Estimate, Iteration, estimate_inputs, measured
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import distrusted, kept


@dataclass(eq=False, kw_only=True)
class AutoscalePlus:
    """The number of replicas of DABS-Storm, for the next iteration of length Δ = iteration · td.

        Estim R     = Σ_m f(m)       f: the best of linear, logarithmic and exponential regression on the last iteration
        Estim Input = combine(Estim R, Σ_parents Estim Input_p · α) + backlog
        Capacity    = Δ / et · UtilCPU       UtilCPU(T) = λ · max(used_T, reserved) + (1 − Σ_others used) / n, at most 1
        idealK      = Estim Input / Capacity
        above k: out; below β·k: in; to the least k' with Estim Input / (Δ / et · reserved · λ) ≤ k'

    The window slides: once it has the measurements of one iteration, it decides every interval. While a change of
    replicas settles, for `settle` intervals after it is seen, nothing is measured and nothing decided.

    `iteration`: measurements of one iteration. `combine`: max, careful, or min. `cpu_weight`: λ, the part of the
    CPU that is counted on. `scale_in_below`: β, near 0 to scale in rarely, as the paper wants it where OSG groups the
    events. `reserved`: CPU reserved for a replica, as a share of its core. `per_core`: n, replicas on one core.

    λ and β are the paper's. As its formula says, k' counts on λ of what is reserved only: with λ = 0.3 it is 3.3
    times idealK where a replica has its core for itself. `cpu_weight=1` takes that margin away. A scale-in that
    would end with more replicas than there are does not take place; the paper does not speak of it.

    >>> policy = AutoscalePlus(iteration=3)
    >>> for number, count in enumerate((10, 20, 30)):
    ...     clean = OperatorLoad(name="clean", received_by={"in": count}, processed=count, backlog=0, active=(0, 1),
    ...                          pool=64, execution_time_s=0.1)
    ...     plan = policy.plan(Snapshot(time_s=number, interval_s=1, td_s=1, source_input={"in": count},
    ...                                 operators={"clean": clean}))
    >>> plan.replicas  # 40, 50 and 60 events of 100 ms follow, in 3 s
    {'clean': 17}
    >>> plan.targets["clean"].reason.partition(" each: ")[2]
    '5 replicas, above 2: scales out to 16.67 that count on 0.3 of a core each'

    Kotto-Kombi et al., "DABS-Storm: A data-aware approach for elastic stream processing", TLDKS 40, 2019, §4.
    """

    iteration: int = 6
    combine: str = "max"
    cpu_weight: float = 0.3
    scale_in_below: float = 0.8
    reserved: float = 1.0
    per_core: int = 1
    settle: int = 1
    _number: int = field(default=0, init=False, repr=False)  # of the interval
    _settling: int = field(default=0, init=False, repr=False)  # intervals that still pass before it measures
    _seen: dict[str, int] = field(default_factory=dict, init=False, repr=False)  # replicas in the snapshot before
    _iterations: dict[str, Iteration] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        whole("policy 'autoscale_plus'", "iteration", self.iteration, least=2)
        choice("policy 'autoscale_plus'", "combine", self.combine, ("max", "min"))
        share("policy 'autoscale_plus'", "scale_in_below", self.scale_in_below)
        whole("policy 'autoscale_plus'", "settle", self.settle, least=0)
        self._cpu = CpuRules(weight=self.cpu_weight, reserved=self.reserved, per_core=self.per_core)

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, parents first."""
        self._number += 1
        if pause := self._pause(snapshot):
            return Plan({name: kept(load, pause) for name, load in snapshot.operators.items()})
        self._measure(snapshot)
        estimates = estimate_inputs(self._iterations, snapshot, self._number, self.combine)
        return Plan(
            {
                name: distrusted(load, snapshot) or self._target(load, estimates.get(name), snapshot)
                for name, load in snapshot.operators.items()
            }
        )

    def _pause(self, snapshot: Snapshot) -> str | None:
        """Why this interval is not measured, if so: a change, of any operator, is too fresh, or it has no length."""
        now = {name: load.replicas for name, load in snapshot.operators.items()}
        changed = any(self._seen.get(name, count) != count for name, count in now.items())
        self._seen = now
        self._settling = self.settle if changed else max(0, self._settling - 1)
        if self._settling > 0:
            return "a change of replicas settles"
        return None if snapshot.interval_s > 0 and snapshot.td_s > 0 else "an interval without length"

    def _measure(self, snapshot: Snapshot) -> None:
        iterations = {name: self._iterations.get(name, Iteration(self.iteration)) for name in snapshot.operators}
        for name, load in snapshot.operators.items():
            if name not in snapshot.incomplete:
                iterations[name].add(measured(load, snapshot, self._number))
        self._iterations = iterations

    def _target(self, load: OperatorLoad, estimate: Estimate | None, snapshot: Snapshot) -> Target:
        if estimate is None:
            known = len(self._iterations[load.name])
            return kept(load, f"has {known} of the {self.iteration} measurements of an iteration")
        expected = estimate.events / self.iteration
        now, length_s = max(1, load.replicas), self.iteration * snapshot.td_s
        said = f"expects in {length_s:g} s {estimate}"
        if load.execution_time_s is None:
            return Target(now, f"{said}, of unknown execution time: keeps {now} until one is measured", expected)
        work = estimate.events * load.execution_time_s / length_s
        need = Need(work, self._cpu.usable_by(load, snapshot), self.reserved * self.cpu_weight)
        verdict = need.verdict(now, self.scale_in_below)
        each = f"of {load.execution_time_s * 1000:.4g} ms each"
        return Target(verdict.replicas, f"{said} {each}: {verdict.reason}", expected)
