"""One shift takes over from another: who may send what, when the last one ends, and what happens if it cannot."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from penstock.engine.driver import shifts as module
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.shifts import check_pools
from penstock.engine.protocol.messages import BatchEnd, Halted, Position, StartQuery, TablesQuery
from penstock.engine.protocol.progress import Phase, first_batch
from penstock.errors import EngineError, InputError
from penstock.topology import Topology

from .shifts_plant import SLOT, Plant, plant_ready_and_halted, until


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    plant = Plant(tmp_path)
    plant.shifts.open(plant.layout)
    plant.report(0)
    return plant


def test_the_next_shift_begins_where_the_sources_of_the_last_have_stopped(plant: Plant, tmp_path: Path) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and plant.supervisors[1].started)
    time.sleep(0.05)
    assert plant.at_work[1] is Phase.SENDING  # the last one goes on until the next is ready
    plant.report(1)
    plant.halt(0, 40)
    assert taking.done().error is None
    assert 0 <= taking.pause_s < 5
    assert plant.at_work == (1, Phase.SENDING)
    assert plant.shifts.answer(StartQuery(1, *SLOT, first_batch(1))) == Position(first_batch(1), 40)
    assert Positions(tmp_path / "positions.json").start(first_batch(1), SLOT) == 40  # on disk
    plant.shifts.stop()


def test_the_last_shift_ends_once_it_has_finished_and_its_counts_stay(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert not plant.shifts.wait_settled(0.2)
    assert not plant.supervisors[0].stopped
    plant.report(0, sent=40, done=40)
    assert plant.shifts.wait_settled(5)
    assert plant.supervisors[0].stopped
    until(lambda: plant.tally.in_flight(0) == (0, 0))
    plant.report(1, sent=5, done=5)
    plant.report(0, sent=1, done=1)  # too late
    counters = plant.tally.counters(0.0, {"o": (0,)})
    assert (counters.sources["s"], counters.operators["o"].total.processed) == (45, 45)
    with pytest.raises(EngineError, match="a replica of generation 0 asked; it has been replaced"):
        plant.shifts.answer(StartQuery(0, *SLOT, 0))
    assert plant.shifts.answer(BatchEnd(0, *SLOT, 0, 40)) == Position(0, 40)  # Spark ends what it stops
    assert plant.positions.shifts() == {1}


def test_a_last_shift_that_dies_sends_again_what_it_had_sent_and_no_more(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    plant.supervisors[0].generation = 2
    assert plant.shifts.answer(StartQuery(2, *SLOT, 0)) == Position(0, 0, until=40)
    plant.report(0, sent=0, done=0, generation=2)
    assert not plant.shifts.wait_settled(0.3)  # nothing is in flight, but it is not where it was
    plant.report(0, sent=40, done=40, generation=2)
    assert plant.shifts.wait_settled(5)


def test_events_whose_order_counts_wait_until_the_last_shift_has_finished(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert plant.at_work[0] == 1
    assert not plant.phases.current.is_turn_of(1)
    plant.report(0, sent=40, done=40)
    assert plant.shifts.wait_settled(5)
    assert plant.phases.current.is_turn_of(1)


def test_a_take_over_that_failed_can_be_tried_again(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert taking.done().error is not None
    assert plant.supervisors[1].stopped
    assert not plant.supervisors[0].stopped
    assert plant.tally.heard(1) == set()
    monkeypatch.setattr(module, "HALT_WITHIN_S", 5.0)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 3)
    plant.report(2)
    plant.halt(0, 60)
    assert taking.done().error is None
    assert plant.shifts.answer(StartQuery(2, *SLOT, first_batch(2))).position == 60
    plant.shifts.stop()


def test_one_take_over_at_a_time(tmp_path: Path) -> None:
    plant = Plant(tmp_path, ready_within_s=0.3)
    plant.shifts.open(plant.layout)
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    error = plant.take_over().done().error
    assert str(error) == "pools stay as they are: an earlier shift still finishes what it had"
    assert len(plant.supervisors) == 2
    plant.shifts.stop()


def test_a_shift_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    plant = Plant(tmp_path, ready_within_s=0.2)
    plant.shifts.open(plant.layout)
    plant.report(0)
    error = plant.take_over().done().error
    assert str(error).startswith("3 of 3 replicas were not ready within 0.2 s; Spark's log: ")
    assert plant.supervisors[1].stopped
    assert plant.shifts.failure is None
    assert plant.at_work[0] == 0


def test_sources_that_do_not_stop_keep_the_shift(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert str(taking.done().error) == "pools stay as they are: sources did not stop within 0.1 s: s"
    assert plant.at_work[1] is Phase.SENDING


def test_a_full_disk_leaves_the_shift_at_work_and_its_sources_sending(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They stayed stopped, and the next try took that for the user's wish."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        taking = plant.take_over()
        plant_ready_and_halted(plant, 40)
        assert "No space left" in str(taking.done().error)
    assert plant.at_work == (0, Phase.SENDING)
    assert plant.supervisors[1].stopped
    assert plant.begin(0) == Position(0, 0)  # it may send as before
    plant.shifts.answer(BatchEnd(0, *SLOT, 0, 50))
    assert Positions(tmp_path / "positions.json").shifts() == {0}  # nothing of the one that was given up
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 3)
    plant.report(2)
    plant.halt(0, 60)
    assert taking.done().error is None
    assert plant.at_work == (2, Phase.SENDING)
    plant.shifts.stop()


def test_a_full_disk_puts_off_the_end_of_the_last_shift(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody saw it off any more: no other could take over, and the next one's turn never came."""
    monkeypatch.setattr(module, "TRY_AGAIN_S", 0.05)
    tries: list[int] = []

    def full(shift: int) -> None:
        tries.append(shift)
        raise OSError(28, "No space left on device")

    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    with monkeypatch.context() as disk:
        disk.setattr(plant.positions, "forget", full)
        plant.report(0, sent=40, done=40)
        until(lambda: len(tries) >= 2)
        assert not plant.shifts.wait_settled(0.0)
        assert not plant.supervisors[0].stopped
    assert plant.shifts.wait_settled(5)
    assert plant.phases.current.is_turn_of(1)


