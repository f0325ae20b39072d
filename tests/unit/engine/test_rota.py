"""One shift takes over from another: who may send what, when the last one ends, and what happens if it cannot."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import rota as rotas
from penstock.engine.handovers import Handovers
from penstock.engine.layout import lay_out
from penstock.engine.ledger import Ledger
from penstock.engine.messages import BatchEnd, Halted, Position, Report, Reports, StartQuery
from penstock.engine.numbers import first_batch
from penstock.engine.positions import Positions
from penstock.engine.rota import Books, Rota
from penstock.engine.routing import RoutingTable
from penstock.engine.shifts import check_pools
from penstock.errors import EngineError, InputError
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

SLOT = ("s", 0)


class Watched:
    """A supervisor whose query is in the test's hands."""

    def __init__(self, number: int) -> None:
        self.generation = number
        self.restarts = 0
        self.failure: EngineError | None = None
        self.started = self.stopped = False

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True


class Plant:
    """A rota over one source and one operator whose replicas say what the test has them say."""

    def __init__(self, folder: Path, ready_within_s: float = 5.0) -> None:
        self.topology = Topology("t", pool=2)
        self.topology.operator("o", print, inputs=self.topology.source("s"))
        self.layout = lay_out(self.topology, {"o": [0, 1]})
        self.routing = RoutingTable(self.topology, {})
        self.ledger = Ledger(self.topology)
        self.positions = Positions(folder / "positions.json")
        self.positions.begin(0, {SLOT: 0})
        self.supervisors: list[Watched] = []
        self.handovers = Handovers(self.routing, {}, 1.0)
        books = Books(self.routing, self.ledger, self.positions, lambda _: True, self.handovers)
        log_file = folder / "spark.log"
        self.rota = Rota(books, self._supervisor, ready_within_s=ready_within_s, log_file=log_file)

    def _supervisor(self, shift: int, layout: Any) -> Any:
        assert layout is self.layout
        self.supervisors.append(Watched(shift))
        return self.supervisors[shift]

    def report(self, shift: int, *, sent: int = 0, done: int = 0, generation: int | None = None) -> None:
        """What all replicas of a shift have done in its first batch."""
        of = self.supervisors[shift].generation if generation is None else generation
        batch = first_batch(shift)
        reports = [
            Report(of, batch, "s", 0, ReplicaCounters(processed=sent, sent={"o": sent})),
            Report(of, batch, "o", 0, ReplicaCounters(received={"s": done}, processed=done)),
            Report(of, batch, "o", 1, ReplicaCounters()),
        ]
        self.ledger.enter(Reports("host", shift, 0, reports), now_s=0.0)

    def die(self, shift: int, generation: int | None = None) -> None:
        """The query of a shift is started again."""
        died = self.supervisors[shift]
        died.generation = died.generation + 1 if generation is None else generation

    def begin(self, shift: int, batch: int = 0) -> Position:
        """The source slot of a shift asks where its batch starts."""
        return self.rota.answer(StartQuery(self.supervisors[shift].generation, *SLOT, first_batch(shift) + batch))

    def halt(self, shift: int, position: int) -> Position:
        """The source slot of a shift says where it has stopped, once it is told to."""
        until(lambda: self.routing.current.stopping)
        return self.halted(shift, position)

    def halted(self, shift: int, position: int) -> Position:
        """The source slot of a shift says where it has stopped."""
        asked = Halted(self.supervisors[shift].generation, *SLOT, first_batch(shift), position, self.version)
        return self.rota.answer(asked)

    @property
    def version(self) -> int:
        return self.routing.current.version

    def take_over(self) -> Taking:
        return Taking(self.rota, self.layout)


class Taking:
    """A take-over in a thread of its own."""

    def __init__(self, rota: Rota, layout: Any) -> None:
        self.error: Exception | None = None
        self.pause_s = -1.0
        self._work = lambda: rota.take_over(layout)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.pause_s = self._work()
        except Exception as error:
            self.error = error

    def done(self) -> Taking:
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self


