"""One shift takes over from another: who may send what, when the last one ends, and what happens if it cannot."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from penstock.engine.driver import checkpoints
from penstock.engine.driver import shifts as module
from penstock.engine.driver.routing import check_pools
from penstock.engine.protocol.messages import Done, RestoreQuery, Start, StartQuery, TablesQuery
from penstock.engine.protocol.progress import Phase, first_batch
from penstock.errors import EngineError, InputError
from penstock.topology import Topology
from tests.waiting import LONG_S, until

from .shifts_plant import SLOT, Plant


@pytest.fixture
def plant(shifting: Plant) -> Plant:
    return shifting


def test_the_next_shift_begins_where_the_sources_of_the_last_have_stopped(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and plant.supervisors[1].started)
    time.sleep(0.05)
    assert plant.at_work == (0, Phase.SENDING)  # the last one goes on until the next is ready
    plant.report(1)
    plant.halt(0, 40)
    assert taking.done().error is None
    assert 0 <= taking.pause_s < 5
    assert plant.at_work == (1, Phase.SENDING)
    assert plant.begin(1) == Start({"at": 40}, sent=40)
    assert plant.record is None  # nothing is committed before the last one has finished


def test_the_next_attempt_may_stand_by_where_nothing_else_needs_its_slots(plant: Plant) -> None:
    first = plant.attempted[0]
    assert first.may_stand_by()
    plant.catches_up = True
    assert not first.may_stand_by()  # its start would take from what is caught up with
    plant.catches_up = False
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and plant.supervisors[1].started)
    assert (plant.supervisors[0].standbys_ended, first.may_stand_by()) == (1, False)
    plant.report(1)
    plant.halt(0, 40)
    assert taking.done().error is None
    assert not plant.attempted[1].may_stand_by()  # the last one still finishes
    plant.finish(0, 40)
    assert plant.shifts.wait_settled(LONG_S)
    assert (first.may_stand_by(), plant.attempted[1].may_stand_by()) == (False, True)


def test_the_last_shift_ends_once_its_last_checkpoint_is_shown_and_its_counts_stay(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    number = plant.phases.current.of(0).barrier
    plant.process(0, number, attempt=40)
    until(lambda: plant.record is not None)
    assert not plant.shifts.wait_settled(0.1)  # its sinks have not shown it
    assert not plant.supervisors[0].stopped
    plant.show(0, number)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.supervisors[0].stopped
    plant.report(1, sent=5, done=5)
    plant.report(0, sent=1, done=1)  # too late
    assert (plant.counters.sources["s"], plant.counters.operators["o"].total.processed) == (45, 45)
    for question in (StartQuery(0, *SLOT), TablesQuery(0), RestoreQuery(0, "o")):
        with pytest.raises(EngineError, match="a replica of generation 0 asked; it has been replaced"):
            plant.shifts.check(question)
    assert plant.record is not None
    assert plant.record.start(SLOT) == ({"at": 40}, 40)


def test_events_whose_order_counts_wait_until_the_last_shift_has_finished(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    assert plant.at_work[0] == 1
    assert not plant.phases.current.is_turn_of(1)
    plant.finish(0, 40)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.phases.current.is_turn_of(1)


def test_no_checkpoint_of_the_next_shift_begins_before_the_last_has_finished(plant: Plant) -> None:
    plant.relieve(0, 40)
    assert plant.shifts.to_checkpoint() is None
    plant.finish(0, 40)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.shifts.to_checkpoint() is plant.shifts.current
    assert plant.checkpoint(1, 55, attempt=15) == first_batch(1) + 1
    assert plant.counters.sources["s"] == 40


def test_checkpoints_go_on_while_the_next_shift_starts(plant: Plant) -> None:
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    assert plant.checkpoint(0, 20) == 1
    plant.be_ready(1)
    plant.halt(0, 30)
    assert taking.done().error is None


# ── a take-over that cannot be ──────────────────────────────────────────────────────────────────────────────────────


def test_a_take_over_that_failed_can_be_tried_again(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    plant.be_ready(1)
    assert taking.done().error is not None
    assert plant.supervisors[1].stopped
    assert not plant.supervisors[0].stopped
    assert plant.tally.heard(1) == set()
    monkeypatch.setattr(module, "HALT_WITHIN_S", 5.0)
    taking = plant.take_over()
    plant.be_ready(2)
    plant.halt(0, 60)
    assert taking.done().error is None
    assert plant.begin(2) == Start({"at": 60}, sent=60)


def test_one_take_over_at_a_time(tmp_path: Path) -> None:
    plant = Plant(tmp_path, ready_within_s=0.3).open()
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    error = plant.take_over().done().error
    assert str(error) == "pools stay as they are: an earlier shift still finishes what it had"
    assert len(plant.supervisors) == 2
    plant.shifts.stop()


def test_a_shift_that_is_late_is_ended_once_all_its_processes_are_there(tmp_path: Path) -> None:
    """Spark ended the Python daemon with it, and so the shift at work: its tasks were waiting for their workers."""
    plant = Plant(tmp_path, ready_within_s=0.1).open()
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2 and not plant.handovers._holders)  # it is too late
    assert not plant.supervisors[1].stopped
    plant.report(1)
    assert str(taking.done().error).startswith("3 of 3 replicas were not ready within 0.1 s")
    assert plant.supervisors[1].stopped
    plant.shifts.stop()


def test_a_shift_that_is_never_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "THERE_WITHIN_S", 0.1)
    plant = Plant(tmp_path, ready_within_s=0.2).open()
    error = plant.take_over().done().error
    assert str(error).startswith("3 of 3 replicas were not ready within 0.2 s; Spark's log: ")
    assert plant.supervisors[1].stopped
    assert plant.shifts.failure is None
    assert plant.at_work[0] == 0
    plant.shifts.stop()


def test_a_shift_that_cannot_even_be_made_holds_nothing_up(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key groups were held for ever."""

    def gone(*_: object) -> None:
        raise EngineError("Spark is gone")

    monkeypatch.setattr(plant, "supervise", gone)
    assert str(plant.take_over().done().error) == "Spark is gone"
    assert plant.handovers._holders == set()
    assert plant.shifts.wait_settled(0.0)


