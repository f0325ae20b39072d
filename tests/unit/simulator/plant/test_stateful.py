"""Operators that keep state, by hand: what moves, what waits for it, and for how long."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.apps.waiting import Waiting
from penstock.errors import InputError
from penstock.grouping import KeyGroups, Receivers
from penstock.simulator.plant.model import Facts, build_model
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Plant
from penstock.state.owners import first_owners, reassigned
from penstock.topology import Topology

from .cases import Given
from .stateful_cases import Keeping, whole


def counting(times, *, keys=(0,), size=0.0, pool=2, groups=2, **chosen) -> SimulatedPlant:
    """One operator of 100 ms that counts by key; the payloads are the keys, in turn."""
    topology = Topology("count", pool=pool)
    topology.operator(
        "count",
        Keeping(whole, 100.0),
        inputs=topology.source("in"),
        key=int,
        execution_time_ms=100.0,
        key_groups=groups,
    )
    given_options = {"hop_s": 0.0, "activation_delay_s": 0.0, "move_latency_s": 0.5, "move_bandwidth": 1e6, **chosen}
    chosen_options = Plant(state_bytes={"count": size}, **given_options)
    model = build_model(topology, Facts(payloads={"in": list(keys)}, run_functions=True))
    return SimulatedPlant(model, {"in": Given(np.array(times))}, chosen_options)


def two_groups() -> tuple[int, int]:
    """A key of group 0 and one of group 1, of two groups."""
    grouping = KeyGroups(int)
    grouping.update(Receivers((0, 1), owners=(0, 1)))
    found = grouping.assign(list(range(100)))
    return found.index(0), found.index(1)


def test_a_moved_group_waits_for_the_queue_the_latency_and_the_bytes():
    """Four events of each group wait at replica 0 when group 1 moves: 0.8 s, 0.5 s, and 0.25 s for a key of 250 kB."""
    stays, moves = two_groups()
    plant = counting([*np.linspace(0.99, 0.9999, 8), 1.1], keys=[stays, moves] * 4 + [moves], size=250e3)
    plant.advance(1.0)
    plant.set_replicas("count", (0, 1))
    plant.advance(1.1)
    assert plant.backlog == 8
    ready_s = 0.99 + 0.8 + 0.5 + 0.25
    plant.advance(ready_s + 0.099)
    assert plant.out == 8
    plant.advance(ready_s + 0.101)
    assert plant.out == 9
    counted = plant.counters().operators["count"].replicas
    assert (counted[1].processed, counted[1].groups_moved, counted[1].state_bytes) == (1, 1, 250_000)
    assert (counted[0].groups_moved, counted[0].state_keys) == (0, 1)
    assert counted[1].moving.max_ms == pytest.approx(1000 * (ready_s - 1.0))


def test_other_groups_never_wait():
    stays, moves = two_groups()
    late = np.arange(1.2, 3.2, 0.2)
    plant = counting([0.5, 0.5, *late], keys=[stays, moves] + [stays] * len(late), size=5e6)
    plant.advance(1.0)
    plant.set_replicas("count", (0, 1))
    plant.advance(5.0)
    assert plant.counters().operators["count"].total.moving.max_ms == pytest.approx(5500.0)
    assert plant.latency().max_ms == pytest.approx(200.0)  # of the second event, before the change
    assert plant.out == 12


def test_a_wish_waits_for_the_end_of_the_change_and_the_last_one_counts():
    stays, moves = two_groups()
    plant = counting([0.1, 0.1, 2.0, 4.0], keys=[stays, moves, moves, moves], size=1e6)
    plant.advance(1.0)
    plant.set_replicas("count", (0, 1))  # until 2.5
    plant.advance(1.5)
    plant.set_replicas("count", (1,))
    plant.advance(1.6)
    plant.set_replicas("count", (0,))
    assert plant.active() == {"count": 1}
    plant.advance(10.0)
    counted = plant.counters().operators["count"].replicas
    assert (counted[0].processed, counted[1].processed) == (3, 1)  # group 1 is back from 2.6 + 1.5 on
    assert (counted[0].groups_moved, counted[1].groups_moved) == (1, 1)
    assert counted[0].moving.max_ms == pytest.approx(1600.0)


def test_how_a_simulation_begins_is_no_move():
    plant = counting([1.0], pool=4, groups=8)
    plant.set_replicas("count", (1, 3))
    plant.begin()
    plant.advance(3.0)
    total = plant.counters().operators["count"].total
    assert (total.groups_moved, total.moving.count, plant.out) == (0, 0, 1)


def test_a_restart_moves_state_while_everything_stands_still():
    stays, moves = two_groups()
    plant = counting([0.1, 0.1, 2.0], keys=[stays, moves, moves], size=9e9, actuation="restart", restart_s=3.0)
    plant.advance(1.0)
    plant.set_replicas("count", (0, 1))
    plant.settle_changes()
    plant.advance(4.2)
    counted = plant.counters().operators["count"].replicas[1]
    assert (counted.processed, counted.groups_moved, plant.out) == (1, 1, 3)
    assert counted.moving.mean_ms == pytest.approx(3000.0)


def test_the_same_key_goes_to_the_same_replica_as_on_spark():
    """By the owners that the live grouping would be told, through several changes."""
    words = [f"word{number}" for number in range(200)]
    topology = Topology("words", pool=5)
    topology.operator(
        "count", Keeping(whole, 1.0), inputs=topology.source("in"), key=str, execution_time_ms=1.0, key_groups=32
    )
    model = build_model(topology, Facts(payloads={"in": words}, run_functions=True))
    plant = SimulatedPlant(model, {"in": Given(np.arange(1, 801) * 0.01)}, Plant(move_latency_s=0.0))
    grouping, owners = KeyGroups(str), first_owners(32, (0,))
    expected = np.zeros(5, np.int64)
    for until_s, active in ((2.005, (0, 2, 4)), (4.005, (1, 2)), (6.005, (0, 1, 2, 3, 4)), (9.0, (0,))):
        grouping.update(Receivers((0,), owners=owners))
        expected += np.bincount(grouping.assign(words), minlength=5)
        plant.advance(until_s)
        plant.advance(until_s + 0.004)  # all is done before the change
        owners = reassigned(owners, active)
        plant.set_replicas("count", active)
        counted = plant.counters().operators["count"].replicas
        assert [counted[replica].processed for replica in range(5)] == expected.tolist()


def test_more_state_waits_longer():
    """The same trace with state of 1 MB and of 100 MB, moved by the same changes."""
    waits, latencies = [], []
    for total in (1e6, 100e6):
        plant = counting(
            np.arange(1, 1200) * 0.05, keys=range(100), size=total / 100, pool=8, groups=64, move_bandwidth=10e6
        )
        plant.set_replicas("count", (0, 1, 2))
        plant.begin()
        for until_s, count in ((20.0, 6), (40.0, 3)):
            plant.advance(until_s)
            plant.set_replicas("count", tuple(range(count)))
        plant.advance(120.0)
        counted = plant.counters().operators["count"].total
        assert (counted.state_bytes, plant.out) == (total, 1199)
        waits.append(counted.moving.mean_ms)
        latencies.append(plant.latency().percentile_ms(0.99))
    assert waits[1] > 3 * waits[0]
    assert latencies[1] > latencies[0]


def test_keys_whose_events_were_all_dropped_have_no_state():
    plant = counting([1.0, 1.0, 1.0, 5.0], keys=[0, 1, 2, 0], t_out_s=0.15)
    plant.advance(9.0)
    assert plant.counters().operators["count"].total.state_keys == 2
    assert plant.failed == 1


def test_the_length_of_steps_does_not_matter():
    totals = []
    for steps in (1, 77):
        plant = counting(np.arange(1, 400) * 0.03, keys=range(50), size=20e3, pool=4, groups=16)
        for start_s, active in ((0.0, (0, 1, 2)), (4.0, (2,)), (5.0, (0, 1, 2, 3))):
            plant.set_replicas("count", active)
            for until_s in np.linspace(start_s, start_s + 4.0 if start_s < 4 else start_s + 1.0, steps + 1)[1:]:
                plant.advance(until_s)
        plant.advance(90.0)
        totals.append((plant.out, round(plant.latency_total_s, 9), plant.counters().operators["count"].total))
    assert totals[0] == totals[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"state_bytes": {"count": -1}}, "state_bytes of 'count' must be at least 0; got -1"),
        ({"move_bandwidth": 0}, "move_bandwidth must be above 0; got 0"),
        ({"move_latency_s": float("nan")}, "move_latency_s must be at least 0; got nan"),
    ],
)
def test_a_mistake_in_options(wrong, message):
    with pytest.raises(InputError, match=message):
        Plant(**wrong)


def test_bytes_are_of_operators_that_keep_state():
    model = build_model(_stateless())
    with pytest.raises(InputError, match=r"state_bytes: must name operators that keep state \(none\); got 'a'"):
        SimulatedPlant(model, {"in": Given(np.array([1.0]))}, Plant(state_bytes={"a": 5.0}))


def _stateless() -> Topology:
    topology = Topology("plain")
    topology.operator("a", len, inputs=topology.source("in"), execution_time_ms=1.0)
    return topology


def test_an_operator_that_no_event_reaches_has_no_state():
    topology = Topology("filtered", pool=2)
    kept = topology.operator("drop", Waiting(_none, 1.0), inputs=topology.source("in"), execution_time_ms=1.0)
    topology.operator("count", Keeping(whole, 1.0), inputs=kept, key=int, execution_time_ms=1.0)
    model = build_model(topology, Facts(payloads={"in": [1, 2]}, run_functions=True))
    plant = SimulatedPlant(model, {"in": Given(np.array([1.0, 2.0]))}, Plant())
    plant.advance(1.5)
    plant.set_replicas("count", (0, 1))
    plant.advance(9.0)
    total = plant.counters().operators["count"].total
    assert (total.state_bytes, total.groups_moved, plant.out) == (0, 64, 2)


def _none(event: int) -> list[int]:
    return []
