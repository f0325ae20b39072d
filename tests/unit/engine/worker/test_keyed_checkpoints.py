"""A replica with state at checkpoints: what is kept, when, and what the driver is told."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

from penstock.engine.worker import keyed_replica
from penstock.state.codec import Codec
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.keyed_state import KeyedState
from penstock.state.segments import Segment
from tests.waiting import LONG_S

from .keyed_world import GROUPS, World, barrier, counts, of, switch, word_of


def test_a_barrier_has_the_state_so_far_kept_and_the_driver_told(world: World) -> None:
    world.run(of(0, 1, 0), barrier(7), world.awaits(7), of(0))
    done = world.done(7)
    assert [segment.name for segment in done.segments] == ["7.0.0"]
    world.files.check(done.segments)
    assert (done.oldest, done.generation) == (7, 0)
    assert done.counters is not None
    assert (done.counters.processed, done.counters.sent) == (3, {"end": 3})


def test_an_attempt_goes_on_from_the_last_checkpoint(world: World) -> None:
    """What came after it is done again."""
    assert counts(world.run(of(0, 1, 0), barrier(7), world.awaits(7), of(0, 0, 1))) == [1, 1, 2, 3, 4, 2]
    world.restart(world.done(7))
    assert counts(world.run(of(0, 1), generation=1)) == [3, 2]


def test_the_state_is_that_of_the_barrier_though_events_go_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are encoded one by one between events; one that an event is about to change, before that."""
    monkeypatch.setattr(keyed_replica, "MOVE_S", 0.0)
    world.table = Table(1, (0, 0, 0, 0))
    made: list[int] = []
    make_part = keyed_replica.KeyedReplica._make_part

    def noted(replica: keyed_replica.KeyedReplica, group: int) -> None:
        if group in replica._unwritten:
            made.append(group)
        make_part(replica, group)

    monkeypatch.setattr(keyed_replica.KeyedReplica, "_make_part", noted)
    left = world.run(of(0, 1, 2, 3), [barrier(7), of(3, 3, 2)], world.awaits(7))
    assert counts(left) == [1, 1, 1, 1, 2, 3, 2]
    assert made in ([0, 3, 2, 1], [0, 3, 1, 2])  # on a busy machine one more is encoded between the events
    world.restart(world.done(7))
    assert counts(world.run(of(0, 1, 2, 3), generation=1)) == [2, 2, 2, 2]


def test_events_that_waited_for_a_barrier_do_not_wait_for_the_state_to_be_encoded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else arrived, so that the replica made all parts of the checkpoint before it looked at what it held."""
    monkeypatch.setattr(keyed_replica, "MOVE_S", 0.0)
    world.table = Table(1, (0, 0, 0, 0))
    left_to_make: list[int] = []
    process = keyed_replica.KeyedReplica.process

    def noted(replica: keyed_replica.KeyedReplica, call: keyed_replica.Call) -> Any:
        left_to_make.append(len(replica._unwritten))
        return process(replica, call)

    monkeypatch.setattr(keyed_replica.KeyedReplica, "process", noted)
    held = [barrier(7), of(3), of(3), of(3)]

    def holds() -> None:
        world.tools.until(lambda: world.replica._inbox._taken == 3)

    world.run(held, holds, barrier(7, replica=1), world.awaits(7), slots=2)
    assert left_to_make == [3, 1, 0]


def test_events_go_on_while_a_segment_is_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, write = threading.Event(), StateFiles.write

    def slow(files: StateFiles, segment: Segment, parts: Any) -> Segment:
        assert gate.wait(LONG_S)
        return write(files, segment, parts)

    def meanwhile() -> None:
        world.tools.until(lambda: world.replica._counters.processed == 3)
        assert world.driver.done("count") == []
        gate.set()

    monkeypatch.setattr(StateFiles, "write", slow)
    world.run(of(0), barrier(7), of(0, 1), meanwhile, world.awaits(7))
    done = world.done(7)
    assert done.counters is not None
    assert done.counters.processed == 1


@pytest.mark.parametrize("seed", range(8))
def test_from_any_checkpoint_the_state_is_as_it_was(world: World, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Events and barriers in any order, without a pause: the segments up to each have what came before its barrier."""
    monkeypatch.setattr(keyed_replica, "MOVE_S", 0.0)
    draw = random.Random(seed)
    world.table = Table(1, (0, 0, 0, 0))
    steps: list[Any] = []
    counted: Counter[int] = Counter()
    expected: dict[int, Counter[int]] = {}
    for _ in range(60):
        if draw.random() < 0.15:
            expected[len(expected) + 1] = counted.copy()
            steps.append(barrier(len(expected)))
        else:
            groups = draw.choices(range(GROUPS), weights=(9, 3, 1, 0), k=draw.randint(1, 5))
            counted.update(groups)
            steps.append(of(*groups))
    at_once = [steps[n : n + 10] for n in range(0, 60, 10)]
    world.run(*at_once, barrier(99), world.awaits(99))
    expected[99] = counted
    for number, counts_then in expected.items():
        segments = sorted((one for one in world.done(99).segments if one.number <= number), reverse=True)
        state = KeyedState(Codec("count"))
        for group, found in world.files.load(range(GROUPS), segments).items():
            state.own(group, found.parts)
            assert state.value(group, word_of(group), 0.0).get("count", 0) == counts_then[group]


