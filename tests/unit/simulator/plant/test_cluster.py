from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.region_manager import RegionRules
from penstock.errors import InputError
from penstock.infra.simulated import Region
from penstock.infra.worker import WorkerSize
from penstock.simulator import Cluster, Scenario, simulate
from penstock.topology import Topology
from penstock.workload import ramp


def passed(event):
    return event


@pytest.fixture(scope="module")
def scenario():
    """A chain of two operators of 10 ms under a ramp from 10 to 400 events/s: 4 replicas each at the peak."""
    return chain_under(400)


def chain_under(high):
    topology = Topology("chain", pool=8)
    stream = topology.source("in")
    for name in ("a", "b"):
        stream = topology.operator(name, passed, inputs=stream, execution_time_ms=10.0)
    trace = ramp(low=10, high=high, duration_s=1800, step_s=10.0)
    return Scenario(topology, trace).changed(td_s=30.0)


def played(scenario, levels, policy="e2df", **more):
    cluster = Cluster(**{"workers": 12, "levels": levels, "region": RegionRules(spare=2)} | more)
    return simulate(scenario.changed(cluster=cluster), policy)


def test_static_has_what_the_peak_needs_all_the_time(scenario):
    result = played(scenario, "static")
    assert set(result.history.replicas) == {(4, 4)}
    assert set(result.history.workers) == {12}
    assert (result.workers_saved, result.reconfigurations) == (pytest.approx(0.0), 0)


def test_application_elasticity_saves_replicas_but_no_workers(scenario):
    result = played(scenario, "application")
    assert result.saved_resources > 0.05  # with S_out = 0.7 the peak takes more than static has
    assert result.workers_saved == pytest.approx(0.0)


def test_both_levels_save_workers_and_leave_the_application_alone(scenario):
    one, two = played(scenario, "application"), played(scenario, "both")
    assert two.workers_saved > 0.15
    assert two.latency_ms["mean"] == pytest.approx(one.latency_ms["mean"], rel=0.05)
    assert two.worker_seconds == pytest.approx(sum(two.history.workers) * 30.0, rel=0.1)


def test_the_history_has_workers_by_state_and_what_managers_said(scenario):
    result = played(scenario, "both")
    levels = result.history.levels
    assert levels.workers == [sum(row) for row in zip(*levels.by_state.values(), strict=True)]
    assert max(levels.by_state["starting"]) >= 1
    assert levels.offered == levels.by_state["available"]  # a slot each
    assert all(used <= workers for used, workers in zip(levels.used, levels.workers, strict=True))
    assert levels.counts["region here", "proposed"] == (
        levels.counts["infrastructure", "granted"] + levels.counts.get(("infrastructure", "refused"), 0)
    )
    assert {row.who for row in levels.said} == {"region here", "infrastructure", "application app"}


def test_a_recorder_gets_the_workers_of_every_interval(scenario):
    kept = []

    class Recorder:
        record = kept.append

    cluster = Cluster(workers=12, levels="both", region=RegionRules(spare=2))
    result = simulate(scenario.changed(cluster=cluster), "e2df", recorder=Recorder())
    assert [len(one.levels.workers) for one in kept] == result.history.workers
    said = [row.sequence for one in kept for row in one.levels.managers]
    assert said == list(range(len(said)))
    assert sum(len(one.levels.pauses) for one in kept) == 0


def test_never_more_replicas_and_sources_than_slots(scenario):
    result = played(scenario, "both", workers=7)
    assert max(result.history.workers) == 7
    assert max(sum(row) for row in result.history.replicas) <= 6  # and the source


def test_any_policy_runs_on_workers(scenario):
    result = played(scenario, "both", policy="psps")
    assert result.workers_saved > 0.2


def test_workers_that_start_slowly_make_events_late(scenario):
    size = WorkerSize(name="one", capacity=1)
    slow = Region(name="slow", sizes=(size,), start_s=240.0)
    quick = Region(name="quick", sizes=(size,), start_s=5.0)
    patient = InfrastructureRules(start_within_s=300.0)
    late = [
        played(scenario, "both", regions=(region,), infrastructure=patient, region=RegionRules(spare=1)).late_ratio
        for region in (quick, slow)
    ]
    assert late[1] > late[0]


def test_the_same_seed_gives_the_same_result(scenario):
    first, second = (replace(played(scenario, "both"), wall_s=0, oracle_ratio=0, hindsight_ratio=0) for _ in range(2))
    assert first == second


def test_what_makes_no_sense(scenario):
    with pytest.raises(InputError, match="levels: no such name 'one'; known: static, application, both"):
        Cluster(workers=3, levels="one")
    with pytest.raises(InputError, match="workers must be whole and at least 1; got 0"):
        Cluster(levels="both", workers=0)
    with pytest.raises(InputError, match="cluster: 2 workers of 1 cannot host the 3 replicas and sources"):
        played(scenario, "both", workers=2)


def region(name, capacity=1, price=1.0, **more):
    return Region(name=name, sizes=(WorkerSize(name=name, capacity=capacity, price=price),), **{"start_s": 10.0} | more)


def test_what_each_region_came_to(scenario):
    result = played(scenario, "both", regions=(region("near", price=2.0), region("far", price=0.5)))
    assert result.regions.keys() == {"near", "far"}
    seconds = {name: one["worker_seconds"] for name, one in result.regions.items()}
    assert sum(seconds.values()) == pytest.approx(result.worker_seconds)
    assert result.regions["near"]["price"] == pytest.approx(2.0 * seconds["near"])
    assert result.regions["far"]["price"] == pytest.approx(0.5 * seconds["far"])
    assert result.as_json()["regions"]["far"] == pytest.approx(result.regions["far"], abs=1e-5)


def test_a_far_region_is_used_when_it_is_cheap_and_latency_shows_the_delay():
    """Both regions want three free slots, and there may be three workers more: the cheaper one gets them."""
    few = {"workers": 6, "region": RegionRules(spare=3), "application": ApplicationRules(first_workers=1)}
    near, scenario = region("near"), chain_under(150)
    cheap, dear, here = (
        played(scenario, "both", regions=(near, region("far", price=price, delay_s=delay_s)), **few)
        for price, delay_s in ((0.2, 0.05), (5.0, 0.05), (0.2, 0.0))
    )
    assert cheap.regions["far"]["worker_seconds"] > 1000.0
    assert dear.regions["far"]["worker_seconds"] == 0.0
    assert cheap.worker_seconds == pytest.approx(dear.worker_seconds, rel=0.2)
    longer_ms = cheap.latency_ms["mean"] - here.latency_ms["mean"]
    assert 20.0 < longer_ms < 100.0  # 50 ms for each of three hops that is between the regions; at most two are
    assert dear.latency_ms["mean"] == pytest.approx(here.latency_ms["mean"], rel=0.01)


def test_with_all_replicas_in_one_region_the_delay_does_not_matter(scenario):
    regions = (region("near"), region("far", delay_s=5.0))
    one, two = (played(scenario, "application", regions=some) for some in (regions, regions[:1]))
    assert one.regions["far"]["worker_seconds"] == 0.0
    assert one.latency_ms == pytest.approx(two.latency_ms)


def test_a_worker_of_a_slow_region_is_waited_for(scenario):
    result = played(scenario, "both", regions=(region("slow", start_s=150.0),))
    assert max(result.history.workers) > 5


@pytest.mark.parametrize("regions", [(), (region("a"), region("a", price=2.0))])
def test_regions_each_once(regions):
    with pytest.raises(InputError, match="cluster: must have regions, each once; got"):
        Cluster(levels="both", workers=3, regions=regions)
