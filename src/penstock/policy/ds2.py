"""DS2: as many replicas as the true rates need for what the sources bring."""

from __future__ import annotations

from penstock.common.checks import flag
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.busy import TrueRates
from penstock.policy.parts.expected import Shares, SourceRates, distrusted, foreseen


class Ds2:
    """The DS2 controller: rates while busy tell what each operator could do, and so how many replicas it needs.

        true rate_i = processed_i / busy time_i      target_i = Σ_p target_p · θ_i^p      π_i = ⌈target_i / true rate_i⌉

    The target of a source is its rate; θ_i^p is p's true output per input to i. The backlog does not count. Before an
    operator was busy it keeps what it has, and passes its target on by the declared shares.

    `use_forecast`: the forecast of a source's rate, where there is one, takes the place of its last value.

    >>> from penstock.testing.loads import load, snapshot
    >>> o1 = load("o1", {"in": 50}, 50, busy_share={0: 1.0})
    >>> o2 = load("o2", {"o1": 400}, 100, busy_share={0: 1.0})
    >>> plan = Ds2().plan(snapshot({"in": 100}, [o1, o2]))
    >>> plan.replicas
    {'o1': 2, 'o2': 8}
    >>> plan.targets["o2"].reason
    '800 events per second to process, 100 by a replica that is always busy: 8 replicas'

    Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed
    streaming dataflows", OSDI 2018.
    """

    def __init__(self, *, use_forecast: bool = False) -> None:
        self.use_forecast = flag("policy 'ds2'", "use_forecast", use_forecast)
        self._sources = SourceRates()
        self._shares = Shares()
        self._rates = TrueRates()

    def __repr__(self) -> str:
        return f"Ds2(use_forecast={self.use_forecast})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target for every operator, in topological order."""
        last = self._sources.learn(snapshot)
        entering, notes = foreseen(last, forecast) if self.use_forecast else (last, ())
        rates = propagate(entering, self._shares.learn(snapshot))
        true_rates = self._rates.learn(snapshot)
        targets = {
            name: distrusted(load, snapshot) or _target(load, rates[name], true_rates[name], snapshot.td_s)
            for name, load in snapshot.operators.items()
        }
        return Plan(targets, notes)


def _target(load: OperatorLoad, rate: float, true_rate: float | None, td_s: float) -> Target:
    todo = f"{rate:.4g} events per second to process"
    if true_rate is None:
        reason = f"{todo}, no busy time measured yet: keeps {load.replicas}"
        return Target(max(1, load.replicas), reason, rate * td_s)
    need = rate / true_rate
    reason = f"{todo}, {true_rate:.4g} by a replica that is always busy: {need:.4g} replicas"
    return Target(replicas_for(need), reason, rate * td_s)
