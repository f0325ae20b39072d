from __future__ import annotations

import pytest

from penstock.apps import APPS, AppOptions, find_app
from penstock.apps.inputs import paper_input
from penstock.control.declare import workload_of
from penstock.metrics.paper import static_replicas
from penstock.simulator.prepare import no_sink


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("app", APPS)
def test_the_pools_can_serve_the_peak_of_an_applications_own_input(app, seed):
    trace = paper_input(app, seed)
    topology = find_app(app).build(AppOptions(sink=no_sink))
    times_s = {name: one.execution_time_ms / 1000 for name, one in topology.operators.items()}
    workload = workload_of(topology, trace, times_s)
    needed = static_replicas(trace.peak, workload.shares, times_s)
    assert all(count <= topology[name].pool for name, count in needed.items()), needed
    assert sum(needed.values()) > 2 * len(needed) - 2  # and the peak is no trifle


def test_there_is_none_for_a_topology_of_the_users():
    assert paper_input("my_app:topology") is None
