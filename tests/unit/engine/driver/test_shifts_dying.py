"""Shifts whose queries die, alone or while one takes over from another: what is done again, and by whom."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from penstock.engine.driver import shifts as module
from penstock.engine.protocol.messages import Start, TablesQuery
from penstock.engine.protocol.progress import Phase, ShiftState, first_batch
from penstock.errors import EngineError
from tests.waiting import LONG_S, until

from .shifts_plant import Plant


@pytest.fixture
def plant(shifting: Plant) -> Plant:
    return shifting


def test_a_query_that_dies_begins_again_from_the_last_checkpoint(plant: Plant) -> None:
    number = plant.checkpoint(0, 30)
    plant.report(0, sent=40, done=33)
    plant.supervisors[0].die()
    assert plant.recovered == [(0, 0), (1, number)]
    assert list(map(str, plant.deaths)) == ["it was killed"]  # and not also of the first start
    assert plant.begin(0) == Start({"at": 30}, sent=30, owed=40)
    assert plant.counters.sources["s"] == 30
    plant.report(0, sent=12)
    assert plant.counters.sources["s"] == 42
    with pytest.raises(EngineError, match="a replica of generation 0 asked; it has been replaced"):
        plant.shifts.check(TablesQuery(0))


def test_a_new_attempt_sends_no_barrier_of_the_last_one(plant: Plant) -> None:
    """It sent the last one again: sinks were told to prepare, and then to show, what nobody had committed."""
    plant.checkpoint(0, 30)
    assert plant.phases.current.of(0).barrier == 1
    plant.supervisors[0].die()
    assert plant.phases.current.of(0) == ShiftState(Phase.SENDING)
    plant.report(0)
    plant.shifts.stop_sources()
    plant.supervisors[0].die()
    assert plant.phases.current.of(0) == ShiftState(Phase.HALTED)


def test_one_that_dies_before_its_first_checkpoint_begins_at_the_beginning(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.supervisors[0].die()
    assert plant.begin(0) == Start(owed=40)
    assert plant.counters.sources["s"] == 0


def test_a_checkpoint_on_its_way_dies_with_its_attempt(plant: Plant) -> None:
    plant.checkpoints._due_s = 0.0
    until(lambda: plant.phases.current.of(0).barrier == 1)
    plant.reach(0, 20)
    plant.supervisors[0].die()
    plant.process(0, 1)
    plant.report(0)
    assert plant.checkpoint(0, 25) == 2
    assert plant.record is not None
    assert (plant.record.number, plant.record.generation) == (2, 1)


def test_when_a_last_shift_dies_the_next_does_again_what_it_had_not_committed(plant: Plant) -> None:
    number = plant.checkpoint(0, 30)
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    plant.report(1, sent=5, done=2)
    plant.supervisors[0].die()
    assert plant.shifts.wait_settled(LONG_S)
    until(lambda: plant.supervisors[1].renewals == 1)
    assert plant.supervisors[0].stopped
    assert plant.recovered[-1] == (plant.supervisors[1].generation, number)
    assert plant.begin(1) == Start({"at": 30}, sent=30, owed=45)
    assert plant.counters.sources["s"] == 30
    assert plant.phases.current.is_turn_of(1)
    plant.report(1)
    assert plant.checkpoint(1, 60, attempt=30) == first_batch(1) + 1
    plant.report(1, sent=30)
    assert plant.counters.sources["s"] == 60


def test_when_the_next_dies_the_last_ends_with_it(plant: Plant) -> None:
    """Nothing that either has done since the last checkpoint counts: the next one does it again, alone."""
    number = plant.checkpoint(0, 30)
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    last = plant.phases.current.of(0).barrier
    plant.report(1, sent=5)
    plant.supervisors[1].die()
    assert plant.supervisors[0].stopped
    assert plant.shifts.wait_settled(0.0)
    assert plant.phases.current.is_turn_of(1)
    assert plant.begin(1) == Start({"at": 30}, sent=30, owed=45)
    plant.process(0, last)  # too late
    time.sleep(0.05)
    assert plant.record is not None
    assert plant.record.number == number
    with pytest.raises(EngineError, match="it has been replaced"):
        plant.shifts.check(TablesQuery(0))
    until(lambda: not [one for one in threading.enumerate() if one.name == "penstock-shifts"])


def test_a_last_shift_that_finishes_while_it_is_ended_is_not_committed(plant: Plant) -> None:
    """It was, after its counts had been settled: the next one went on from there, and they were short."""
    number = plant.checkpoint(0, 30)
    plant.report(0, sent=40, done=40)
    plant.relieve(0, 40)
    last = plant.phases.current.of(0).barrier

    def stop() -> None:
        plant.process(0, last, attempt=40)
        time.sleep(0.1)

    plant.supervisors[0].stop = stop  # type: ignore[method-assign]
    plant.supervisors[1].die()
    assert plant.record is not None
    assert plant.record.number == number
    assert plant.begin(1) == Start({"at": 30}, sent=30, owed=40)
    assert plant.counters.sources["s"] == 30


def test_two_that_die_at_once_begin_again_once(plant: Plant) -> None:
    """One executor may have both. The last one's end was told to the next, which had just begun again."""
    plant.relieve(0, 40)
    stopping = threading.Event()

    def stop() -> None:
        plant.supervisors[0].died = True
        stopping.set()
        time.sleep(0.3)

    plant.supervisors[0].stop = stop  # type: ignore[method-assign]
    plant.supervisors[1].die()
    assert stopping.is_set()
    until(lambda: not [one for one in threading.enumerate() if one.name == "penstock-shifts"])
    assert (plant.supervisors[1].restarts, plant.supervisors[1].renewals) == (1, 0)
    assert plant.shifts.wait_settled(0.0)


