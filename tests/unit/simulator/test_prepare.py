from __future__ import annotations

import numpy as np
import pytest

from penstock.apps import APPS, PayloadOptions
from penstock.errors import InputError
from penstock.policy.static import Static, make_static
from penstock.simulator import Scenario, simulate
from penstock.simulator.calibration import Calibration
from penstock.simulator.prepare import Entering, prepare
from penstock.topology import Topology
from penstock.workload import Trace, constant

from .plant.test_plant import passed
from .setups import row_of

TRACE = Trace("made", 10.0, [10.0, 30.0])


def two_sources() -> Topology:
    topology = Topology("two")
    sources = [topology.source("in"), topology.source("also")]
    topology.operator("work", passed, inputs=sources, execution_time_ms=10.0)
    return topology


def times_of(scenario: Scenario) -> dict[str, list[float]]:
    return {name: one.pull(1e9).tolist() for name, one in prepare(scenario).arrivals().items()}


def test_a_simulation_gets_arrivals_of_its_own():
    prepared = prepare(Scenario(row_of(10.0), TRACE, arrivals="poisson"))
    one, two = (prepared.arrivals()["in"].pull(1e9) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert len(one) > 300


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_several_sources_share_the_trace(arrivals):
    times = times_of(Scenario(two_sources(), TRACE, arrivals=arrivals))
    assert [len(one) for one in times.values()] == pytest.approx([200, 200], rel=0.15)
    if arrivals == "poisson":
        assert times["in"][:5] != times["also"][:5]


def test_the_seed_is_in_the_arrivals():
    one, two = (times_of(Scenario(row_of(10.0), TRACE, seed=seed, arrivals="poisson")) for seed in (1, 2))
    assert one["in"][:5] != two["in"][:5]


def test_the_workload_is_the_trace_the_shares_and_the_times():
    workload = prepare(Scenario(row_of(10.0, 50.0), TRACE)).workload
    assert (workload.peak_rate, workload.mean_rate) == (30.0, 20.0)
    assert workload.shares == {"o0": 1.0, "o1": 1.0}
    assert workload.execution_times_s == {"o0": 0.01, "o1": 0.05}
    assert make_static("peak", workload).replicas == {"o0": 1, "o1": 2}


def test_several_sources_have_one_share_of_the_whole():
    assert prepare(Scenario(two_sources(), TRACE)).workload.shares == {"work": 1.0}


def test_entering_counts_what_the_trace_brings():
    entering = Entering(TRACE)
    assert (entering(0.0, 10.0), entering(5.0, 15.0), entering(15.0, 99.0)) == (100.0, 200.0, 150.0)


def test_what_was_measured_goes_before_what_was_declared():
    measured = Calibration(hop_s=0.5, times_s={"o0": 0.1}, overhead_s={"o0": 0.02})
    scenario = Scenario(row_of(10.0), constant(1.0, 5.0), calibration=measured)
    assert prepare(scenario).scenario.plant.hop_s == 0.5
    assert simulate(scenario, Static(1)).latency_ms["mean"] == pytest.approx(620.0)


def test_an_application_runs_on_the_events_that_are_given():
    events = tuple(APPS["complex"].payloads(PayloadOptions(count=100)))
    result = simulate(Scenario("complex", constant(5.0, 20.0), events=events, replicas={"store": 2}), Static(2))
    assert (result.events, result.backlog, result.processed_ratio) == (100, 0, 1.0)


@pytest.mark.parametrize("time_ms", [40.0, {"features": 40.0}])
def test_an_application_is_tuned_as_on_spark(time_ms):
    prepared = prepare(Scenario("dns", constant(5.0, 20.0), service_ms=time_ms, pool=7))
    assert prepared.workload.execution_times_s["features"] == 0.04
    assert prepared.model.operators["features"].operator.pool == 7
    assert (prepared.workload.execution_times_s["store"] == 0.04) == (time_ms == 40.0)


def test_a_topology_of_the_users_is_tuned_and_stays_as_it_is():
    topology = row_of(10.0, 20.0)
    tuned = prepare(Scenario(topology, TRACE, pool={"o1": 3}, service_ms=5.0, grouping="load_balancing"))
    assert [one.pool for one in tuned.topology.operators.values()] == [8, 3]
    assert tuned.workload.execution_times_s == {"o0": 0.005, "o1": 0.005}
    assert tuned.topology["o0"].grouping == "load_balancing"
    assert [topology["o1"].pool, topology["o1"].execution_time_ms, topology["o0"].grouping] == [8, 20.0, "shuffle"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"slots": 1}, "slots must be at least 1 for each of 2 operators; got 1"),
        ({"forecaster": "svr"}, "forecaster 'svr': must be trained before a loop can use it"),
        ({"td_s": 0.1}, r"interval: td must be at least 0.2 s; got 0\.1 s"),
        ({"state_bytes": {"o0": 5.0}}, r"state_bytes: must name operators that keep state \(none\); got 'o0'"),
        ({"replicas": {"o7": 1}}, "replicas: no operator 'o7'; known: o0, o1"),
        ({"replicas": {"o0": 0}}, "replicas of 'o0' must be from 1 to its pool of 8; got 0"),
        ({"replicas": {"o0": 9}}, "replicas of 'o0' must be from 1 to its pool of 8; got 9"),
    ],
)
def test_what_does_not_fit_the_topology_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        prepare(Scenario(row_of(10.0, 20.0), TRACE).changed(**values))


def test_workers_are_what_the_peak_the_sources_and_one_more_need():
    scenario = Scenario(row_of(10.0, 100.0), TRACE).changed(levels="both")  # 1 and 3 replicas at the peak
    assert prepare(scenario).scenario.cluster.workers == 4 + 1 + 1
    assert prepare(scenario.changed(workers=9)).scenario.cluster.workers == 9
    assert prepare(Scenario("wordcount").changed(levels="static")).r_over == 14