def test_a_shift_that_cannot_be_seen_off_is_left_when_the_run_ends(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRY_AGAIN_S", 60.0)
    tries: list[int] = []

    def full(shift: int) -> None:
        tries.append(shift)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plant.positions, "forget", full)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 0)
    taking.done()
    until(lambda: len(tries) == 1)
    plant.shifts.stop()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "penstock-shifts"])
    assert tries == [0]


def test_a_halt_from_before_is_not_taken_for_one_of_now(plant: Plant) -> None:
    plant.phases.pause()
    old = plant.version
    plant.phases.resume(plant.shifts.current)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.shifts.answer(Halted(0, *SLOT, 0, 7, old))
    time.sleep(0.1)
    assert plant.at_work[0] == 0
    plant.halt(0, 12)
    taking.done()
    assert plant.shifts.answer(StartQuery(1, *SLOT, first_batch(1))).position == 12
    plant.shifts.stop()


def test_a_next_shift_that_dies_for_good_is_no_failure_of_the_run(plant: Plant) -> None:
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.supervisors[1].failure = EngineError("no executor is left")
    assert str(taking.done().error) == "no executor is left"
    assert plant.shifts.failure is None
    plant.supervisors[0].failure = EngineError("Spark is gone")
    assert str(plant.shifts.failure) == "Spark is gone"


def test_a_last_shift_that_dies_for_good_is_a_failure_of_the_run(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    plant.supervisors[0].failure = EngineError("it died 6 times")
    assert str(plant.shifts.failure) == "it died 6 times"
    plant.shifts.stop()


def test_where_batches_end_is_kept_by_shift(plant: Plant) -> None:
    plant.shifts.answer(BatchEnd(0, *SLOT, 0, 25))
    assert plant.shifts.answer(StartQuery(0, *SLOT, 1)) == Position(1, 25)


def test_pools_that_cannot_be() -> None:
    topology = Topology("t", pool=3)
    topology.operator("o", print, inputs=topology.source("s"))
    check_pools(topology, {"o": [0, 2]}, {"o": (2,)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[1\], beyond: \[3\]"):
        check_pools(topology, {"o": [0, 3]}, {"o": (0, 1)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[0\]"):
        check_pools(topology, {}, {"o": (0,)})


def test_a_shift_that_is_being_ended_is_not_settled(plant: Plant) -> None:
    """Its query still held slots in Spark when the next take-over began."""
    stopping, stopped = threading.Event(), threading.Event()

    def stop() -> None:
        stopping.set()
        assert stopped.wait(5)

    plant.supervisors[0].stop = stop  # type: ignore[method-assign]
    plant.supervisors[0].restarts = 2
    taking = plant.take_over()
    plant_ready_and_halted(plant, 0)
    taking.done()
    assert stopping.wait(5)
    assert not plant.shifts.wait_settled(0.05)
    assert plant.shifts.restarts == 2
    assert plant.shifts.answer(Halted(0, *SLOT, 0, 0, plant.version)) == Position(0, 0)  # it may say so too late
    with pytest.raises(EngineError, match="it has been replaced"):
        plant.shifts.check(TablesQuery(0, 1))
    stopped.set()
    assert plant.shifts.wait_settled(5.0)
    assert plant.shifts.restarts == 2
