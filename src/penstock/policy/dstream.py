"""DStream: the rule of Spark Streaming's own dynamic allocation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.common.checks import at_least, positive
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import distrusted, kept

_EARLY = 0.1  # of an interval: a check comes with the interval that ends so shortly before it is due


@dataclass(slots=True)
class _Since:
    """What one operator was given to do since the last check, and the time its replicas had for it."""

    work_s: float = 0.0
    time_s: float = 0.0


class DStream:
    """Spark Streaming's rule, for each operator: every `every_s`, the time its events took over the time there was.

        ratio = received · et / (replicas · length)
        ratio ≥ up: add max(1, round(ratio))          ratio ≤ down: remove one, never the last

    Between checks everything stays as it is.

    >>> from penstock.testing.loads import load, snapshot
    >>> busy = load("clean", {"in": 6000}, execution_time_s=0.02, replicas=2)
    >>> plan = DStream().plan(snapshot({"in": 6000}, [busy], interval_s=60.0, td_s=60.0))
    >>> plan.targets["clean"].replicas, plan.targets["clean"].reason
    (3, "its events took 1 of its replicas' time in the last 60 s, at 0.9 or more: adds 1")

    Apache Spark, `ExecutorAllocationManager` of Spark Streaming: 60 s, 0.9 and 0.3 are its defaults.
    """

    def __init__(self, every_s: float = 60.0, *, up: float = 0.9, down: float = 0.3) -> None:
        self.every_s = positive("policy 'dstream'", "every_s", every_s)
        self.up = positive("policy 'dstream'", "up", up)
        self.down = at_least("policy 'dstream'", "down", down)
        if not self.down < self.up:
            raise InputError(f"policy 'dstream': down must be below up, {self.up:g}; got {down!r}")
        self._length_s = 0.0  # since the last check
        self._since: dict[str, _Since] = {}

    def __repr__(self) -> str:
        return f"DStream({self.every_s:g}, up={self.up:g}, down={self.down:g})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """What is there; or, when a check is due, a little more or less of it."""
        self._learn(snapshot)
        left_s = self.every_s - self._length_s
        if left_s > _EARLY * snapshot.td_s:
            why = f"looks again in {left_s:.4g} s"
            return Plan({name: kept(load, why) for name, load in snapshot.operators.items()})
        targets = {
            name: distrusted(load, snapshot) or self._target(load, self._since[name])
            for name, load in snapshot.operators.items()
        }
        self._length_s, self._since = 0.0, {}
        return Plan(targets)

    def _learn(self, snapshot: Snapshot) -> None:
        self._length_s += snapshot.interval_s
        self._since = {name: self._since.get(name, _Since()) for name in snapshot.operators}
        for name, load in snapshot.operators.items():
            if name not in snapshot.incomplete and load.execution_time_s is not None:
                self._since[name].work_s += load.received * load.execution_time_s
                self._since[name].time_s += load.replicas * snapshot.interval_s

    def _target(self, load: OperatorLoad, since: _Since) -> Target:
        if not since.time_s > 0:
            return kept(load, "no execution time known since the last check")
        ratio = since.work_s / since.time_s
        replicas = max(1, load.replicas)
        seen = f"its events took {ratio:.3g} of its replicas' time in the last {self._length_s:.4g} s"
        if ratio >= self.up:
            more = max(1, math.floor(ratio + 0.5))
            return Target(replicas + more, f"{seen}, at {self.up:g} or more: adds {more}")
        if ratio <= self.down and replicas > 1:
            return Target(replicas - 1, f"{seen}, at {self.down:g} or less: removes 1")
        return Target(replicas, f"{seen}: keeps {replicas}")
