from __future__ import annotations

import re

import numpy as np
import pytest

from penstock.apps import AppOptions, PayloadOptions
from penstock.errors import InputError
from penstock.policy.static import Static, make_static
from penstock.simulator.calibration import Calibration
from penstock.simulator.options import SimulationOptions
from penstock.simulator.run import simulate
from penstock.simulator.scenario import Entering, Scenario, app_scenario, no_sink
from penstock.topology import Topology
from penstock.workload import Trace, constant

from .setups import row_of
from .plant.test_plant import passed

TRACE = Trace("made", 10.0, [10.0, 30.0])


def two_sources() -> Topology:
    topology = Topology("two")
    sources = [topology.source("in"), topology.source("also")]
    topology.operator("work", passed, inputs=sources, execution_time_ms=10.0)
    return topology


def times_of(scenario: Scenario) -> dict[str, list[float]]:
    return {name: one.pull(1e9).tolist() for name, one in scenario.setup().arrivals().items()}


def test_arrivals_are_even_or_poisson():
    scenario = Scenario(topology=row_of(10.0), trace=TRACE, arrivals="evenly")
    with pytest.raises(InputError, match=re.escape("arrivals: no such name 'evenly'; known: even, poisson; did you")):
        scenario.setup()


def test_a_simulation_gets_arrivals_of_its_own():
    setup = Scenario(topology=row_of(10.0), trace=TRACE, arrivals="poisson").setup()
    one, two = (setup.arrivals()["in"].pull(1e9) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert len(one) > 300


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_several_sources_share_the_trace(arrivals):
    times = times_of(Scenario(topology=two_sources(), trace=TRACE, arrivals=arrivals))
    assert [len(one) for one in times.values()] == pytest.approx([200, 200], rel=0.15)
    if arrivals == "poisson":
        assert times["in"][:5] != times["also"][:5]


def test_the_seed_is_in_the_arrivals():
    one, two = (
        times_of(Scenario(topology=row_of(10.0), trace=TRACE, options=SimulationOptions(seed=seed), arrivals="poisson"))
        for seed in (1, 2)
    )
    assert one["in"][:5] != two["in"][:5]


def test_the_workload_is_the_trace_the_shares_and_the_times():
    workload = Scenario(topology=row_of(10.0, 50.0), trace=TRACE).setup().workload
    assert (workload.peak_rate, workload.mean_rate) == (30.0, 20.0)
    assert workload.shares == {"o0": 1.0, "o1": 1.0}
    assert workload.execution_times_s == {"o0": 0.01, "o1": 0.05}
    assert make_static("peak", workload).replicas == {"o0": 1, "o1": 2}


def test_several_sources_have_one_share_of_the_whole():
    assert Scenario(topology=two_sources(), trace=TRACE).setup().workload.shares == {"work": 1.0}


def test_entering_counts_what_the_trace_brings():
    entering = Entering(TRACE)
    assert (entering(0.0, 10.0), entering(5.0, 15.0), entering(15.0, 99.0)) == (100.0, 200.0, 150.0)


def test_what_was_measured_goes_before_what_was_declared():
    measured = Calibration(hop_s=0.5, times_s={"o0": 0.1}, overhead_s={"o0": 0.02})
    setup = Scenario(topology=row_of(10.0), trace=constant(1.0, 5.0), calibration=measured).setup()
    assert setup.options.hop_s == 0.5
    assert simulate(setup, Static(1)).latency_ms["mean"] == pytest.approx(620.0)


def test_an_application_runs_on_its_own_events():
    payloads = PayloadOptions(count=100)
    scenario = app_scenario("complex", constant(5.0, 20.0), payloads=payloads, replicas={"store": 2})
    result = simulate(scenario.setup(), Static(2))
    assert (result.events, result.backlog, result.processed_ratio) == (100, 0, 1.0)


def test_an_application_is_tuned_as_on_spark():
    tuning = AppOptions(sink=no_sink, service_ms={"features": 40.0}, pool=7)
    setup = app_scenario("dns", constant(5.0, 20.0), tuning=tuning).setup()
    assert setup.workload.execution_times_s["features"] == 0.04
    assert setup.model.operators["features"].operator.pool == 7


def test_an_unknown_application():
    with pytest.raises(InputError, match="app 'dsn': no such application; known: twitter, "):
        app_scenario("dsn", TRACE)
