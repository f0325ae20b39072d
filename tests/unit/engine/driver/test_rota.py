"""One shift takes over from another: who may send what, when the last one ends, and what happens if it cannot."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from penstock.engine.driver import rota as rotas
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.shifts import check_pools
from penstock.engine.protocol.messages import BatchEnd, Halted, Position, StartQuery
from penstock.engine.protocol.numbers import first_batch
from penstock.errors import EngineError, InputError
from penstock.topology import Topology

from .rota_plant import SLOT, Plant, plant_ready_and_halted, until


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    plant = Plant(tmp_path)
    plant.rota.open(plant.layout)
    plant.report(0)
    return plant


def test_the_next_shift_begins_where_the_sources_of_the_last_have_stopped(plant: Plant, tmp_path: Path) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and plant.supervisors[1].started)
    time.sleep(0.05)
    assert not plant.routing.current.stopping  # the last one goes on until the next is ready
    plant.report(1)
    plant.halt(0, 40)
    assert taking.done().error is None
    assert 0 <= taking.pause_s < 5
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (1, False)
    assert plant.rota.answer(StartQuery(1, *SLOT, first_batch(1))) == Position(first_batch(1), 40)
    assert Positions(tmp_path / "positions.json").start(first_batch(1), SLOT) == 40  # on disk
    plant.rota.stop()


def test_the_last_shift_ends_once_it_has_finished_and_its_counts_stay(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert not plant.rota.wait_settled(0.2)
    assert not plant.supervisors[0].stopped
    plant.report(0, sent=40, done=40)
    assert plant.rota.wait_settled(5)
    assert plant.supervisors[0].stopped
    until(lambda: plant.ledger.in_flight(0) == (0, 0))
    plant.report(1, sent=5, done=5)
    plant.report(0, sent=1, done=1)  # too late
    counters = plant.ledger.counters(0.0, {"o": (0,)})
    assert (counters.sources["s"], counters.operators["o"].total.processed) == (45, 45)
    with pytest.raises(EngineError, match="a replica of generation 0 asked; it has been replaced"):
        plant.rota.answer(StartQuery(0, *SLOT, 0))
    assert plant.rota.answer(BatchEnd(0, *SLOT, 0, 40)) == Position(0, 40)  # Spark ends what it stops
    assert plant.positions.shifts() == {1}


def test_a_last_shift_that_dies_sends_again_what_it_had_sent_and_no_more(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    plant.supervisors[0].generation = 2
    assert plant.rota.answer(StartQuery(2, *SLOT, 0)) == Position(0, 0, until=40)
    plant.report(0, sent=0, done=0, generation=2)
    assert not plant.rota.wait_settled(0.3)  # nothing is in flight, but it is not where it was
    plant.report(0, sent=40, done=40, generation=2)
    assert plant.rota.wait_settled(5)


def test_events_whose_order_counts_wait_until_the_last_shift_has_finished(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert (plant.routing.current.shift, plant.routing.current.turn) == (1, 0)
    plant.report(0, sent=40, done=40)
    assert plant.rota.wait_settled(5)
    assert plant.routing.current.turn == 1


def test_a_take_over_that_failed_can_be_tried_again(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotas, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert taking.done().error is not None
    assert plant.supervisors[1].stopped
    assert not plant.supervisors[0].stopped
    assert plant.ledger.heard(1) == set()
    monkeypatch.setattr(rotas, "HALT_WITHIN_S", 5.0)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 3)
    plant.report(2)
    plant.halt(0, 60)
    assert taking.done().error is None
    assert plant.rota.answer(StartQuery(2, *SLOT, first_batch(2))).position == 60
    plant.rota.stop()


def test_one_take_over_at_a_time(tmp_path: Path) -> None:
    plant = Plant(tmp_path, ready_within_s=0.3)
    plant.rota.open(plant.layout)
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    error = plant.take_over().done().error
    assert str(error) == "pools stay as they are: an earlier shift still finishes what it had"
    assert len(plant.supervisors) == 2
    plant.rota.stop()


def test_a_shift_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    plant = Plant(tmp_path, ready_within_s=0.2)
    plant.rota.open(plant.layout)
    plant.report(0)
    error = plant.take_over().done().error
    assert str(error).startswith("3 of 3 replicas were not ready within 0.2 s; Spark's log: ")
    assert plant.supervisors[1].stopped
    assert plant.rota.failure is None
    assert plant.routing.current.shift == 0


def test_sources_that_do_not_stop_keep_the_shift(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotas, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert str(taking.done().error) == "pools stay as they are: sources did not stop within 0.1 s: s"
    assert not plant.routing.current.stopping


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
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (0, False)
    assert plant.supervisors[1].stopped
    assert plant.begin(0) == Position(0, 0)  # it may send as before
    plant.rota.answer(BatchEnd(0, *SLOT, 0, 50))
    assert Positions(tmp_path / "positions.json").shifts() == {0}  # nothing of the one that was given up
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 3)
    plant.report(2)
    plant.halt(0, 60)
    assert taking.done().error is None
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (2, False)
    plant.rota.stop()


def test_a_full_disk_puts_off_the_end_of_the_last_shift(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody saw it off any more: no other could take over, and the next one's turn never came."""
    monkeypatch.setattr(rotas, "TRY_AGAIN_S", 0.05)
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
        assert not plant.rota.wait_settled(0.0)
        assert not plant.supervisors[0].stopped
    assert plant.rota.wait_settled(5)
    assert plant.routing.current.turn == 1


