"""Sources that the user stops while shifts die, or take over from each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.driver import shifts as module
from penstock.engine.protocol.messages import BatchEnd, Position
from penstock.engine.protocol.progress import Phase

from .shifts_plant import SLOT, Plant, plant_ready_and_halted, until


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    plant = Plant(tmp_path)
    plant.shifts.open(plant.layout)
    plant.report(0)
    return plant


def test_sources_that_were_stopped_stay_stopped_in_the_next_shift(plant: Plant) -> None:
    plant.shifts.stop_sources()
    plant.halt(0, 9)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert taking.done().error is None
    assert plant.at_work == (1, Phase.HALTED)
    plant.shifts.stop()


def test_sources_that_are_stopped_while_a_shift_takes_over_stay_stopped(plant: Plant) -> None:
    """The end of the pause let them send again."""
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.shifts.stop_sources()
    plant.halt(0, 40)
    assert taking.done().error is None
    assert plant.at_work == (1, Phase.HALTED)
    plant.shifts.stop()


def test_sources_that_are_stopped_stay_stopped_when_a_take_over_fails(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.3)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.shifts.stop_sources()
    assert "sources did not stop" in str(taking.done().error)
    assert plant.at_work == (0, Phase.HALTED)


def test_a_shift_that_dies_while_it_is_stopped_sends_again_what_it_had_sent(plant: Plant) -> None:
    """It sent nothing more, its zeros took the place of its counters, and the run was taken to be finished."""
    plant.report(0, sent=40, done=33)
    plant.shifts.stop_sources()
    assert not plant.shifts.all_sent()  # nobody has said yet that it has stopped
    plant.halt(0, 40)
    assert plant.shifts.all_sent()
    plant.die(0)
    assert not plant.shifts.all_sent()  # not all of its replicas are there again
    assert plant.begin(0) == Position(0, 0, until=40)
    assert plant.halt(0, 0).until == 40
    plant.report(0)
    assert not plant.shifts.all_sent()
    plant.report(0, sent=40, done=12)
    assert plant.shifts.all_sent()


def test_a_shift_that_was_dead_when_it_was_stopped_sends_again_what_it_was_heard_to_have_sent(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.shifts.stop_sources()
    plant.report(0)  # zeros, of the new generation
    assert plant.begin(0) == Position(0, 0)
    assert plant.halt(0, 0).until == 40
    assert not plant.shifts.all_sent()
    plant.report(0, sent=40, done=40)
    assert plant.shifts.all_sent()


def test_a_shift_that_is_stopped_before_it_has_caught_up_catches_up(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.begin(0)
    plant.report(0, sent=5)
    plant.die(0)
    plant.begin(0)
    plant.report(0, sent=20)
    plant.shifts.stop_sources()
    assert plant.halt(0, 22).until == 40


def test_a_shift_that_has_caught_up_stops_where_it_is(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.begin(0)
    plant.shifts.answer(BatchEnd(1, *SLOT, 0, 60))
    plant.shifts.stop_sources()
    assert plant.begin(0, batch=1) == Position(1, 60)
    assert plant.halt(0, 60).until == 60


def test_what_a_shift_owed_its_successor_owes(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0, generation=9)
    plant.begin(0)
    plant.report(0, sent=5)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 5)
    taking.done()
    plant.shifts.stop_sources()
    assert plant.begin(1).position == 5
    assert plant.halt(1, 5).until == 40
    plant.shifts.stop()


def test_a_shift_that_finishes_has_sent_all_too(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert plant.shifts.all_sent()
    plant.die(0, generation=9)
    plant.report(0)
    assert not plant.shifts.all_sent()
    plant.shifts.stop()


def test_a_slot_that_halts_after_the_next_shift_took_over_goes_on_to_where_that_began(plant: Plant) -> None:
    """It had halted, died and asked where to start before the take-over, and says afterwards that it stands still."""
    plant.report(0, sent=40, done=33)
    plant.die(0, generation=9)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert plant.halted(0, 0).until == 40
    plant.shifts.stop()
