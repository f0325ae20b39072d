"""PSPS: size every operator for what will enter the topology, not for what reached it so far."""

from __future__ import annotations

from collections.abc import Mapping

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
        self.predecessor_backlog = predecessor_backlog
        self.use_forecast = use_forecast
        self._edges: dict[str, dict[str, float]] = {}  # the shares last known, θ_i^p

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
        return Plan(targets, notes)

    def _entering(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[dict[str, float], tuple[str, ...]]:
        """λ̂_G(t+1) by source: its last value, or the forecast."""
        scale = snapshot.td_s / snapshot.interval_s
        entering = {source: count * scale for source, count in snapshot.source_input.items()}
        if not self.use_forecast:
            return entering, ()
        notes = []
        for source in entering:
            rate = forecast.rate(source) if forecast else None
            if rate is None:
                notes.append(f"no forecast for source '{source}' yet: taking its last value")
            else:
                entering[source] = rate * snapshot.td_s
        return entering, tuple(notes)

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
