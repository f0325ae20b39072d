"""Checkpoints: when they begin, what commits them, what gives them up, and what their records hold."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest

from penstock.engine.driver import checkpoints as module
from penstock.engine.driver.checkpoints import Round, made_record
from penstock.engine.driver.records import Record
from penstock.engine.protocol.messages import Done, Reports, StateReport
from penstock.engine.protocol.progress import Phase, first_batch
from penstock.state.segments import Segment
from tests.waiting import LONG_S, until

from .checkpoints_plant import EVERY_S, FIRST, SECOND, SINK, SLOT, TIMEOUT_S, Plant


@pytest.fixture
def plant(idle: Plant) -> Plant:
    return idle


# ── from barrier to record ──────────────────────────────────────────────────────────────────────────────────────────


def test_one_begins_when_it_is_due_and_its_shift_is_ready(plant: Plant) -> None:
    plant.look(after_s=EVERY_S - 1)
    assert plant.barrier == 0
    plant.shift = None
    plant.look(after_s=EVERY_S + 1)
    assert plant.barrier == 0
    plant.shift = plant.shifts[0]
    plant.look(after_s=EVERY_S + 2)
    assert (plant.barrier, plant.phases.current.of(0).phase) == (1, Phase.SENDING)
    assert plant.last == 0


def test_after_a_fault_one_begins_soon(plant: Plant) -> None:
    plant.look(after_s=EVERY_S / 4)
    assert plant.barrier == 0
    plant.checkpoints.soon()
    plant.look(after_s=EVERY_S / 2)
    assert plant.barrier == 1


def test_it_is_committed_when_all_replicas_have_said_its_number(plant: Plant) -> None:
    number = plant.commit() + 1
    assert plant.begin() == number
    plant.say(number, SLOT, FIRST, SECOND, shown=number - 1)
    plant.say(number - 1, SINK)  # of the last one
    plant.say(number, SINK, generation=7)  # of another attempt
    assert plant.last == number - 1
    plant.say(number, SINK)
    assert plant.last == number
    assert plant.checkpoints.status.number == number
    assert (plant.checkpoints.status.committed, plant.checkpoints.status.given_up) == (2, 0)


def test_its_age_and_size_are_known(plant: Plant) -> None:
    """A checkpoint takes as long as the longest queue: how old the last one is says what would be done again."""
    assert plant.checkpoints.status.every_s == EVERY_S
    plant.checkpoints._since_s -= 30.0
    assert 30.0 <= plant.checkpoints.status.age_s < 30.0 + LONG_S, "since they began"
    number = plant.begin()
    plant.say(number, SLOT, SECOND, SINK)
    older, newer = Segment(number - 1, 0, 0, 500), Segment(number, 0, 0, 1200)
    plant.say(number, FIRST, segments=[older, newer], oldest=0)
    status = plant.checkpoints.status
    assert (status.number, status.committed) == (number, 1)
    assert 0.0 <= status.age_s < LONG_S
    record = (plant.folder / f"{number}.json").stat().st_size
    assert status.size_bytes == record + 1200, "what was there before was not written for it"
    plant.checkpoints._since_s -= 30.0
    assert plant.checkpoints.status.age_s >= 30.0


def test_the_next_does_not_begin_before_all_have_shown_the_last(plant: Plant) -> None:
    number = plant.begin()
    plant.say(number)
    plant.say(number, SLOT, FIRST, SECOND, shown=number)
    plant.checkpoints._due_s = 0.0
    plant.look(after_s=1000.0)
    assert plant.barrier == number
    plant.say(number, SINK, shown=number)
    assert plant.begin() == number + 1


def test_the_next_is_due_so_long_after_the_last_was_committed(plant: Plant) -> None:
    number = plant.begin()
    for one in (SLOT, FIRST, SECOND, SINK):
        plant.checkpoints.hear([Done(0, *one, number, shown=number)])
    plant.look(after_s=5.0)
    plant.look(after_s=5.0)
    plant.look(after_s=5.0 + EVERY_S - 0.1)
    assert plant.barrier == number
    plant.look(after_s=5.0 + EVERY_S + 0.1)
    assert plant.barrier == number + 1


def test_what_was_counted_at_the_barrier_counts_after_a_restart(plant: Plant) -> None:
    number = plant.commit()
    plant.tally.restart(0, generation=1)
    active = {"count": (0, 1), "store": (0,)}
    assert plant.tally.counters(0.0, active).operators["count"].total.processed == 2 * number


def test_one_that_takes_too_long_is_given_up_and_the_next_covers_it(
    plant: Plant, caplog: pytest.LogCaptureFixture
) -> None:
    number = plant.begin()
    plant.say(number, SLOT, FIRST)
    plant.look(after_s=TIMEOUT_S / 2)
    assert caplog.messages == []
    plant.look(after_s=TIMEOUT_S + 0.1)
    assert caplog.messages == [f"checkpoint {number}: given up: not done after 60 s; it waited for count/1, store/0"]
    assert plant.phases.current.given_up == number
    assert plant.checkpoints.status.given_up == 1
    plant.say(number)  # too late
    assert plant.last == 0
    assert plant.commit() == plant.last == number + 1


def test_a_full_disk_puts_it_off(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    number = plant.begin()

    def full(record: Record) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(plant.checkpoints.records, "write", full)
        with pytest.raises(OSError, match="No space left"):
            plant.say(number)
        assert plant.last == 0
    plant.look()
    assert plant.last == number


def test_a_full_disk_is_not_told_fifty_times_a_second(
    live: Plant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "TRY_AGAIN_S", 0.2)

    def full(record: Record) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(live.checkpoints.records, "write", full)
        with pytest.raises(OSError, match="No space left"):
            live.say(live.begin())
        until(lambda: len(caplog.messages) >= 2)
        time.sleep(0.3)
        assert len(caplog.messages) <= 4
    until(lambda: live.phases.current.committed == 1)


def test_none_is_committed_after_the_end(live: Plant) -> None:
    """A new driver may be at work in the folder."""
    number = live.begin()
    with live.checkpoints._lock:  # the thread waits to look
        for one in (SLOT, FIRST, SECOND, SINK):
            live.checkpoints.hear([Done(0, *one, number)])
        time.sleep(0.05)
        live.checkpoints.stop()
    until(lambda: not [one for one in threading.enumerate() if one.name == "penstock-checkpoints"])
    assert live.last == 0


# ── attempts that die ───────────────────────────────────────────────────────────────────────────────────────────────


def test_one_whose_attempt_dies_is_given_up_at_once(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    number = plant.begin()
    plant.say(number, SLOT, FIRST, SECOND)
    plant.shifts[0].supervisor.generation = 5
    plant.say(number, SINK)  # the attempt is over: another may have begun from the record before
    assert plant.last == 0
    assert caplog.messages == [f"checkpoint {number}: given up: the query died"]
    assert plant.begin() == number + 1
    plant.say(number + 1, generation=5)
    assert plant.last == number + 1


def test_what_is_abandoned_is_never_committed(plant: Plant) -> None:
    number = plant.begin()
    plant.checkpoints.abandon()
    plant.say(number)
    assert plant.last == 0
    assert not plant.held
    plant.checkpoints.abandon()  # nothing is on its way
    assert plant.checkpoints.status.given_up == 1


def test_one_that_was_committed_when_its_attempt_died_stays_so(plant: Plant) -> None:
    """What was not shown is up to the sinks' recovery: nobody is left to be waited for."""
    number = plant.begin()
    plant.say(number)
    plant.checkpoints.abandon()
    assert plant.last == number
    assert plant.checkpoints.status.given_up == 0
    assert plant.begin() == number + 1