def test_who_sees_a_shift_off_does_not_look_all_the_time(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its last checkpoint was given up, a core was busy until its query had been stopped."""
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.02)
    plant.relieve(0, 40)
    looks: list[int] = []
    real = plant.checkpoints.wait_over
    monkeypatch.setattr(plant.checkpoints, "wait_over", lambda *given: (looks.append(0), real(*given))[1])
    plant.supervisors[0].stop = lambda: time.sleep(0.3)  # type: ignore[method-assign]
    plant.supervisors[1].die()
    assert len(looks) < 30


def test_a_last_shift_is_ended_once(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checkpoint is committed when the next one dies: who let go of key groups second did so for the one after."""
    let_go: list[str] = []
    real = plant.handovers.release
    monkeypatch.setattr(plant.handovers, "release", lambda holder: (let_go.append(holder), real(holder))[1])
    plant.report(0, sent=40, done=40)
    plant.relieve(0, 40)
    number = plant.phases.current.of(0).barrier
    plant.process(0, number, attempt=40)
    until(lambda: plant.record is not None)
    plant.supervisors[0].stop = lambda: time.sleep(0.2)  # type: ignore[method-assign]
    plant.supervisors[1].die()
    assert plant.shifts.wait_settled(0.0)
    until(lambda: not [one for one in threading.enumerate() if one.name == "penstock-shifts"])
    assert let_go.count("shift") == 1
    assert plant.begin(1) == Start({"at": 40}, sent=40, owed=40)
    assert plant.counters.sources["s"] == 40


def test_a_next_shift_that_dies_before_it_has_taken_over_is_started_again(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and plant.supervisors[1].started)
    plant.supervisors[1].die()
    assert plant.recovered == [(0, 0)]  # another is at work: nothing is cleaned up
    assert plant.counters.sources["s"] == 40
    plant.report(1)
    plant.halt(0, 40)
    assert taking.done().error is None
    assert plant.begin(1) == Start({"at": 40}, sent=40)


def test_a_last_shift_that_dies_while_the_next_starts_keeps_the_pools(plant: Plant) -> None:
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.supervisors[0].die()
    assert str(taking.done().error) == "pools stay as they are: the query at work died while the next was started"
    assert plant.supervisors[1].stopped
    assert plant.at_work == (0, Phase.SENDING)


def test_a_last_shift_that_dies_while_its_sources_stop_keeps_the_pools(plant: Plant) -> None:
    taking = plant.take_over()
    plant.be_ready(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.supervisors[0].die()
    assert str(taking.done().error) == "pools stay as they are: the query died before the next could take over"
    assert plant.at_work == (0, Phase.SENDING)
    assert plant.supervisors[1].stopped
    plant.report(0)
    plant.checkpoint(0, 12)


def test_a_last_shift_that_dies_when_its_sources_have_just_stopped_keeps_the_pools(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started again, its last checkpoint given up, and the next took over all the same: it never finished."""
    real = plant.shifts._await_halted

    def die_then(*given: Any) -> None:
        real(*given)
        plant.supervisors[0].die()

    monkeypatch.setattr(plant.shifts, "_await_halted", die_then)
    taking = plant.take_over()
    plant.be_ready(1)
    plant.halt(0, 40)
    assert str(taking.done().error) == "pools stay as they are: the query died before the next could take over"
    assert plant.supervisors[1].stopped
    assert plant.at_work == (0, Phase.SENDING)
    plant.report(0)
    plant.checkpoint(0, 12)


def test_a_next_shift_that_dies_just_as_it_takes_over_ends_the_last(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not see that the last one was left, and gave up its last checkpoint: that one never ended."""
    number = plant.checkpoint(0, 30)
    real = plant.phases.take_over
    dying = threading.Thread(target=lambda: plant.supervisors[1].die())

    def die_meanwhile(*given: Any) -> None:
        dying.start()
        dying.join(0.2)
        real(*given)

    monkeypatch.setattr(plant.phases, "take_over", die_meanwhile)
    plant.relieve(0, 40)
    dying.join(LONG_S)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.supervisors[0].stopped
    assert plant.begin(1) == Start({"at": 30}, sent=30, owed=40)
    assert plant.recovered[-1] == (plant.supervisors[1].generation, number)
