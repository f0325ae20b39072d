"""Oracle: sizes every operator for what will in fact enter in the next interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from penstock.common.checks import positive
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import Expected, Shares, SourceRates, distrusted, horizon_s, movable
from penstock.policy.workload import Workload


class Oracle:
    """A reference, and no bound: PSPS with a perfect forecast, and with all that waits above an operator.

        r_i = ⌈(entering(t, t + td) · θ_i + waiting_i) · et_i / td⌉      waiting_i = q_i + Σ_p θ_i^p · waiting_p

    It knows one interval and rounds up to whole replicas in each, so one that looks further ahead, or is late, may take
    fewer. The simulator plays it without the limits that others have: no delay, price or cooldown of a change.

    With several sources, what enters is split as in the last interval, equally if nothing entered then. An execution
    time that is not measured yet is the workload's.

    >>> from penstock.testing.loads import load, snapshot
    >>> def entering(start_s, end_s):
    ...     return 250.0 * (end_s - start_s)
    >>> oracle = Oracle(Workload(250, 250, {"clean": 1.0}, {"clean": 0.02}, entering))
    >>> oracle.plan(snapshot({"in": 50}, [load("clean", {"in": 50}, execution_time_s=0.02)])).replicas
    {'clean': 5}
    >>> oracle.initial({"clean": 4}, td_s=1.0)
    {'clean': 4}

    The shares are those of Wladdimiro et al., SBAC-PAD 2022.
    """

    own_windows = True  # short intervals make it no noisier

    def __init__(self, workload: Workload) -> None:
        if workload.entering is None:
            raise InputError(
                "policy 'oracle': needs a workload that knows how many events enter; its `entering` is None"
            )
        self.workload = workload
        self._rates = SourceRates()
        self._shares = Shares()

    def __repr__(self) -> str:
        return f"Oracle({self.workload!r})"

    def initial(self, pools: Mapping[str, int], td_s: float) -> dict[str, int]:
        """Replicas for what enters in the first interval, by the workload's shares and execution times."""
        rate = self._entering(0.0, positive("policy 'oracle'", "td_s", td_s)) / td_s
        shares, times_s = self.workload.shares, self.workload.execution_times_s
        need = {name: rate * shares.get(name, 0.0) * times_s.get(name, 0.0) for name in pools}
        return {name: min(pool, replicas_for(need[name])) for name, pool in pools.items()}

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, in topological order."""
        total = self._entering(snapshot.time_s, snapshot.td_s)
        edges = self._shares.learn(snapshot)
        new = propagate(_split(total, self._rates.learn(snapshot)), edges)
        over_s = horizon_s(snapshot.td_s)  # what waits is worked off evenly until then
        own = {name: movable(load, over_s) * snapshot.td_s / over_s for name, load in snapshot.operators.items()}
        waiting = propagate(own, edges)
        targets = {}
        for name, load in snapshot.operators.items():
            expected = Expected(new[name], waiting[name], total)
            targets[name] = distrusted(load, snapshot) or self._target(load, expected, snapshot.td_s)
        return Plan(targets)

    def _entering(self, start_s: float, length_s: float) -> float:
        """Events that enter in an interval, checked."""
        entering = self.workload.entering
        count = entering(start_s, start_s + length_s) if entering else math.nan
        if not 0 <= count < math.inf:
            span = f"from {start_s:g} to {start_s + length_s:g} s"
            raise InputError(f"policy 'oracle': events that enter {span} must be a number of at least 0; got {count}")
        return float(count)

    def _target(self, load: OperatorLoad, expected: Expected, td_s: float) -> Target:
        if load.execution_time_s is None:
            load = replace(load, execution_time_s=self.workload.execution_times_s.get(load.name))
        return expected.target(load, td_s)


def make_oracle(workload: Workload | None = None) -> Oracle:
    """An oracle for a workload whose future is known."""
    if workload is None:
        raise InputError("policy 'oracle': needs the workload's events, shares and execution times; got none")
    return Oracle(workload)


def _split(total: float, rates: Mapping[str, float]) -> dict[str, float]:
    """Events by source, in proportion to the rates; equally where all are 0.

    >>> _split(60.0, {"a": 1.0, "b": 2.0}), _split(60.0, {"a": 0.0, "b": 0.0})
    ({'a': 20.0, 'b': 40.0}, {'a': 30.0, 'b': 30.0})
    """
    together = sum(rates.values())
    if not together > 0:
        return {source: total / len(rates) for source in rates}
    return {source: total * rate / together for source, rate in rates.items()}
