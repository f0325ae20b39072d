"""What the plant does, worked out by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from penstock.apps.waiting import TimeByValue, Waiting
from penstock.errors import InputError
from penstock.metrics.utilisation import Utilisation
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology

from .cases import Given


def passed(event):
    return event


def one_operator(pool=2, time_s=1.0, **more) -> Topology:
    topology = Topology("one", pool=pool)
    topology.operator("work", passed, inputs=topology.source("in"), execution_time_ms=1000 * time_s, **more)
    return topology


def plant_of(topology: Topology, *times: float, facts: Facts | None = None, target_s=2.0, **options) -> SimulatedPlant:
    """A plant that gets events at these times."""
    arrivals = {name: Given(np.array(times)) for name in topology.sources}
    return SimulatedPlant(build_model(topology, facts), arrivals, Plant(**{"hop_s": 0.0, **options}), target_s=target_s)


def latencies_s(plant: SimulatedPlant) -> tuple[float, float]:
    """Total and greatest."""
    return round(plant.latency_total_s, 9), round(plant.latency().max_ms / 1000, 9)


def test_a_replica_works_in_order_of_arrival():
    payloads = [{"value": 0}, {"value": 1}, {"value": 2}]
    topology = Topology("one")
    slow_first = Waiting(passed, TimeByValue("value", (1000.0, 100.0, 200.0)))
    topology.operator("work", slow_first, inputs=topology.source("in"), execution_time_ms=1.0)
    plant = plant_of(topology, 0.0, 0.1, 0.2, facts=Facts(payloads={"in": payloads}))
    plant.advance(1.05)
    assert (plant.out, plant.backlog) == (1, 2)
    plant.advance(9.0)
    assert latencies_s(plant) == (1.0 + 1.0 + 1.1, 1.1)


def test_a_hop_comes_before_every_operator():
    topology = one_operator(time_s=0.5)
    topology.operator("after", passed, inputs="work", execution_time_ms=200.0)
    plant = plant_of(topology, 1.0, hop_s=0.1)
    plant.advance(1.89)
    assert (plant.out, plant.in_flight, plant.backlog) == (0, 1, 1)
    plant.advance(1.91)
    assert latencies_s(plant) == (0.9, 0.9)


def test_an_event_that_is_too_old_when_taken_costs_no_time():
    plant = plant_of(one_operator(), 0.0, 0.1, 0.2, 1.5, t_out_s=0.9)
    plant.advance(9.0)
    assert plant.counters().dropped == {"t_out": 1}  # the third; the second starts at an age of 0.9
    assert (plant.out, plant.failed) == (3, 1)
    assert latencies_s(plant) == (1.0 + 1.9 + 1.5, 1.9)


def test_q_size_counts_the_event_in_hand():
    plant = plant_of(one_operator(), 0.0, 0.1, 0.2, 1.05, q_size=2)
    plant.advance(9.0)
    assert plant.counters().dropped == {"q_size": 1}
    assert plant.out == 3


def test_each_active_replica_has_its_part_of_q_size():
    plant = plant_of(one_operator(pool=4), *np.linspace(0.0, 0.5, 10), q_size=3)
    plant.set_replicas("work", (1, 3))
    plant.advance(0.6)
    assert {number: one.queued for number, one in plant.counters().operators["work"].replicas.items()} == {
        0: 0,
        1: 2,
        2: 0,
        3: 2,
    }
    assert plant.counters().dropped == {"q_size": 6}


def test_a_new_replica_works_after_the_activation_delay():
    plant = plant_of(one_operator(), 1.5, 1.5, activation_delay_s=2.0)
    plant.advance(1.0)
    plant.set_replicas("work", (0, 1))
    plant.advance(9.0)
    assert latencies_s(plant) == (1.0 + 2.5, 2.5)


def test_the_first_replicas_are_ready_at_once():
    plant = plant_of(one_operator(), 0.5, 0.5, activation_delay_s=2.0)
    plant.set_replicas("work", (0, 1))
    plant.advance(9.0)
    assert latencies_s(plant) == (2.0, 1.0)


def test_a_replica_that_is_taken_out_finishes_its_queue():
    plant = plant_of(one_operator(), 0.0, 0.0, 0.0, 0.0, 0.6, 0.6)
    plant.set_replicas("work", (0, 1))
    plant.advance(0.5)
    plant.set_replicas("work", (0,))
    plant.advance(9.0)
    processed = [one.processed for one in plant.counters().operators["work"].replicas.values()]
    assert processed == [4, 2]
    assert latencies_s(plant) == (2 * 1.0 + 2 * 2.0 + 2.4 + 3.4, 3.4)


def test_restart_begins_anew_what_was_in_hand():
    plant = plant_of(one_operator(), 0.0, 0.1, 0.6, actuation="restart", restart_s=0.2)
    plant.advance(0.5)
    plant.set_replicas("work", (0, 1))
    assert plant.settle_changes()
    assert (plant.backlog, plant.counters().dropped) == (2, {})
    plant.advance(9.0)
    assert latencies_s(plant) == (round(1.7 + 1.6 + 2.1, 9), 2.1)


def test_lossy_restart_loses_what_had_not_finished():
    plant = plant_of(one_operator(), 0.0, 0.1, 0.6, actuation="restart-lossy", restart_s=0.2)
    plant.advance(0.5)
    plant.set_replicas("work", (0, 1))
    plant.settle_changes()
    assert (plant.backlog, plant.failed, plant.counters().dropped) == (0, 2, {"restart": 2})
    plant.advance(9.0)
    assert latencies_s(plant) == (1.1, 1.1)


def test_nothing_is_restarted_without_a_change():
    plant = plant_of(one_operator(), 0.0, actuation="restart-lossy")
    plant.set_replicas("work", (0, 1))
    plant.begin()
    plant.advance(0.5)
    assert not plant.settle_changes()
    assert plant.backlog == 1


def test_counters_never_go_back():
    """A restart once took `received` from the old replicas: the monitor then distrusted the whole interval."""
    plant = plant_of(one_operator(), *np.linspace(0, 0.5, 20), actuation="restart", restart_s=0.2)
    plant.advance(0.5)
    before = plant.counters().operators["work"].replicas
    plant.set_replicas("work", (1,))
    plant.settle_changes()
    for number, after in plant.counters().operators["work"].replicas.items():
        assert after.received["in"] >= before[number].received["in"]
        assert after.processed >= before[number].processed


def diamond() -> Topology:
    topology = one_operator(time_s=0.1, pool=1)
    for name, time_ms in (("fast", 100.0), ("slow", 700.0)):
        topology.operator(name, passed, inputs="work", execution_time_ms=time_ms)
    topology.operator("join", passed, inputs=["fast", "slow"], execution_time_ms=100.0)
    return topology


def test_a_source_event_is_out_when_its_last_part_has_left():
    plant = plant_of(diamond(), 0.0)
    plant.advance(0.5)
    assert (plant.events, plant.out, plant.in_flight, plant.backlog) == (1, 0, 1, 1)
    plant.advance(2.0)
    assert latencies_s(plant) == (0.9, 0.9)
    assert plant.counters().operators["join"].total.received == {"fast": 1, "slow": 1}


def test_a_source_event_of_which_a_part_is_dropped_has_failed():
    plant = plant_of(diamond(), 0.0, t_out_s=0.5)
    plant.advance(0.5)
    assert (plant.out, plant.failed, plant.in_flight) == (0, 0, 1)
    plant.advance(2.0)
    assert (plant.out, plant.failed, plant.in_flight) == (0, 1, 0)
    assert plant.counters().dropped == {"t_out": 1}


def test_late_is_what_took_longer_than_the_target():
    plant = plant_of(one_operator(), 0.0, 0.1, 0.2, 5.0, target_s=1.95)
    plant.advance(3.0)
    assert (plant.late, plant.unfinished_late()) == (1, 0)
    plant.advance(5.5)
    assert (plant.late, plant.unfinished_late()) == (1, 0)
    slow = plant_of(one_operator(time_s=8.0), 0.0, 2.5, target_s=1.0)
    slow.advance(3.0)
    assert (slow.late, slow.unfinished_late()) == (0, 1)


def test_load_balancing_goes_by_the_published_utilisation():
    plant = plant_of(one_operator(pool=3, grouping="load_balancing"), *[0.5] * 6)
    plant.set_replicas("work", (0, 1, 2))
    plant.publish_utilisation({"work": Utilisation({0: 0.5, 1: 0.2, 2: 0.4}, 0.1)})
    plant.advance(0.6)
    assert [one.queued for one in plant.counters().operators["work"].replicas.values()] == [1, 3, 2]


def test_counters_say_who_sent_what_where():
    plant = plant_of(diamond(), 0.0, 0.3)
    plant.advance(5.0)
    counted = plant.counters()
    assert (counted.time_s, counted.sources) == (5.0, {"in": 2})
    assert counted.operators["work"].total.emitted == {"out": 2}
    assert counted.operators["work"].total.sent == {"fast": 2, "slow": 2}
    assert counted.operators["slow"].total.busy_s == pytest.approx(1.4)
    assert counted.latency == plant.latency()


@pytest.mark.parametrize("replicas", [(), (2,), (-1,), (0, 0)])
def test_replicas_must_be_in_the_pool_and_each_once(replicas):
    plant = plant_of(one_operator(), 0.0)
    message = f"replicas must be among 0..1, each once; got {list(replicas)}"
    with pytest.raises(InputError, match=r"operator 'work' \(.*\): " + re.escape(message)):
        plant.set_replicas("work", replicas)


def test_every_source_must_have_arrivals():
    with pytest.raises(InputError, match="simulation: source 'in' has no arrivals"):
        SimulatedPlant(build_model(one_operator()), {}, Plant())
