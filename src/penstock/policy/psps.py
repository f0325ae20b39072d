"""PSPS: size every operator for what will enter the topology, not for what reached it so far."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.common.checks import flag
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import Loads, Snapshot
from penstock.policy.base import Plan, Target, Targets
from penstock.policy.parts.expected import Expected, Shares, SourceRates, all_movable, foreseen, horizon_s


class Psps:
    """The predictive number of replicas of the PSPS papers, before any bound but one replica.

        θ_i^p = λ_i^p / μ_p      θ_i = Σ_p θ_i^p · θ_p      λ̂_i = λ_G · θ_i + q_i      r_i = ⌈λ̂_i · et_i / td⌉

    Predicting from λ_G through the shares stops the domino effect: successors are sized for the events that will
    come, in the same step as their predecessors. With several sources the predictions add up. A predecessor that
    processed nothing leaves its share as it was last known, or as declared. Where it is known what waits at which
    replica, q_i is only what added replicas can do something about (`movable`). Where td is below a second, a second
    is planned for: else what waits for a moment would be worked off in a moment, by more replicas the shorter td is.

    `predecessor_backlog`: events queued at predecessors count too, times their shares (the papers' future work).
    `use_forecast`: the forecast of λ_G, where there is one, takes the place of its last value (likewise).

    >>> from penstock.metrics.snapshot import OperatorLoad
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

    own_windows = True  # short intervals make it no noisier

    def __init__(self, *, predecessor_backlog: bool = False, use_forecast: bool = False) -> None:
        self.predecessor_backlog = flag("policy 'psps'", "predecessor_backlog", predecessor_backlog)
        self.use_forecast = flag("policy 'psps'", "use_forecast", use_forecast)
        self._rates = SourceRates()
        self._shares = Shares()

    def __repr__(self) -> str:
        return f"Psps(predecessor_backlog={self.predecessor_backlog}, use_forecast={self.use_forecast})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target for every operator, in topological order."""
        entering, notes = self._entering(snapshot, forecast)
        edges = self._shares.learn(snapshot)
        new = propagate(entering, edges)
        over_s = horizon_s(snapshot.td_s)
        own = all_movable(snapshot.loads, over_s)
        waiting: Mapping[str, float] = propagate(own, edges) if self.predecessor_backlog else own
        total = sum(entering.values())

        def target(name: str) -> Target:
            load = snapshot.operators[name]
            return Expected(new[name], waiting[name], total, load.backlog - own[name]).target(load, over_s)

        targets = Targets(_replicas(snapshot.loads, new, waiting, over_s), target)
        return Plan(targets, (*notes, *_short_interval(snapshot)))

    def _entering(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[dict[str, float], tuple[str, ...]]:
        """λ̂_G(t+1) by source: its last value, or the forecast."""
        last = self._rates.learn(snapshot)
        rates, notes = foreseen(last, forecast) if self.use_forecast else (last, ())
        return {source: rate * horizon_s(snapshot.td_s) for source, rate in rates.items()}, notes


def _replicas(loads: Loads, new: Mapping[str, float], waiting: Mapping[str, float], over_s: float) -> dict[str, int]:
    """⌈λ̂_i · et_i / td⌉ of all operators; as many as there are where the execution time is not known."""
    return {
        name: max(1, loads.replicas[name])
        if time_s is None or not over_s > 0
        else replicas_for((new[name] + waiting[name]) * time_s / over_s)
        for name, time_s in loads.execution_time_s.items()
    }


def _short_interval(snapshot: Snapshot) -> tuple[str, ...]:
    """A note if td does not exceed the time of one event through the DAG, as the papers require."""
    longest_s = snapshot.loads.received.graph.longest(snapshot.loads.execution_time_s)
    if longest_s < snapshot.td_s:
        return ()
    return (f"td of {snapshot.td_s:g} s does not exceed the {longest_s:.4g} s of one event through the topology",)
