"""Workers that take a minute to join, under a load that rises every five minutes."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.infra.simulated import Region
from penstock.infra.worker import WorkerSize
from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import Trace


@pytest.fixture
def scenario() -> Scenario:
    topology = Topology("two")
    first = topology.operator("first", print, inputs=topology.source("in"), execution_time_ms=40.0, pool=32)
    topology.operator("second", print, inputs=first, execution_time_ms=60.0, pool=32, selectivity=0.0)
    trace = Trace("rises", 10.0, np.array(([60.0] * 27 + [150.0] * 3) * 4))
    regions = (Region(name="here", sizes=(WorkerSize(name="four", capacity=4),), start_s=60.0),)
    return Scenario(topology, trace).changed(td_s=2.0, levels="both", regions=regions)


def test_slots_follow_from_the_promise_instead_of_a_constant(scenario: Scenario) -> None:
    """The first two bursts cannot be foreseen; what is there is then shared by need."""
    ours, lax, psps = (simulate(scenario, policy) for policy in ("penstock", "penstock:late=1", "psps"))
    assert psps.late_ratio > 0.15
    assert ours.late_ratio < 0.6 * psps.late_ratio
    workers_s = [one.worker_seconds or 0.0 for one in (lax, psps, ours)]
    assert sorted(workers_s) == workers_s
    assert workers_s[2] < 1.1 * workers_s[1]