def test_a_shift_that_cannot_be_seen_off_is_left_when_the_run_ends(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotas, "TRY_AGAIN_S", 60.0)
    tries: list[int] = []

    def full(shift: int) -> None:
        tries.append(shift)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plant.positions, "forget", full)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 0)
    taking.done()
    until(lambda: len(tries) == 1)
    plant.rota.stop()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "penstock-rota"])
    assert tries == [0]


def test_a_halt_from_before_is_not_taken_for_one_of_now(plant: Plant) -> None:
    plant.routing.change(stopping=True)
    old = plant.version
    plant.routing.change(stopping=False)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.routing.current.stopping)
    plant.rota.answer(Halted(0, *SLOT, 0, 7, old))
    time.sleep(0.1)
    assert plant.routing.current.shift == 0
    plant.halt(0, 12)
    taking.done()
    assert plant.rota.answer(StartQuery(1, *SLOT, first_batch(1))).position == 12
    plant.rota.stop()


def test_a_next_shift_that_dies_for_good_is_no_failure_of_the_run(plant: Plant) -> None:
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.supervisors[1].failure = EngineError("no executor is left")
    assert str(taking.done().error) == "no executor is left"
    assert plant.rota.failure is None
    plant.supervisors[0].failure = EngineError("Spark is gone")
    assert str(plant.rota.failure) == "Spark is gone"


def test_a_last_shift_that_dies_for_good_is_a_failure_of_the_run(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    plant.supervisors[0].failure = EngineError("it died 6 times")
    assert str(plant.rota.failure) == "it died 6 times"
    plant.rota.stop()


def test_where_batches_end_is_kept_by_shift(plant: Plant) -> None:
    plant.rota.answer(BatchEnd(0, *SLOT, 0, 25))
    assert plant.rota.answer(StartQuery(0, *SLOT, 1)) == Position(1, 25)


def test_pools_that_cannot_be() -> None:
    topology = Topology("t", pool=3)
    topology.operator("o", print, inputs=topology.source("s"))
    check_pools(topology, {"o": [0, 2]}, {"o": (2,)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[1\], beyond: \[3\]"):
        check_pools(topology, {"o": [0, 3]}, {"o": (0, 1)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[0\]"):
        check_pools(topology, {}, {"o": (0,)})
