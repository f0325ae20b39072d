"""SREA: size every operator for the load it has now."""

from __future__ import annotations

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.planning.ahead import Sizing, last_rates, unplanned


class Srea:
    """BGElasor's Standard Reactive Elasticity Algorithm: each operator gets what its last input and its backlog need.

        n(t+1) = ⌈(rate(t) + backlog / (catch_up · td)) · et / utilisation⌉      from 1 to the pool

    It uses no forecast, so its timetable has one step. `catch_up`: intervals over which a backlog is worked off.
    `utilisation`: the share of a replica's time that is planned for.

    >>> from penstock.testing.loads import load, snapshot
    >>> plan = Srea().plan(snapshot({"in": 90}, [load("clean", {"in": 90}, backlog=10, execution_time_s=0.025)]))
    >>> plan.targets["clean"].replicas, plan.targets["clean"].reason
    (3, '90/s came and 10/s backlog, of 25 ms each: needs 3')

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network", NPC
    2019, §4.3.
    """

    def __init__(self, *, catch_up: int = 1, utilisation: float = 1.0) -> None:
        self._sizing = Sizing(policy="srea", catch_up=catch_up, utilisation=utilisation)
        self.catch_up = catch_up
        self.utilisation = utilisation

    def __repr__(self) -> str:
        return f"Srea(catch_up={self.catch_up}, utilisation={self.utilisation:g})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, each by its own input."""
        rates = last_rates(snapshot)
        held = {name: unplanned(load, snapshot) for name, load in snapshot.operators.items()}
        targets = {
            name: held[name] or self._target(load, rates[name], snapshot.td_s)
            for name, load in snapshot.operators.items()
        }
        return Plan(targets, (), {name: (targets[name].replicas,) for name in targets if held[name] is None})

    def _target(self, load: OperatorLoad, rate: float, td_s: float) -> Target:
        need = self._sizing.need(load, (rate,), td_s)
        return Target(int(need.replicas[0]), str(need), (rate + need.waiting) * td_s)
