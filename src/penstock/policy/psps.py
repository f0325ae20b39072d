"""PSPS: size every operator for what will enter the topology, not for what reached it so far."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target


class Psps:
    """The predictive number of replicas of the PSPS papers, before any bound but one replica.

        θ_i^p = λ_i^p / μ_p      θ_i = Σ_p θ_i^p · θ_p      λ̂_i = λ_G · θ_i + q_i      r_i = ⌈λ̂_i · et_i / td⌉

    Predicting from λ_G through the shares stops the domino effect: successors are sized for the events that will
    come, in the same step as their predecessors. With several sources the predictions add up. A predecessor that
    processed nothing leaves its share as it was last known, or as declared.

    `predecessor_backlog`: events queued at predecessors count too, times their shares (the papers' future work).
    `use_forecast`: the forecast of λ_G, where there is one, takes the place of its last value (likewise).

    >>> o1 = OperatorLoad(name="o1", received_by={"in": 100}, processed=140, backlog=0, active=(0, 1), pool=16,
    ...                   execution_time_s=0.0166)
    >>> o2 = OperatorLoad(name="o2", received_by={"o1": 117}, processed=120, backlog=7, active=(0, 1), pool=16,
    ...                   execution_time_s=0.025)
    >>> plan = Psps().plan(Snapshot(time_s=1, interval_s=1, td_s=1, source_input={"in": 100},
    ...                             operators={"o1": o1, "o2": o2}))
    >>> plan.replicas
    {'o1': 2, 'o2': 3}
    >>> plan.targets["o2"].reason
    'expects 90.57 events (83.57 new, 0.8357 of 100 entering; 7 backlog) of 25 ms each: 2.264 replicas'

    Wladdimiro et al., "A predictive approach for dynamic replication of operators in distributed stream processing
    systems", SBAC-PAD 2022; "PRESPS", COMPAS 2023.
    """

    def __init__(self, *, predecessor_backlog: bool = False, use_forecast: bool = False) -> None:
        for name, value in (("predecessor_backlog", predecessor_backlog), ("use_forecast", use_forecast)):
            if not isinstance(value, bool):
                raise InputError(f"policy 'psps': {name} must be true or false; got {value!r}")
        self.predecessor_backlog = predecessor_backlog
        self.use_forecast = use_forecast
        self._entered: dict[str, float] = {}  # rates per second last known, by source
        self._edges: dict[str, dict[str, float]] = {}  # the shares last known, θ_i^p

    def __repr__(self) -> str:
        return f"Psps(predecessor_backlog={self.predecessor_backlog}, use_forecast={self.use_forecast})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target for every operator, in topological order."""
        entering, notes = self._entering(snapshot, forecast)
        self._edges = {name: self._shares(load, snapshot) for name, load in snapshot.operators.items()}
        new = propagate(entering, self._edges)
        waiting: Mapping[str, float] = {name: load.backlog for name, load in snapshot.operators.items()}
        if self.predecessor_backlog:
            waiting = propagate(waiting, self._edges)
        total = sum(entering.values())
        targets = {
            name: _target(load, _Expected(new[name], waiting[name], total), snapshot.td_s)
            for name, load in snapshot.operators.items()
        }
        return Plan(targets, (*notes, *_short_interval(snapshot)))

    def _entering(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[dict[str, float], tuple[str, ...]]:
        """λ̂_G(t+1) by source: its last value, or the forecast."""
        last = {}
        for source, count in snapshot.source_input.items():
            rate = count / snapshot.interval_s
            last[source] = self._entered.get(source, rate) if source in snapshot.incomplete else rate
        self._entered = last
        entering = {source: rate * snapshot.td_s for source, rate in last.items()}
        if not self.use_forecast:
            return entering, ()
        expected = {source: forecast.rate(source) if forecast else None for source in last}
        entering |= {source: rate * snapshot.td_s for source, rate in expected.items() if rate is not None}
        silent = [source for source, rate in expected.items() if rate is None]
        return entering, tuple(f"no forecast for source '{source}' yet: takes its last value" for source in silent)

    def _shares(self, load: OperatorLoad, snapshot: Snapshot) -> dict[str, float]:
        """θ_i^p for each predecessor p: 1 for a source; measured; or last known; or declared; or 1."""
        known = self._edges.get(load.name, {})
        trusted = load.name not in snapshot.incomplete
        shares = {}
        for predecessor, received in load.received_by.items():
            sender = snapshot.operators.get(predecessor)
            if predecessor in snapshot.source_input:
                shares[predecessor] = 1.0
            elif sender and sender.processed > 0 and trusted and predecessor not in snapshot.incomplete:
                shares[predecessor] = received / sender.processed
            else:
                declared = load.declared_shares.get(predecessor, 1.0)
                shares[predecessor] = known.get(predecessor, declared)
        return shares


def _short_interval(snapshot: Snapshot) -> tuple[str, ...]:
    """A note if td does not exceed the time of one event through the DAG, as the papers require."""
    through_s: dict[str, float] = {}
    for name, load in snapshot.operators.items():
        before_s = max((through_s.get(p, 0.0) for p in load.received_by), default=0.0)
        through_s[name] = before_s + (load.execution_time_s or 0.0)
    longest_s = max(through_s.values(), default=0.0)
    if longest_s < snapshot.td_s:
        return ()
    return (f"td of {snapshot.td_s:g} s does not exceed the {longest_s:.4g} s of one event through the topology",)


class _Expected:
    """What an operator has to process in the next interval: new events, and those that wait already."""

    __slots__ = ("entering", "new", "waiting")

    def __init__(self, new: float, waiting: float, entering: float) -> None:
        self.new = new
        self.waiting = waiting
        self.entering = entering

    def __str__(self) -> str:
        share = f", {self.new / self.entering:.4g} of {self.entering:.4g} entering" if self.entering > 0 else ""
        return f"expects {self.new + self.waiting:.4g} events ({self.new:.4g} new{share}; {self.waiting:.4g} backlog)"


def _target(load: OperatorLoad, expected: _Expected, td_s: float) -> Target:
    events = expected.new + expected.waiting
    if load.execution_time_s is None:
        reason = f"{expected}, of unknown execution time: keeps {load.replicas} until one is measured"
        return Target(max(1, load.replicas), reason, events)
    need = events * load.execution_time_s / td_s
    reason = f"{expected} of {load.execution_time_s * 1000:.4g} ms each: {need:.4g} replicas"
    return Target(replicas_for(need), reason, events)
