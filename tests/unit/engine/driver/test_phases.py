"""From phase to phase: what shifts are told, what the user has stopped, and up to where checkpoints have come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.driver.phases import Phases, Shift
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.progress import Phase, ShiftState
from penstock.topology import Topology

from ..made import Published


class Two:
    """A shift at work, and the next."""

    def __init__(self) -> None:
        topology = Topology("t", pool=2)
        topology.operator("o", print, inputs=topology.source("s"))
        supervisor: Any = SimpleNamespace(generation=0)
        layout = lay_out(topology, {"o": [0, 1]})
        self.published = Published()
        self.phases = Phases(self.published)
        self.last, self.following = (Shift(number, layout, supervisor) for number in (0, 1))
        self.phases.open(self.last)

    @property
    def now(self) -> list[str]:
        """What the last shift does, and the next."""
        return [self.phases.current.of(number).phase.value for number in (0, 1)]


@pytest.fixture
def two() -> Two:
    return Two()


def test_a_shift_from_its_start_to_its_end(two: Two) -> None:
    seen = [two.now]
    for step in (
        lambda: two.phases.pause(4),
        lambda: two.phases.take_over(two.last, two.following),
        lambda: two.phases.end(two.last),
    ):
        step()
        seen.append(two.now)
    assert seen == [["sending", "starting"], ["halted", "starting"], ["finishing", "sending"], ["over", "sending"]]
    assert [one.version for one in two.published] == list(range(2, 6))


def test_who_belongs_to_a_shift(two: Two) -> None:
    assert two.last.source_slots == {("s", 0)}
    assert two.last.replicas == {("s", 0), ("o", 0), ("o", 1)}


def test_the_next_may_process_in_order_when_the_last_is_over(two: Two) -> None:
    two.phases.pause(4)
    two.phases.take_over(two.last, two.following)
    assert not two.phases.current.is_turn_of(1)
    two.phases.end(two.last)
    assert two.phases.current.is_turn_of(1)


def test_a_shift_that_finishes_keeps_its_last_barrier(two: Two) -> None:
    """A slot that hears of both at once has still to send it."""
    two.phases.pause(4)
    two.phases.take_over(two.last, two.following)
    assert two.phases.current.of(0) == ShiftState(Phase.FINISHING, 4)
    assert two.phases.current.of(1) == ShiftState(Phase.SENDING)


def test_a_shift_that_goes_on_after_all_sends_the_barrier_no_more(two: Two) -> None:
    two.phases.pause(4)
    two.phases.resume(two.last)
    assert two.phases.current.of(0) == ShiftState(Phase.SENDING)


def test_what_the_user_has_stopped_stays_so_in_the_next_shift(two: Two) -> None:
    two.phases.stop()
    two.phases.take_over(two.last, two.following)
    assert two.now == ["finishing", "halted"]
    two.phases.resume(two.following)
    assert two.now == ["finishing", "halted"]


def test_a_stop_leaves_a_shift_that_finishes_alone(two: Two) -> None:
    two.phases.pause(4)
    two.phases.take_over(two.last, two.following)
    before = two.phases.current.of(0)
    two.phases.stop()
    assert two.phases.current.of(0) == before
    assert two.now == ["finishing", "halted"]


def test_a_stop_takes_no_barrier_away(two: Two) -> None:
    two.phases.barrier(two.last, 3, {("s", 0), ("o", 1)})
    two.phases.stop()
    assert two.phases.current.of(0) == ShiftState(Phase.HALTED, 3, b"\5")


@pytest.mark.parametrize("stopped", [False, True])
def test_barriers_are_sent_by_sources_that_stand_still_too(two: Two, stopped: bool) -> None:
    if stopped:
        two.phases.stop()
    two.phases.barrier(two.last, 3, two.last.replicas)
    assert two.phases.current.of(0) == ShiftState(Phase.HALTED if stopped else Phase.SENDING, 3, b"\7")


def test_the_last_barrier_of_a_shift_goes_to_all(two: Two) -> None:
    two.phases.barrier(two.last, 3, {("s", 0), ("o", 1)})
    two.phases.pause(4)
    assert two.phases.current.of(0) == ShiftState(Phase.HALTED, 4)
    two.phases.take_over(two.last, two.following)
    assert two.phases.current.of(0) == ShiftState(Phase.FINISHING, 4)


def test_up_to_where_checkpoints_have_come(two: Two) -> None:
    two.phases.give_up(2)
    two.phases.committed(3, {})
    two.phases.give_up(1)  # heard of late
    assert (two.phases.current.committed, two.phases.current.given_up) == (3, 2)


def test_the_run_begins_and_closes(two: Two) -> None:
    two.phases.begin(12.5)
    assert (two.phases.current.epoch_s, two.phases.current.closing) == (12.5, False)
    two.phases.close()
    assert (two.phases.current.epoch_s, two.phases.current.closing) == (12.5, True)
    assert two.now == ["sending", "starting"]


class Many(Two):
    """Shift after shift; `number` is of the next checkpoint."""

    number = 0

    def do(self, doing: str) -> None:
        self.number += 1
        phases, number = self.phases, self.number
        if doing == "take_over":
            phases.take_over(self.last, self.following)
            self.last = self.following
            self.following = Shift(self.last.number + 1, self.last.layout, self.last.supervisor)
        elif doing == "barrier":
            phases.barrier(self.last, number, self.last.replicas)
        elif doing == "resume":
            phases.resume(self.last)
        elif doing == "stop":
            phases.stop()
        elif doing == "committed":
            phases.committed(number, {"end": {0: number}})
        else:
            getattr(phases, doing)(number)


DOINGS = ("pause", "resume", "barrier", "stop", "take_over", "committed", "give_up")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(DOINGS), max_size=25))
def test_what_is_stopped_stays_so_and_every_change_is_told_at_once(doings: list[str]) -> None:
    many = Many()
    for doing in doings:
        many.do(doing)
        sending = [one for one in many.phases.current.shifts.values() if one.phase is Phase.SENDING]
        assert not (many.phases.stopped and sending)
        assert many.published[-1] == many.phases.current
    versions = [one.version for one in many.published]
    assert versions == sorted(set(versions))