def test_what_a_checkpoint_does_not_change_is_not_written_again(world: World) -> None:
    world.run(of(0, 0, 1), barrier(1), world.awaits(1), barrier(2), world.awaits(2), of(0), barrier(3), world.awaits(3))
    assert world.done(2).segments == world.done(1).segments
    assert [segment.name for segment in world.done(3).segments] == ["1.0.0", "3.0.0"]
    assert [world.done(number).oldest for number in (1, 2, 3)] == [1, 1, 1]
    world.restart(world.done(3))
    assert counts(world.run(of(0, 1), generation=1)) == [4, 2]


def test_segments_are_told_until_they_are_known_to_be_committed(world: World) -> None:
    """Checkpoint 1 is given up after the replica has written its part: the next one stands on it."""

    def committed() -> None:
        world.tell(5, committed=2, given_up=1)
        world.tools.until(lambda: world.driver.done("count")[-1].shown == 2)

    steps = [of(0), barrier(1), world.awaits(1), of(0), barrier(2), world.awaits(2), committed]
    world.run(*steps, of(0), barrier(3), world.awaits(3))
    told = {number: [segment.number for segment in world.done(number).segments] for number in (1, 3)}
    two = next(one for one in world.driver.done("count") if one.number == 2)
    assert [segment.number for segment in two.segments] == [1, 2]
    assert told == {1: [1], 3: [3]}


def test_a_segment_that_cannot_be_written_ends_the_replica_though_the_next_one_can(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one had changes only: with the first lost unseen, a restart would have lost what was in it."""
    gate, write = threading.Event(), StateFiles.write

    def full(files: StateFiles, segment: Segment, parts: Any) -> Segment:
        if segment.number == 1:
            assert gate.wait(LONG_S)
            raise OSError("no space left on device")
        return write(files, segment, parts)

    def both_are_on_their_way() -> None:
        world.tools.until(lambda: world.replica._unsaid.number == 2)
        gate.set()
        world.tools.until(lambda: (world.folder / "2.0.0").exists())

    monkeypatch.setattr(StateFiles, "write", full)
    with pytest.raises(OSError, match="no space left"):
        world.run(of(0), barrier(1), of(0), barrier(2), both_are_on_their_way, of(0))


def test_a_checkpoint_in_the_midst_of_a_move_is_not_made(world: World) -> None:
    """The driver lets moves come to an end first; should it ever not, the checkpoint is given up."""

    def change() -> None:
        world.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1)))

    def passed_on() -> None:
        world.tools.until(lambda: world.replica._unsaid.number == 7)

    world.run(of(0, 1), change, of(0), barrier(7), passed_on, switch(2), of(0))
    assert world.driver.done("count") == []
    assert world.files.found() == []


def test_nothing_of_what_was_written_is_kept_in_memory(world: World) -> None:
    """Encoded, the state was here a second time until the next checkpoint."""
    world.run(of(0, 1), barrier(7), world.awaits(7))
    assert world.replica._stateful._parts == []
