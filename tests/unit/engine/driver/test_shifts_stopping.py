"""Sources that the user stops while shifts die, or take over from each other."""

from __future__ import annotations

import threading

import pytest

from penstock.engine.driver import shifts as module
from penstock.engine.protocol.messages import Start
from penstock.engine.protocol.progress import Phase
from tests.waiting import LONG_S, until

from .shifts_plant import Plant


@pytest.fixture
def plant(shifting: Plant) -> Plant:
    return shifting


def test_sources_that_were_stopped_stay_stopped_in_the_next_shift(plant: Plant) -> None:
    plant.shifts.stop_sources()
    plant.relieve(0, 9)
    assert plant.at_work == (1, Phase.HALTED)
    assert plant.begin(1) == Start({"at": 9}, sent=9)


def test_sources_that_are_stopped_while_a_shift_takes_over_stay_stopped(plant: Plant) -> None:
    """The end of the pause let them send again."""
    taking = plant.take_over()
    plant.be_ready(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.shifts.stop_sources()
    plant.halt(0, 40)
    assert taking.done().error is None
    assert plant.at_work == (1, Phase.HALTED)


def test_sources_that_are_stopped_stay_stopped_when_a_take_over_fails(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.3)
    taking = plant.take_over()
    plant.be_ready(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.shifts.stop_sources()
    assert "sources did not stop" in str(taking.done().error)
    assert plant.at_work == (0, Phase.HALTED)
    plant.checkpoint(0, 5)  # those of sources that stand still, too


def test_a_shift_that_dies_while_it_is_stopped_sends_again_what_it_had_sent(plant: Plant) -> None:
    """It sent nothing more, its zeros took the place of its counters, and the run was taken to be finished."""
    plant.checkpoint(0, 25)
    plant.shifts.stop_sources()
    plant.report(0, sent=40, done=33)
    assert plant.shifts.all_sent()
    plant.supervisors[0].die()
    assert not plant.shifts.all_sent()  # not all of its replicas are there again
    assert plant.begin(0) == Start({"at": 25}, sent=25, owed=40)
    plant.report(0)
    assert not plant.shifts.all_sent()
    plant.report(0, sent=14)
    assert not plant.shifts.all_sent()
    plant.report(0, sent=15, done=12)
    assert plant.shifts.all_sent()


def test_a_slot_that_has_not_heard_that_it_is_to_stop_may_still_send(plant: Plant) -> None:
    """On a busy machine a slot that had polled was not run for a while: all was taken for done, and then it sent."""
    plant.report(0, sent=40, done=40)
    plant.shifts.stop_sources()
    assert not plant.shifts.all_sent()
    plant.report(0, sent=45, done=40)
    assert plant.shifts.all_sent()
    plant.supervisors[0].die()
    plant.report(0, sent=45)
    assert plant.shifts.all_sent()


def test_a_slot_that_stood_still_for_a_take_over_that_failed_is_heard_anew(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HALT_WITHIN_S", 0.3)
    taking = plant.take_over()
    plant.be_ready(1)
    until(lambda: plant.at_work[1] is Phase.HALTED)
    plant.report(0, sent=5)
    assert taking.done().error is not None
    plant.report(0, sent=7)
    plant.shifts.stop_sources()
    assert not plant.shifts.all_sent()
    plant.report(0, sent=8)
    assert plant.shifts.all_sent()


def test_what_was_heard_of_any_attempt_is_sent_again(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.supervisors[0].die()
    plant.report(0, sent=5)
    plant.supervisors[0].die()
    plant.report(0, sent=20)
    plant.shifts.stop_sources()
    assert plant.begin(0) == Start(owed=40)
    assert not plant.shifts.all_sent()
    plant.report(0, sent=40)
    assert plant.shifts.all_sent()


def test_what_a_straggler_says_to_have_sent_is_not_waited_for(plant: Plant) -> None:
    plant.report(0, sent=40)
    plant.supervisors[0].die()
    plant.report(0, sent=99, generation=0)
    plant.supervisors[0].die()
    assert plant.begin(0) == Start(owed=40)


def test_a_shift_that_has_caught_up_owes_nothing(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.supervisors[0].die()
    plant.report(0)
    plant.checkpoint(0, 60)
    plant.shifts.stop_sources()
    plant.report(0, sent=60)
    assert plant.shifts.all_sent()


def test_what_a_shift_owed_its_successor_owes(plant: Plant) -> None:
    plant.report(0, sent=40, done=33)
    plant.supervisors[0].die()
    plant.report(0, sent=5)
    plant.relieve(0, 5)
    plant.shifts.stop_sources()
    assert plant.begin(1) == Start({"at": 5}, sent=5, owed=40)
    plant.finish(0, 5)
    assert plant.shifts.wait_settled(LONG_S)
    assert not plant.shifts.all_sent()
    plant.report(1, sent=35)
    assert plant.shifts.all_sent()


def test_not_all_is_sent_while_a_shift_finishes(plant: Plant) -> None:
    """If it dies, the next one sends again what it has not done."""
    plant.report(0, sent=40, done=33)
    plant.relieve(0, 40)
    assert not plant.shifts.all_sent()
    plant.finish(0, 40)
    assert plant.shifts.wait_settled(LONG_S)
    assert plant.shifts.all_sent()


def test_a_source_has_ended_when_the_shift_at_work_says_so(plant: Plant) -> None:
    slot = plant.tally._shifts[0].ended
    assert not plant.shifts.all_read()
    plant.report(0, sent=40)
    slot["s", 0] = True
    assert plant.shifts.all_read()
    plant.supervisors[0].die()
    assert not plant.shifts.all_read()
    plant.report(0)
    assert not plant.shifts.all_read()  # the next attempt has to read all again


# ── the last checkpoint of a run ────────────────────────────────────────────────────────────────────────────────────


class Asking:
    """Whether all is in a checkpoint, asked in a thread of its own."""

    def __init__(self, plant: Plant) -> None:
        self.answers: list[bool] = []
        self._thread = threading.Thread(target=lambda: self.answers.append(plant.shifts.checkpoint_now(30.0)))
        self._thread.start()

    @property
    def waits(self) -> bool:
        self._thread.join(0.1)
        return self._thread.is_alive()

    def done(self) -> bool:
        self._thread.join(LONG_S)
        (answer,) = self.answers
        return answer


def test_all_is_in_a_checkpoint_when_what_was_sent_is_in_it(plant: Plant) -> None:
    plant.report(0, sent=40, done=40)
    asking = Asking(plant)
    until(lambda: plant.phases.current.of(0).barrier == 1)
    plant.complete(0, 40)
    assert asking.done()


def test_a_checkpoint_of_an_attempt_that_has_not_caught_up_is_not_the_last_one(plant: Plant) -> None:
    """A query that died in the last second of a stream was committed before it had sent all again, and closed."""
    plant.report(0, sent=40, done=40)
    plant.shifts.stop_sources()
    asking = Asking(plant)
    until(lambda: plant.phases.current.of(0).barrier == 1)
    plant.supervisors[0].die()
    plant.report(0, sent=10)
    until(lambda: plant.phases.current.of(0).barrier == 2)
    plant.complete(0, 10)
    assert asking.waits
    until(lambda: plant.phases.current.of(0).barrier == 3)
    plant.complete(0, 40)
    assert asking.done()


def test_the_time_may_be_over_before_all_is_in_a_checkpoint(plant: Plant) -> None:
    assert not plant.shifts.checkpoint_now(0.1)