# ── key groups ──────────────────────────────────────────────────────────────────────────────────────────────────────


def moved(plant: Plant, version: int) -> None:
    said = [StateReport("count", replica, 0, version, version) for replica in (0, 1)]
    plant.handovers.hear(Reports("here", 1, 0, [], state=said))


def test_none_begins_while_key_groups_move_and_none_moves_while_one_goes_on(plant: Plant) -> None:
    plant.routing.activate("count", 2)
    assert plant.begin() == 0
    moved(plant, 2)
    plant.look()
    assert plant.barrier == 1
    plant.routing.activate("count", 1)
    table = plant.routing.current.operators["count"].table
    assert table is not None
    assert table.version == 2
    plant.say(1)
    table = plant.routing.current.operators["count"].table
    assert table is not None
    assert table.version == 3


def test_key_groups_may_move_again_when_one_is_given_up(plant: Plant) -> None:
    plant.begin()
    assert plant.held
    plant.look(after_s=TIMEOUT_S + 1)
    assert not plant.held


def test_a_change_of_owners_does_not_wait_for_a_long_checkpoint_every_other_time(plant: Plant) -> None:
    """Replicas were to be added because events waited, and the change waited for the barriers behind these events."""
    plant.begin()
    plant.routing.activate("count", 2)
    plant.look(after_s=module.YIELD_S / 2)
    assert plant.held
    plant.look(after_s=module.YIELD_S + 0.1)
    assert not plant.held
    assert plant.checkpoints.status.given_up == 1
    moved(plant, 2)
    plant.begin()
    plant.routing.activate("count", 1)
    plant.look(after_s=module.YIELD_S + 0.1)
    assert plant.held  # it is this one's turn


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_grow_and_none_is_used_again(plant: Plant) -> None:
    assert plant.checkpoints.first_label(0) == 1
    given = [plant.commit(), plant.begin()]
    plant.checkpoints.abandon()
    assert plant.checkpoints.first_label(0) == 3  # of the events that the next attempt begins with
    given += [plant.commit()]
    assert given == [1, 2, 3]
    assert plant.checkpoints.first_label(1) == first_batch(1) + 1
    plant.shift = plant.shifts[1]
    plant.checkpoints._due_s = 0.0
    plant.look()
    assert plant.phases.current.of(1).barrier == first_batch(1) + 1


