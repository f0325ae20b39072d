"""Policies that put a price on state, in the simulator."""

from __future__ import annotations

import pytest

from penstock.simulator.arena import Contest, compete
from penstock.simulator.options import SimulationOptions
from penstock.simulator.scenario import Scenario
from penstock.topology import Topology
from penstock.workload import Trace


def counted(event, state): ...


def setup_of(key_bytes: float):
    """One operator under a rate that goes up and down; its 1024 keys take so much each."""
    topology = Topology("count", pool=8)
    topology.operator("count", counted, inputs=topology.source("in"), key="word", execution_time_ms=20.0)
    trace = Trace("waves", 20.0, [40.0, 160.0] * 12)
    options = SimulationOptions(td_s=10.0, state_bytes={"count": key_bytes})
    return Scenario(topology=topology, trace=trace, options=options).setup()


@pytest.mark.parametrize("policy", ["cba:4,predict=sources", "optimal:4,predict=sources"])
def test_replicas_of_much_state_change_less_often(policy):
    """With a forecaster that does not know how sure it is: otherwise `cba` may keep replicas whatever state costs."""
    light, heavy = 60.0, 100e3  # 0.06 MB and 102 MB in all
    changes = {
        (key_bytes, move): compete(setup_of(key_bytes), [f"{policy},move={move}"], Contest(forecaster="drift"))[
            0
        ].reconfigurations
        for key_bytes in (light, heavy)
        for move in (0, 2000)
    }
    assert changes[heavy, 2000] < changes[heavy, 0]
    assert changes[light, 2000] == changes[light, 0] > 5


def test_the_oracle_moves_state_at_no_cost():
    """Its replica-seconds are the yardstick, and those of one that waits for state would be no bound."""
    policy, oracle = compete(setup_of(100e3), ["psps", "oracle"])
    assert policy.state["count"]["wait_ms"]["mean"] > 1000
    assert oracle.oracle_ratio != 1.0  # it pays for state here, unlike the yardstick
    assert oracle.state["count"]["groups_moved"] > 0


def test_a_topology_without_state_has_none_in_its_result():
    topology = Topology("plain")
    topology.operator("a", len, inputs=topology.source("in"), execution_time_ms=1.0)
    (result,) = compete(Scenario(topology=topology, trace=Trace("t", 10.0, [5.0])).setup(), ["static:1"])
    assert result.state is None
