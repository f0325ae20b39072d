"""AUTOSCALE+: size every operator for the trend of its input, its parents' output and its queue.

Kotto-Kombi et al., "DABS-Storm: A data-aware approach for elastic stream processing", TLDKS 40, 2019, §4: first the
policy, then its two halves, what will come in (equations 3 to 5) and how much of it a replica can take (6 to 13).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.common.checks import choice, share, whole
from penstock.forecast.base import Forecast
from penstock.forecast.regression import best_fit
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import distrusted, kept

_ROUNDING = 1e-9


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


# What comes in, equations 3 to 5:
#     Estim R     = Σ_m f(m)                  f: the best regression on the last iteration's measurements
#     Estim Out   = Estim Input · α           α: mean selectivity of the last iteration, by receiver
#     Estim Input = combine(Estim R, Σ_parents Estim Out) + pending


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an operator got in one interval; rates are per second."""

    number: int  # of the interval
    rate: float  # received from all
    source_rate: float  # of that, from sources
    backlog: int
    edges: Mapping[str, tuple[int, int]]  # by parent, an operator: received from it, and processed by it


def measured(load: OperatorLoad, snapshot: Snapshot, number: int) -> Measurement:
    """An operator's interval as a measurement; a parent whose numbers cannot be trusted has no part in it."""
    from_sources = sum(count for sender, count in load.received_by.items() if sender not in snapshot.operators)
    edges = {
        parent: (count, snapshot.operators[parent].processed)
        for parent, count in load.received_by.items()
        if parent in snapshot.operators and parent not in snapshot.incomplete
    }
    length_s = snapshot.interval_s
    return Measurement(number, load.received / length_s, from_sources / length_s, load.backlog, edges)


class Iteration:
    """The last `size` measurements of one operator: a window that slides on by one measurement an interval.

    >>> last = Iteration(3)
    >>> for number, rate in enumerate((10.0, 20.0, 30.0)):
    ...     last.add(Measurement(number, rate, rate, 0, {"parse": (10, 40)}))
    >>> last.expected_rates(number=2)  # 40, 50 and 60 a second follow
    (150.0, 'linear')
    >>> last.selectivity("parse", declared=1.0)
    0.25
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._measurements: deque[Measurement] = deque(maxlen=size)
        self._selectivity: dict[str, float] = {}  # last known, by parent

    def __len__(self) -> int:
        return len(self._measurements)

    @property
    def full(self) -> bool:
        """Whether there are as many measurements as an iteration has."""
        return len(self._measurements) == self.size

    @property
    def pending(self) -> int:
        """The backlog at the last measurement."""
        return self._measurements[-1].backlog

    def add(self, measurement: Measurement) -> None:
        """Take in a measurement and forget the one that leaves the window."""
        self._measurements.append(measurement)
        for parent in measurement.edges:
            pairs = [one.edges[parent] for one in self._measurements if parent in one.edges]
            processed = sum(done for _, done in pairs)
            if processed > 0:
                self._selectivity[parent] = sum(received for received, _ in pairs) / processed

    def selectivity(self, parent: str, declared: float) -> float:
        """α: events received per event that the parent processed, over the iteration; or last known; or declared."""
        return self._selectivity.get(parent, declared)

    def expected_rates(self, number: int, *, from_sources: bool = False) -> tuple[float, str]:
        """The sum of the rates of the `size` intervals after `number`, and the form of the curve they are on."""
        first = self._measurements[0].number
        times = [one.number - first + 1 for one in self._measurements]
        rates = [one.source_rate if from_sources else one.rate for one in self._measurements]
        fit = best_fit(times, rates)
        ahead = number - first + 2
        return float(fit.rates(range(ahead, ahead + self.size)).sum()), fit.form


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estim Input of one operator, in events of the next iteration."""

    own: float  # Estim R
    form: str  # of the curve it is on
    parents: float | None  # Σ Estim Out; None where only sources feed it, or a parent has no estimate yet
    new: float  # the two combined
    pending: float

    @property
    def events(self) -> float:
        """Estim Input."""
        return self.new + self.pending

    def __str__(self) -> str:
        parents = "" if self.parents is None else f", {self.parents:.4g} by its parents"
        return (
            f"{self.events:.4g} events ({self.own:.4g} by its {self.form} trend{parents}; {self.pending:.4g} backlog)"
        )


