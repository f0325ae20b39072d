from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from penstock.control.analyze import Analyzer
from penstock.control.loop import Loop, Parts
from penstock.control.monitor import Monitor
from penstock.forecast.last_value import LastValue
from penstock.metrics.interval import IntervalRules
from penstock.metrics.utilisation import used
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant

TIMES_S = (0.010, 0.020, 0.015, 0.010, 0.040)


@dataclass
class Rig:
    """A loop around a chain of five operators, on a clock that the test moves."""

    clock: ManualClock
    plant: FakePlant
    loop: Loop
    records: list[Any]

    def steps(self, count, rate=None):
        """Let so many intervals pass and give their steps."""
        if rate is not None:
            self.plant.rates["in"] = rate
        done = []
        for _ in range(count):
            self.clock.advance(self.loop.td_s)
            done.append(self.loop.step(self.clock.now()))
        return done


class Listed(list):
    """Keeps records as a store would."""

    def record(self, record):
        self.append(record)


@pytest.fixture
def make_rig():
    def make(policy=None, *, start=32, recorder=None, wrap=None):
        clock = ManualClock(start_s=1000.0)
        chain = [FakeOperator(f"o{n}", {f"o{n - 1}" if n else "in": 1.0}, time_s) for n, time_s in enumerate(TIMES_S)]
        plant = FakePlant(chain, clock)
        for operator in chain:
            plant.set_replicas(operator.name, tuple(range(start)))
        edge = wrap(plant) if wrap else plant
        records = Listed() if recorder is None else recorder
        monitor = Monitor(edge, IntervalRules(2.0, plant.declared()))
        parts = Parts(
            monitor, guarded(policy or Psps()), edge, Analyzer("last_value", lambda series: LastValue()), records, used
        )
        loop = Loop(parts, clock)
        loop.step(clock.now())
        return Rig(clock, plant, loop, records)

    return make
