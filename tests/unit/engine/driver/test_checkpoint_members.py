"""Whom a checkpoint is of: who is left out, and what happens when one of them may be sent to."""

from __future__ import annotations

import pytest

from penstock.engine.protocol.messages import Done, OperatorRouting, Routing
from penstock.state.handover import Table

from .checkpoints_plant import FIRST, SECOND, SINK, SLOT, Plant


@pytest.fixture
def plant(idle: Plant) -> Plant:
    return idle


def idle_ones_left_out(plant: Plant) -> None:
    """From now on all that send are known to have heard that count/1 is not active."""
    number = plant.begin()
    plant.say(number, routing=plant.routing.current.version)
    plant.say(number, shown=number)


def test_one_that_nobody_can_have_sent_to_is_not_waited_for(plant: Plant) -> None:
    idle_ones_left_out(plant)
    number = plant.begin()
    state = plant.phases.current.of(0)
    assert plant.shifts[0].layout.unpacked(state.members) == {SLOT, FIRST, SINK}
    plant.say(number, SLOT, FIRST, SINK)
    assert plant.last == number


def test_what_one_that_was_left_out_says_again_is_not_waited_for_either(plant: Plant) -> None:
    """It connects anew, and tells what it has done for an earlier one."""
    idle_ones_left_out(plant)
    number = plant.begin()
    plant.say(number - 1, SECOND, shown=number - 1)
    plant.say(number, SLOT, FIRST, SINK)
    plant.say(number, SLOT, FIRST, SINK, shown=number)
    assert plant.begin() == number + 1
    counted = plant.tally._shifts[0].committed
    assert {one: counters.processed for one, counters in counted.items()} == {
        **dict.fromkeys((SLOT, FIRST, SINK), number),
        SECOND: number - 1,
    }


def test_one_that_may_be_sent_to_has_the_checkpoint_begin_anew(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    """An event on its way to it may belong to the checkpoint, and no barrier comes behind it."""
    idle_ones_left_out(plant)
    number = plant.begin()
    plant.checkpoints.hear(Done(0, *one, number) for one in (SLOT, FIRST, SINK))
    owned = Table(9, (0, 0, 1, 1))
    plant.routing.members.follow(Routing(9, {"count": OperatorRouting((0, 1), owned)}))
    plant.look()
    assert plant.last == number - 1
    assert plant.phases.current.given_up == number
    plant.look()
    assert plant.barrier == number + 1, "at once"
    plant.say(number + 1, SLOT, FIRST, SINK)
    assert plant.last == number - 1
    plant.say(number + 1, SECOND)
    assert plant.last == number + 1
    assert (caplog.messages, plant.checkpoints.status.given_up) == ([], 0)


def test_in_another_attempt_it_is_not_known_what_all_have_heard(plant: Plant) -> None:
    idle_ones_left_out(plant)
    plant.shifts[0].supervisor.generation = 5
    plant.begin()
    assert SECOND in plant.shifts[0].layout.unpacked(plant.phases.current.of(0).members)


def test_the_last_one_of_a_shift_is_of_all_and_nobody_joins(plant: Plant) -> None:
    idle_ones_left_out(plant)
    last = plant.checkpoints.last_of(plant.shifts[0], 1.0)
    assert last.members == plant.shifts[0].replicas
    assert plant.phases.current.of(0).members == b""
    plant.routing.activate("count", [1])
    plant.say(last.number)
    assert plant.last == last.number