def estimate_inputs(
    iterations: Mapping[str, Iteration], snapshot: Snapshot, number: int, combine: str
) -> dict[str, Estimate]:
    """Estim Input, after interval `number`, of every operator whose iteration is full; parents first."""
    estimates: dict[str, Estimate] = {}
    for name, load in snapshot.operators.items():
        last = iterations.get(name)
        if last is None or not last.full:
            continue
        rates, form = last.expected_rates(number)
        own = rates * snapshot.td_s
        parents = [sender for sender in load.received_by if sender in snapshot.operators]
        if not parents or not all(parent in estimates for parent in parents):
            estimates[name] = Estimate(own, form, None, own, last.pending)
            continue
        sent = sum(estimates[p].events * last.selectivity(p, load.declared_shares.get(p, 1.0)) for p in parents)
        if len(parents) < len(load.received_by):  # sources feed it too: their part goes on by its own trend
            sent += last.expected_rates(number, from_sources=True)[0] * snapshot.td_s
        new = max(own, sent) if combine == "max" else min(own, sent)
        estimates[name] = Estimate(own, form, sent, new, last.pending)
    return estimates


# What a replica can take, equations 6 to 13.


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuRules:
    """How AUTOSCALE+ sees the CPU: its weight λ, the share reserved for a replica, the replicas on one core.

        UtilCPU(T) = λ · max(used_T, reserved) + (1 − Σ_others used) / n       at most 1
        UtilCPU_i  = min over the operator's replicas

    >>> shared = CpuRules(weight=0.3, reserved=0.25, per_core=4)
    >>> round(shared.usable(used=0.5, others=0.6), 12)  # 0.3 · 0.5 + 0.4 / 4
    0.25
    >>> CpuRules(weight=0.3, reserved=1.0, per_core=1).usable(used=0.5, others=0.0)
    1.0
    """

    weight: float
    reserved: float
    per_core: int

    def __post_init__(self) -> None:
        share("policy 'autoscale_plus'", "cpu_weight", self.weight)
        share("policy 'autoscale_plus'", "reserved", self.reserved)
        whole("policy 'autoscale_plus'", "per_core", self.per_core, least=1)

    def usable(self, used: float, others: float) -> float:
        """UtilCPU of a replica that used `used` of its core, the others on it `others`."""
        return min(1.0, self.weight * max(used, self.reserved) + max(0.0, 1.0 - others) / self.per_core)

    def usable_by(self, load: OperatorLoad, snapshot: Snapshot) -> float:
        """UtilCPU of an operator.

        Where the replicas of a topology sit is not known: the others on a core are taken to be as busy as the mean.
        """
        others = (self.per_core - 1) * _mean_busy(snapshot) if self.per_core > 1 else 0.0
        return min((self.usable(load.busy_share.get(replica, 0.0), others) for replica in load.active), default=1.0)


def _mean_busy(snapshot: Snapshot) -> float:
    loads = snapshot.operators.values()
    busy = sum(load.busy_share.get(replica, 0.0) for load in loads for replica in load.active)
    return busy / max(1, snapshot.replicas)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the working interval says of an operator's replicas, in words too."""

    replicas: int
    reason: str


@dataclass(frozen=True, slots=True)
class Need:
    """Replicas for `work`, which is in replicas' time (Estim Input · Lat / Δ), by what of a core each of them can use.

        idealK = work / usable       safe = work / counted       usable = UtilCPU, counted = reserved · λ

    `safe` stands for what is sure: after a change replicas may sit elsewhere, and only what is reserved is theirs.
    """

    work: float
    usable: float
    counted: float

    def verdict(self, now: int, scale_in_below: float) -> Verdict:
        """Scale out above `now`, in below β · `now`, to ⌈safe⌉ each time; in between is the working interval.

        >>> Need(2.5, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).replicas
        9
        >>> Need(1.7, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).reason
        '1.7 replicas, within 1.6 to 2: stays'

        A scale-in that would end with more replicas than there are does not take place.

        >>> Need(1.5, usable=1.0, counted=0.3).verdict(now=2, scale_in_below=0.8).replicas
        2
        """
        ideal, least = self.work / self.usable, scale_in_below * now
        safe = self.work / self.counted
        sure = f"{safe:.4g} that count on {self.counted:.4g} of a core each"
        if ideal > now * (1 + _ROUNDING):
            return Verdict(replicas_for(safe), f"{ideal:.4g} replicas, above {now}: scales out to {sure}")
        if ideal >= least * (1 - _ROUNDING):
            return Verdict(now, f"{ideal:.4g} replicas, within {least:.4g} to {now}: stays")
        if replicas_for(safe) >= now:
            return Verdict(now, f"{ideal:.4g} replicas, below {least:.4g}, but keeps {now}: it takes {sure}")
        return Verdict(replicas_for(safe), f"{ideal:.4g} replicas, below {least:.4g}: scales in to {sure}")