def until(true: Any, timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)


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


def plant_ready_and_halted(plant: Plant, position: int) -> None:
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    plant.halt(0, position)


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


def test_sources_that_were_stopped_stay_stopped_in_the_next_shift(plant: Plant) -> None:
    plant.rota.stop_sources()
    plant.halt(0, 9)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    assert taking.done().error is None
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (1, True)
    plant.rota.stop()


def test_sources_that_are_stopped_while_a_shift_takes_over_stay_stopped(plant: Plant) -> None:
    """The end of the pause let them send again."""
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.routing.current.stopping)
    plant.rota.stop_sources()
    plant.halt(0, 40)
    assert taking.done().error is None
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (1, True)
    plant.rota.stop()


def test_sources_that_are_stopped_stay_stopped_when_a_take_over_fails(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotas, "HALT_WITHIN_S", 0.3)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    until(lambda: plant.routing.current.stopping)
    plant.rota.stop_sources()
    assert "sources did not stop" in str(taking.done().error)
    assert (plant.routing.current.shift, plant.routing.current.stopping) == (0, True)


def test_a_shift_that_dies_while_it_is_stopped_sends_again_what_it_had_sent(plant: Plant) -> None:
    """It sent nothing more, its zeros took the place of its counters, and the run was taken to be finished."""
    plant.report(0, sent=40, done=33)
    plant.rota.stop_sources()
    assert not plant.rota.all_sent()  # nobody has said yet that it has stopped
    plant.halt(0, 40)
    assert plant.rota.all_sent()
    plant.die(0)
    assert not plant.rota.all_sent()  # not all of its replicas are there again
    assert plant.begin(0) == Position(0, 0, until=40)
    assert plant.halt(0, 0).until == 40
    plant.report(0)
    assert not plant.rota.all_sent()
    plant.report(0, sent=40, done=12)
    assert plant.rota.all_sent()


def test_a_shift_that_was_dead_when_it_was_stopped_sends_again_what_it_was_heard_to_have_sent(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.rota.stop_sources()
    plant.report(0)  # zeros, of the new generation
    assert plant.begin(0) == Position(0, 0)
    assert plant.halt(0, 0).until == 40
    assert not plant.rota.all_sent()
    plant.report(0, sent=40, done=40)
    assert plant.rota.all_sent()


def test_a_shift_that_is_stopped_before_it_has_caught_up_catches_up(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.begin(0)
    plant.report(0, sent=5)
    plant.die(0)
    plant.begin(0)
    plant.report(0, sent=20)
    plant.rota.stop_sources()
    assert plant.halt(0, 22).until == 40


def test_a_shift_that_has_caught_up_stops_where_it_is(plant: Plant) -> None:
    plant.begin(0)
    plant.report(0, sent=40, done=33)
    plant.die(0)
    plant.begin(0)
    plant.rota.answer(BatchEnd(1, *SLOT, 0, 60))
    plant.rota.stop_sources()
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
    plant.rota.stop_sources()
    assert plant.begin(1).position == 5
    assert plant.halt(1, 5).until == 40
    plant.rota.stop()


def test_a_shift_that_finishes_has_sent_all_too(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert plant.rota.all_sent()
    plant.die(0, generation=9)
    plant.report(0)
    assert not plant.rota.all_sent()
    plant.rota.stop()


def test_a_slot_that_halts_after_the_next_shift_took_over_goes_on_to_where_that_began(plant: Plant) -> None:
    """It had halted, died and asked where to start before the take-over, and says afterwards that it stands still."""
    plant.report(0, sent=40, done=33)
    plant.die(0, generation=9)
    taking = plant.take_over()
    plant_ready_and_halted(plant, 40)
    taking.done()
    assert plant.halted(0, 0).until == 40
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