def test_a_new_driver_goes_on_behind_the_last_record(plant: Plant, tmp_path: Path) -> None:
    plant.commit()
    number = plant.commit()
    after = Plant(tmp_path)
    assert after.phases.current.committed == number
    assert after.checkpoints.first_label(0) == number + 1
    assert after.begin() == number + 1
    after.checkpoints.stop()


# ── what a record holds ─────────────────────────────────────────────────────────────────────────────────────────────


def going(plant: Plant, number: int, **by_replica: Done) -> Round:
    done = {(one.operator, one.replica): one for one in by_replica.values()}
    return Round(number, plant.shifts[0], 3, 0.0, False, frozenset(done), done)


def kept(before: Record | None, made: Round) -> list[Segment]:
    return made_record(made, before).state.get("count", [])


def test_cursors_counts_and_parts_are_in_it(plant: Plant) -> None:
    done = {
        "slot": Done(3, *SLOT, 7, cursor={"p": 4}, sent=44),
        "sink": Done(3, *SINK, 7, part="a.jsonl"),
        "first": Done(3, *FIRST, 7),
    }
    made = made_record(going(plant, 7, **done), None)
    assert (made.number, made.generation) == (7, 3)
    assert made.start(SLOT) == ({"p": 4}, 44)
    assert (made.parts, made.state) == ({"store": {0: "a.jsonl"}}, {})
    assert time.time() - made.at_s < 60


def test_segments_of_checkpoints_that_were_given_up_are_in_it(plant: Plant) -> None:
    """A replica writes what has changed since its last segment, whether that was committed or not."""
    five, six, seven = (Segment(number, 3, 0, 10, 1) for number in (5, 6, 7))
    before = made_record(going(plant, 5, first=Done(3, *FIRST, 5, segments=[five], oldest=5)), None)
    after = going(plant, 7, first=Done(3, *FIRST, 7, segments=[six, seven], oldest=5))
    assert kept(before, after) == [five, six, seven]


def test_segments_that_no_replica_needs_are_not_in_it(plant: Plant) -> None:
    old, newer = Segment(4, 3, 0, 10, 1), Segment(5, 3, 1, 10, 1)
    before = Record(number=5, generation=3, at_s=0.0, cursors={}, sent={}, state={"count": [old, newer]})
    first = Done(3, *FIRST, 7, segments=[Segment(7, 3, 0, 1, 1)], oldest=7)
    second = Done(3, *SECOND, 7, oldest=5)
    assert kept(before, going(plant, 7, a=first, b=second)) == [newer, Segment(7, 3, 0, 1, 1)]
    second = Done(3, *SECOND, 7, oldest=4)
    assert kept(before, going(plant, 7, a=first, b=second)) == [old, newer, Segment(7, 3, 0, 1, 1)]


def test_state_that_did_not_change_stays_in_it(plant: Plant) -> None:
    old = Segment(4, 3, 0, 10, 1)
    before = Record(number=5, generation=3, at_s=0.0, cursors={}, sent={}, state={"count": [old]})
    assert kept(before, going(plant, 7, a=Done(3, *FIRST, 7, oldest=4), b=Done(3, *SECOND, 7, oldest=7))) == [old]


def test_files_that_no_record_needs_are_removed(plant: Plant) -> None:
    """Those of the record before stay: that one is kept, too; and so do those of checkpoints yet to come."""

    def segment(number: int, replica: int = 0) -> Segment:
        return plant.files.write(Segment(number, 0, replica), [(0, True, b"state")])

    abandoned = segment(1, replica=1)
    for number in (1, 2, 3):
        assert plant.begin() == number
        mine = segment(number)
        plant.say(number, SLOT, SECOND, SINK, oldest=number)
        plant.say(number, FIRST, segments=[mine], oldest=number)
        plant.say(number, shown=number)
        if number == 1:
            assert abandoned.name in {one.name for one in plant.files.found()}
    ahead = segment(9)
    assert sorted(one.name for one in plant.files.found()) == ["2.0.0", "3.0.0", ahead.name]


def test_nothing_is_logged_when_all_goes_well(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        plant.commit()
    assert caplog.messages == []
