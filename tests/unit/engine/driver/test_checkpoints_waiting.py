"""Who waits for a checkpoint: for one at once, and for the last one of a shift."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.engine.protocol.progress import Phase
from penstock.errors import EngineError
from tests.waiting import LONG_S, until

from .checkpoints_plant import TIMEOUT_S, Plant


@pytest.fixture
def plant(idle: Plant) -> Plant:
    return idle


class Asking:
    """A question that waits, in a thread of its own."""

    def __init__(self, ask: Any) -> None:
        self.answer: Any = None
        self._ask = ask
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.answer = self._ask()
        except Exception as error:
            self.answer = error

    @property
    def waits(self) -> bool:
        self._thread.join(0.1)
        return self._thread.is_alive()

    def done(self) -> Any:
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        return self.answer


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_at_once_is_over_when_it_is_shown(live: Plant) -> None:
    asking = Asking(lambda: live.checkpoints.now(30.0))
    until(lambda: live.barrier == 1)
    live.say(1)
    assert live.last == 1
    assert asking.waits
    live.say(1, shown=1)
    assert asking.done() is True


def test_one_that_was_under_way_is_too_early(live: Plant) -> None:
    """What was sent after its barriers is not in it."""
    live.begin()
    asking = Asking(lambda: live.checkpoints.now(30.0))
    live.say(1, shown=1)
    until(lambda: live.barrier == 2)
    assert asking.waits
    live.say(2, shown=2)
    assert asking.done() is True


def test_one_at_once_is_tried_again_when_it_is_given_up(live: Plant) -> None:
    asking = Asking(lambda: live.checkpoints.now(30.0))
    until(lambda: live.barrier == 1)
    live.checkpoints.abandon()
    until(lambda: live.barrier == 2)
    live.say(2, shown=2)
    assert asking.done() is True


def test_one_that_nobody_has_shown_is_not_enough(live: Plant) -> None:
    """The attempt died between the record and the sinks' commit."""
    asking = Asking(lambda: live.checkpoints.now(30.0))
    until(lambda: live.barrier == 1)
    live.say(1)
    live.checkpoints.abandon()
    until(lambda: live.barrier == 2)
    assert asking.waits
    live.say(2, shown=2)
    assert asking.done() is True


def test_the_time_may_be_over_first(live: Plant) -> None:
    assert not live.checkpoints.now(0.1)
    live.say(1)
    assert not live.checkpoints.now(0.1)  # committed, and not shown
    live.shift = None
    live.say(1, shown=1)
    assert not live.checkpoints.now(0.1)  # nobody to send a barrier


def test_nobody_waits_any_more_at_the_end(live: Plant) -> None:
    asking = Asking(lambda: live.checkpoints.now(30.0))
    until(lambda: live.barrier == 1)
    live.checkpoints.stop()
    assert asking.done() is False


# ── the last one of a shift ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_last_one_stops_the_sources_and_takes_as_long_as_it_takes(plant: Plant) -> None:
    round_ = plant.checkpoints.last_of(plant.shifts[0], 1.0)
    assert (plant.barrier, plant.phases.current.of(0).phase) == (round_.number, Phase.HALTED)
    plant.look(after_s=100 * TIMEOUT_S)
    assert not plant.checkpoints.wait_over(round_, 0.0)
    plant.say(round_.number)
    assert not plant.checkpoints.wait_over(round_, 0.0)  # it is committed, and not shown
    plant.say(round_.number, shown=round_.number)
    assert plant.checkpoints.wait_over(round_, 0.0)
    assert plant.last == round_.number


def test_it_takes_the_place_of_one_under_way(plant: Plant) -> None:
    number = plant.begin()
    round_ = plant.checkpoints.last_of(plant.shifts[0], 1.0)
    assert round_.number == number + 1
    assert plant.phases.current.given_up == number
    plant.say(number)
    assert plant.last == 0


def test_it_waits_until_the_one_before_is_shown(live: Plant) -> None:
    """It took its place: two checkpoints were committed before a sink had shown the first."""
    number = live.begin()
    live.say(number)
    asking = Asking(lambda: live.checkpoints.last_of(live.shifts[0], 30.0))
    assert asking.waits
    live.say(number, shown=number)
    assert asking.done().number == number + 1


def test_sinks_that_do_not_show_the_one_before_keep_the_shift(plant: Plant) -> None:
    number = plant.begin()
    plant.say(number)
    with pytest.raises(EngineError) as caught:
        plant.checkpoints.last_of(plant.shifts[0], 0.05)
    assert str(caught.value) == "pools stay as they are: sinks did not show checkpoint 1 within 0.05 s: count, s, store"
    assert plant.phases.current.of(0).phase is Phase.SENDING


def test_a_last_one_that_is_cancelled_is_given_up(plant: Plant) -> None:
    round_ = plant.checkpoints.last_of(plant.shifts[0], 1.0)
    plant.checkpoints.cancel(round_)
    assert plant.phases.current.given_up == round_.number
    assert not plant.checkpoints.wait_over(round_, 0.0)
    following = plant.begin()
    plant.checkpoints.cancel(round_)  # it is over
    plant.say(following)
    assert plant.last == following == round_.number + 1
