"""Late binding in the simulator: worked out by hand, and what holds whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.apps.waiting import TimeByValue, Waiting
from penstock.errors import InputError
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology

from .cases import Given, poisson
from .test_plant import latencies_s, one_operator, passed, plant_of

times = st.lists(st.floats(0.001, 0.4), min_size=1, max_size=60).map(np.cumsum)


def pulling(pool: int = 2, time_s: float = 1.0) -> Topology:
    return one_operator(pool, time_s, grouping="pull")


def seen(plant: SimulatedPlant) -> tuple[int, list[int]]:
    """What is held, and what each replica has booked."""
    counted = plant.counters().operators["work"]
    return counted.held, [one.queued for one in counted.replicas.values()]


def test_a_replica_gets_the_next_event_when_it_is_free():
    plant = plant_of(pulling(), 0.0, 0.1, 0.2, 0.3)
    plant.set_replicas("work", (0, 1))
    plant.advance(0.5)
    assert seen(plant) == (2, [1, 1])
    plant.advance(9.0)
    assert latencies_s(plant) == (1.0 + 1.0 + 1.8 + 1.8, 1.8)


def test_a_slow_event_delays_nobody_else():
    """Round robin would put the third event behind the slow one."""
    topology = Topology("one", pool=2)
    slow_first = Waiting(passed, TimeByValue("value", (5000.0, 100.0, 100.0)))
    topology.operator("work", slow_first, inputs=topology.source("in"), execution_time_ms=1.0, grouping="pull")
    facts = Facts(payloads={"in": [{"value": 0}, {"value": 1}, {"value": 2}]})
    plant = plant_of(topology, 0.0, 0.1, 0.2, facts=facts)
    plant.set_replicas("work", (0, 1))
    plant.advance(9.0)
    assert latencies_s(plant) == (5.2, 5.0)


def test_events_are_booked_ahead_up_to_the_credit():
    plant = plant_of(pulling(time_s=0.02), *[0.5] * 9)  # 50 ms ahead are three events of 20 ms
    plant.set_replicas("work", (0, 1))
    plant.advance(0.501)
    assert seen(plant) == (3, [3, 3])
    plant.advance(0.521)
    assert seen(plant) == (1, [3, 3])
    assert plant.counters().operators["work"].held_by == {"in": 1}


def test_a_new_replica_takes_from_what_is_held_once_it_works():
    plant = plant_of(pulling(pool=3), *[0.5] * 6, activation_delay_s=0.05)
    plant.advance(1.0)
    assert seen(plant) == (5, [1, 0, 0])
    plant.set_replicas("work", (0, 1, 2))
    plant.advance(1.04)
    assert seen(plant) == (5, [1, 0, 0])
    plant.advance(1.06)
    assert seen(plant) == (3, [1, 1, 1])
    plant.advance(9.0)
    assert latencies_s(plant) == (round(1.0 + 2 * 1.55 + 2.0 + 2 * 2.55, 9), 2.55)


def test_pushing_leaves_it_where_it_was():
    """The same under shuffle: the two that are added find nothing to do."""
    plant = plant_of(one_operator(3), *[0.5] * 6, activation_delay_s=0.05)
    plant.advance(1.0)
    plant.set_replicas("work", (0, 1, 2))
    plant.advance(9.0)
    assert latencies_s(plant) == (21.0, 6.0)


def test_one_that_is_taken_out_finishes_what_it_has_booked():
    plant = plant_of(pulling(), *[0.0] * 4)
    plant.set_replicas("work", (0, 1))
    plant.advance(0.5)
    plant.set_replicas("work", (0,))
    plant.advance(9.0)
    assert [one.processed for one in plant.counters().operators["work"].replicas.values()] == [3, 1]
    assert latencies_s(plant) == (1.0 + 1.0 + 2.0 + 3.0, 3.0)


def test_q_size_is_of_the_operator_as_a_whole():
    plant = plant_of(pulling(), *[0.1] * 7, q_size=5)
    plant.set_replicas("work", (0, 1))
    plant.advance(0.2)
    assert seen(plant) == (3, [1, 1])
    assert plant.counters().dropped == {"q_size": 2}


def test_what_is_held_too_long_is_dropped_at_no_cost():
    plant = plant_of(pulling(), 0.0, 0.1, 0.2, 1.5, t_out_s=0.9)
    plant.advance(9.0)
    assert plant.counters().dropped == {"t_out": 1}
    assert latencies_s(plant) == (1.0 + 1.9 + 1.5, 1.9)


def test_a_restart_holds_again_what_had_not_finished():
    plant = plant_of(pulling(), 0.0, 0.1, 0.6, actuation="restart", restart_s=0.2)
    plant.advance(0.5)
    plant.set_replicas("work", (0, 1))
    plant.settle_changes()
    assert (plant.backlog, plant.counters().dropped) == (2, {})
    plant.advance(9.0)
    assert latencies_s(plant) == (round(1.7 + 1.6 + 2.1, 9), 2.1)


def test_a_lossy_restart_loses_what_is_held():
    plant = plant_of(pulling(), 0.0, 0.1, 0.2, actuation="restart-lossy", restart_s=0.2)
    plant.advance(0.5)
    plant.set_replicas("work", (0, 1))
    plant.settle_changes()
    assert (plant.backlog, plant.failed, plant.counters().dropped) == (0, 3, {"restart": 3})


def test_regions_with_delays_between_them_are_refused():
    with pytest.raises(InputError, match=r"operator 'work' \(.*\): grouping 'pull' knows no delays between regions"):
        SimulatedPlant(build_model(pulling()), {"in": Given(np.array([0.0]))}, Plant(), regional=True)


@given(times, st.sampled_from((0.004, 0.03, 0.3)), st.integers(1, 4), st.integers(0, 9))
def test_nobody_is_idle_while_something_is_held_and_nobody_has_more_than_the_credit(at_s, time_s, active, seed):
    plant = plant_of(pulling(4, time_s), *at_s, facts=Facts(exponential=True, seed=seed))
    plant.set_replicas("work", tuple(range(active)))
    credit = int(plant.operators["work"]._binding.credit[0])
    for until_s in np.linspace(0.1, at_s[-1] + 0.5, 40):
        plant.advance(until_s)
        held, booked = seen(plant)
        assert max(booked) <= credit
        if held:
            assert booked[:active] == [credit] * active
    plant.advance(at_s[-1] + 1000.0)
    assert (plant.out, plant.backlog) == (len(at_s), 0)


@given(times, st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=25)
def test_events_start_in_the_order_in_which_they_came(at_s, active, seed):
    plant = plant_of(pulling(4, 0.3), *at_s, facts=Facts(exponential=True, seed=seed))
    plant.set_replicas("work", tuple(range(active)))
    starts: dict[int, float] = {}
    for until_s in np.linspace(0.05, at_s[-1] + 60.0, 400):
        plant.advance(until_s)
        queue = plant.operators["work"]._queue
        alive = np.flatnonzero(queue.fate[: queue.size[0]] >= 0)
        assert (np.diff(queue.source[alive]) > 0).all()
        starts |= dict(zip(queue.source[alive].tolist(), queue.start[alive].tolist(), strict=True))
    in_order = [starts[source] for source in sorted(starts)]
    assert in_order == sorted(in_order)


@given(times, st.sampled_from((0.004, 0.03, 0.3)), st.integers(0, 9))
def test_one_replica_is_as_with_shuffle(at_s, time_s, seed):
    outcomes = []
    for grouping in ("pull", "shuffle"):
        topology = one_operator(1, time_s, grouping=grouping)
        plant = plant_of(topology, *at_s, facts=Facts(exponential=True, seed=seed), hop_s=0.002)
        plant.advance(at_s[-1] + 1000.0)
        outcomes.append((plant.out, *latencies_s(plant)))
    assert outcomes[0] == outcomes[1]


@given(st.integers(0, 99), st.sampled_from((0.011, 0.03, 0.3)), st.integers(1, 8), st.floats(0.3, 1.2))
@settings(max_examples=40)
def test_with_equal_times_the_mean_is_no_worse_than_with_shuffle(seed, time_s, active, load):
    at_s = poisson(load * active / time_s, 300, seed)
    means = []
    for grouping in ("pull", "shuffle"):
        plant = plant_of(one_operator(8, time_s, grouping=grouping), *at_s)
        plant.set_replicas("work", tuple(range(active)))
        plant.advance(at_s[-1] + 1000.0)
        means.append(plant.latency_total_s / plant.out)
    assert means[0] <= means[1] * (1 + 1e-9)
