"""Replicas in regions: the fast simulator beside the obvious one, and what the delay does to latency."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.simulator.plant.model import build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.topology import Topology

from .cases import INTERVAL_S, Given, cases, chain
from .test_against_reference import TAIL_S, same, settled

DELAYS = (
    np.zeros((3, 3)),
    np.array([[0.0, 0.0213, 0.1171], [0.0213, 0.0, 0.1384], [0.1171, 0.1384, 0.0]]),
    np.array([[0.0, 0.0213, 1.3171], [0.0177, 0.0, 0.3], [0.9, 0.1384, 0.0]]),  # another way back
)


def placed(topology, random):
    """A region for every replica and source."""
    sites = [(name, n) for name, one in topology.operators.items() for n in range(one.pool)]
    return {site: int(random.integers(3)) for site in [*sites, *((name, 0) for name in topology.sources)]}


def plain(case):
    assume(all(one.grouping not in ("least_work", "pull") for one in case.topology.operators.values()))
    return case.plant(regional=True), case.reference()


@given(cases(q_size=None, actuation="pool"), st.sampled_from(DELAYS), st.integers(0, 1000))
@settings(settled, max_examples=60)
def test_same_at_the_end_of_every_interval_wherever_replicas_sit(case, delay_s, seed):
    plant, reference = plain(case)
    random = np.random.default_rng(seed)
    for number, change in enumerate((None, *case.changes)):
        regions = placed(case.topology, random)
        for one in (plant, reference):
            if change is not None:
                one.advance(number * INTERVAL_S)
                change.make(one)
            one.place(regions, delay_s)
        same(plant, reference)
    for one in (plant, reference):
        one.advance(case.last_s + TAIL_S)
    same(plant, reference)
    assert plant.in_flight == 0 or plant.backlog > 0


@given(cases(actuation="pool"), st.sampled_from(DELAYS), st.integers(0, 1000))
@settings(settled, max_examples=20)
def test_same_in_the_end_with_bounded_queues(case, delay_s, seed):
    plant, reference = plain(case)
    regions = placed(case.topology, np.random.default_rng(seed))
    for one in (plant, reference):
        one.place(regions, delay_s)
        one.advance(case.last_s + TAIL_S)
    same(plant, reference)


@given(cases(q_size=None), st.sampled_from(DELAYS), st.integers(0, 1000))
@settings(settled, max_examples=20)
def test_whatever_is_restarted_nothing_gets_lost_on_the_way(case, delay_s, seed):
    plant, _ = plain(case)
    plant.place(placed(case.topology, np.random.default_rng(seed)), delay_s)
    for number, change in enumerate(case.changes, start=1):
        plant.advance(number * INTERVAL_S)
        change.make(plant)
        assert plant.events == plant.out + plant.failed + plant.in_flight
    plant.advance(case.last_s + 10 * TAIL_S)
    assert plant.events == plant.out + plant.failed
    assert plant.backlog == 0
    assert case.options.actuation == "restart-lossy" or case.options.t_out_s or plant.failed == 0


def chain_of_two(*times: float, target_s: float = 2.0, **options) -> SimulatedPlant:
    topology = Topology("two", pool=2)
    first = topology.operator("a", len, inputs=topology.source("in"), execution_time_ms=10.0)
    topology.operator("b", len, inputs=first, execution_time_ms=10.0)
    chosen = Plant(**{"hop_s": 0.001} | options)
    arrivals = {"in": Given(np.array(times))}
    return SimulatedPlant(build_model(topology), arrivals, chosen, target_s=target_s, regional=True)


def test_an_event_takes_the_delay_at_every_change_of_region():
    plant = chain_of_two(1.0)
    plant.place({("in", 0): 0, ("a", 0): 1, ("b", 0): 0}, np.array([[0.0, 0.2], [0.2, 0.0]]))
    plant.advance(1.1)
    assert (plant.backlog, plant.operators["a"].backlog) == (1, 1)  # on its way
    assert plant.counters().operators["a"].total.received == {"in": 1}
    plant.advance(3.0)
    assert plant.latency_total_s == pytest.approx(0.4 + 0.02 + 0.002)


def test_what_comes_from_near_is_not_held_up_by_what_is_on_its_way_from_far():
    """Both replicas of `a` are sent to at once; the far one's event reaches `b` later than the next near one."""
    plant = chain_of_two(1.0, 1.001, 1.05)
    plant.set_replicas("a", (0, 1))
    plant.place({("a", 1): 1}, np.array([[0.0, 0.2], [0.2, 0.0]]))
    plant.advance(1.2)
    assert plant.out == 2
    plant.advance(3.0)
    assert plant.latency_total_s == pytest.approx(3 * 0.022 + 0.4)


def test_events_that_arrive_together_and_too_old_find_each_other_there():
    plant = chain_of_two(1.0, 1.0, t_out_s=0.1, q_size=1)
    plant.place({("in", 0): 0, ("a", 0): 1}, np.array([[0.0, 0.2], [0.2, 0.0]]))
    plant.advance(3.0)
    assert plant.counters().operators["a"].total.dropped == {"q_size": 1, "t_out": 1}


def test_a_replica_that_is_not_named_stays_where_it_was():
    plant = chain_of_two(1.0, 2.0)
    delay_s = np.array([[0.0, 0.2], [0.2, 0.0]])
    plant.place({("a", 0): 1}, delay_s)
    plant.place({("a", 1): 0}, delay_s)
    plant.advance(5.0)
    assert plant.latency_total_s == pytest.approx(2 * (0.4 + 0.022))


def test_events_on_their_way_are_late_if_they_are_old():
    plant = chain_of_two(1.0, target_s=0.1)
    plant.place({("a", 0): 1}, np.array([[0.0, 9.0], [9.0, 0.0]]))
    plant.advance(2.0)
    assert plant.unfinished_late() == 1


def test_least_work_knows_no_delays():
    model = build_model(chain(("least_work",)))
    with pytest.raises(InputError, match="grouping 'least_work' knows no delays between regions"):
        SimulatedPlant(model, {"s": Given(np.array([1.0]))}, Plant(), regional=True)


def test_online_shuffle_gets_every_event_through():
    topology = Topology("online", pool=3)
    topology.operator(
        "a", len, inputs=topology.source("in"), execution_time_ms=10.0, grouping="online_shuffle:window=16"
    )
    plant = SimulatedPlant(
        build_model(topology),
        {"in": Given(np.linspace(0.1, 9.0, 800))},
        Plant(q_size=3),
        regional=True,
    )
    plant.set_replicas("a", (0, 1, 2))
    plant.place({("a", 1): 1, ("a", 2): 1}, np.array([[0.0, 0.05], [0.05, 0.0]]))
    plant.advance(20.0)
    assert plant.out + plant.failed == 800
    assert plant.out > 700
