"""Small scenarios that can be worked out by hand."""

from __future__ import annotations

from penstock.simulator import Scenario
from penstock.topology import Topology
from penstock.workload import Trace

from .plant.test_plant import passed


def row_of(*times_ms: float, pool: int = 8) -> Topology:
    """Operators o0, o1, … in a row."""
    topology = Topology("row", pool=pool)
    last = topology.source("in").name
    for number, time_ms in enumerate(times_ms):
        last = topology.operator(f"o{number}", passed, inputs=last, execution_time_ms=time_ms).name
    return topology


def scenario_of(rates: list[float], *times_ms: float, step_s: float = 10.0, **values) -> Scenario:
    """A row of operators under a trace of these rates."""
    scenario = Scenario(row_of(*times_ms), Trace("made", step_s, rates))
    return scenario.changed(**{"td_s": 10.0, "hop_s": 0.0, **values})