def test_sources_that_do_not_stop_keep_the_shift(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.1)
    taking = plant.take_over()
    plant.be_ready(1)
    assert str(taking.done().error) == "pools stay as they are: sources did not stop within 0.1 s: s"
    assert plant.at_work == (0, Phase.SENDING)
    assert plant.checkpoint(0, 12) == 2  # what was to be its last one is given up


def test_a_full_disk_leaves_the_last_shift_at_work_until_it_is_committed(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody saw it off any more: no other could take over, and the next one's turn never came."""
    monkeypatch.setattr(checkpoints, "TRY_AGAIN_S", 0.02)
    tries: list[int] = []

    def full(handle: int) -> None:
        tries.append(handle)
        raise OSError(28, "No space left on device")

    plant.relieve(0, 40)
    number = plant.phases.current.of(0).barrier
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        plant.process(0, number, attempt=40)
        until(lambda: len(tries) >= 2)
        assert not plant.shifts.wait_settled(0.0)
        assert not plant.supervisors[0].stopped
        assert plant.record is None
    plant.finish(0, 40)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.phases.current.is_turn_of(1)


def test_a_shift_that_cannot_be_seen_off_is_left_when_the_run_ends(plant: Plant) -> None:
    plant.relieve(0, 0)
    plant.shifts.stop()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "penstock-shifts"])
    assert [one.stopped for one in plant.supervisors] == [True, True]


def test_a_halt_from_before_is_not_taken_for_one_of_now(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that heard late of a take-over that was given up says where it was then."""
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.3)
    taking = plant.take_over()
    plant.be_ready(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    old = plant.phases.current.of(0).barrier
    assert old > 0
    assert taking.done().error is not None
    monkeypatch.setattr(module, "HALT_WITHIN_S", 5.0)
    taking = plant.take_over()
    plant.be_ready(2)
    until(lambda: plant.phases.current.of(0).barrier > old)
    plant.checkpoints.hear([Done(0, *SLOT, old, cursor={"at": 7}, sent=7)])
    time.sleep(0.1)
    assert plant.at_work[0] == 0
    plant.halt(0, 12)
    taking.done()
    assert plant.begin(2) == Start({"at": 12}, sent=12)


def test_a_next_shift_that_dies_for_good_is_no_failure_of_the_run(plant: Plant) -> None:
    taking = plant.take_over()
    until(lambda: len(plant.supervisors) == 2)
    plant.supervisors[1].failure = EngineError("no executor is left")
    assert str(taking.done().error) == "no executor is left"
    assert plant.shifts.failure is None
    plant.supervisors[0].failure = EngineError("Spark is gone")
    assert str(plant.shifts.failure) == "Spark is gone"


def test_a_last_shift_that_can_no_longer_be_watched_is_a_failure_of_the_run(plant: Plant) -> None:
    plant.relieve(0, 40)
    plant.supervisors[0].failure = EngineError("the query can no longer be watched")
    assert str(plant.shifts.failure) == "the query can no longer be watched"


def test_a_shift_that_is_being_ended_is_not_settled(plant: Plant) -> None:
    """Its query still held slots in Spark when the next take-over began."""
    stopping, stopped = threading.Event(), threading.Event()

    def stop() -> None:
        stopping.set()
        assert stopped.wait(LONG_S)

    plant.supervisors[0].stop = stop  # type: ignore[method-assign]
    plant.supervisors[0].restarts = 2
    plant.relieve(0, 0)
    plant.finish(0, 0)
    assert stopping.wait(LONG_S)
    assert not plant.shifts.wait_settled(0.05)
    assert plant.shifts.restarts == 2
    with pytest.raises(EngineError, match="it has been replaced"):
        plant.shifts.check(TablesQuery(0))
    stopped.set()
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.shifts.restarts == 2


# ── a new driver ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("committed", [True, False])
def test_a_new_driver_uses_no_number_again(tmp_path: Path, committed: bool) -> None:
    """What the driver before had begun and not committed had the numbers that the new one began with."""
    before = Plant(tmp_path).open()
    if committed:
        before.checkpoint(0, 30)
    before.relieve(0, 40)
    if committed:
        before.finish(0, 40)
        assert before.shifts.wait_settled(LONG_S)
    begun = before.checkpoints.next_number(1)  # its barriers are on their way
    label = before.checkpoints.first_label(1)
    before.shifts.stop()
    after = Plant(tmp_path, first_generation=2)
    after.shifts.open(after.layout)
    assert after.checkpoints.first_label(after.shifts.current.number) > max(begun, label)
    assert after.shifts.start_of(StartQuery(2, *SLOT)) == (Start({"at": 40}, sent=40) if committed else Start())
    assert after.recovered == [(2, 2 if committed else 0)]
    after.shifts.stop()


def test_pools_that_cannot_be() -> None:
    topology = Topology("t", pool=3)
    topology.operator("o", print, inputs=topology.source("s"))
    check_pools(topology, {"o": [0, 2]}, {"o": (2,)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[1\], beyond: \[3\]"):
        check_pools(topology, {"o": [0, 3]}, {"o": (0, 1)})
    with pytest.raises(InputError, match=r"operator 'o'.*missing: \[0\]"):
        check_pools(topology, {}, {"o": (0,)})
