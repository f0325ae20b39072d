"""A replica with state: keeps it at checkpoints, goes on from there, holds back what is not its own, gives, takes."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.engine.plan.program import Limits, MicroBatch
from penstock.engine.protocol.bundle import HASH, Barrier, Events, Header, Keys, Marker, pack, pack_sign
from penstock.engine.protocol.messages import Done, OperatorRouting, Restore, Routing
from penstock.engine.worker import keyed_replica
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.grouping import stable_hash
from penstock.state.codec import Codec
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.keyed_state import KeyedState
from penstock.state.segments import Segment
from penstock.topology import Topology

from ..made import progress

Driver = Any
Tools = SimpleNamespace
GROUPS = 4


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def words(run: Any = count, **declared: Any) -> Topology:
    topology = Topology("words", pool=3)
    counts = topology.operator(
        "count", run, inputs=topology.source("words"), **{"key": "word", "key_groups": GROUPS} | declared
    )
    topology.operator("end", print, inputs=counts)
    return topology


def word_of(group: int) -> str:
    """A word of that group."""
    return next(word for n in range(1000) if stable_hash(word := f"word {n}") % GROUPS == group)


def bundle(*events: Any, first: int = 0, born: float = 0.0) -> bytes:
    hashes = np.array([stable_hash(event["word"]) for event in events], HASH).tobytes()
    ids = [str(first + n) for n in range(len(events))]
    columns = Events(ids, [born] * len(events), list(events), Keys(0, hashes))
    return pack(Header(0, 0, 1, 0, len(events)), columns)


def of(*groups: int, first: int = 0) -> bytes:
    return bundle(*[{"word": word_of(group)} for group in groups], first=first)


def marker(version: int) -> bytes:
    return pack_sign(Header(0, 0, 1, 0, 0), Marker(version))


def barrier(number: int, replica: int = 0) -> bytes:
    return pack_sign(Header(0, replica, 1, 0, 0), Barrier(number))


class World:
    """One replica at a time, over a folder."""

    def __init__(self, driver: Driver, tools: Tools, folder: Path) -> None:
        self.driver, self.tools, self.folder = driver, tools, folder / "state" / "count"
        self.files = StateFiles(self.folder)
        self._run_folder = folder
        self.table = Table(1, (0, 0, 1, 1))
        self.topology = words()
        self.replica: Any = None
        self._published = 1

    def run(self, *steps: Any, replica: int = 0, batch: int = 1, **program: Any) -> list[tuple[str, str, int]]:
        """Work off bundles; a step that can be called is called in between. Ids, words and counts that left."""
        made = self.driver.program(self.topology, folder=str(self._run_folder), **program)
        self.driver.tables = {"count": self.table}
        self.replica = at_work = OperatorReplica(made, 1, "count", replica, batch)
        rows = list(at_work.run(self.batches(steps)))
        left = self.tools.left(*rows)
        return [
            (event_id, event["word"], event["count"]) for event_id, event in zip(left.ids, left.events, strict=True)
        ]

    def micro_batch(self, *steps: Any, batch: int, **program: Any) -> list[tuple[str, str, int]]:
        return self.run(*steps, batch=batch, active={"count": (0,)}, microbatch=MicroBatch(batch, "words"), **program)

    def batches(self, steps: Any) -> Iterator[Any]:
        for step in steps:
            if callable(step):
                step()
            else:
                yield self.tools.Batch([step] if isinstance(step, bytes) else step)

    def publish(self, table: Table) -> None:
        """Tell the replica of a table, and wait until it follows it: its process alone may have heard first."""
        self._published += 1
        routing = {"count": OperatorRouting((0,), table=table), "end": OperatorRouting((0,))}
        self.driver.server.publish(Routing(self._published, routing))
        self.tools.until(lambda: getattr(self.replica._stateful, "_side", None) and self.follows(table))

    def follows(self, table: Table) -> bool:
        return bool(self.replica._stateful._side._table == table)

    def tell(self, version: int, **changes: Any) -> None:
        """Tell the replica how far checkpoints are, and wait until it has looked."""
        self.driver.server.publish(progress(version, **changes))
        self.tools.until(lambda: self.replica._heard is not None and self.replica._heard.version == version)

    def done(self, number: int, replica: int = 0) -> Done:
        """What the replica said of a checkpoint, once it has."""

        def said() -> list[Done]:
            return [one for one in self.driver.done("count", replica) if one.number == number]

        found: list[Done] = self.tools.until(said)
        return found[-1]

    def awaits(self, number: int, replica: int = 0) -> Callable[[], Done]:
        return lambda: self.done(number, replica)

    def restart(self, *done: Done) -> None:
        """Whoever starts from now on goes on from that checkpoint."""
        segments = sorted(segment for one in done for segment in one.segments)
        self.driver.restores["count"] = Restore(done[0].number, segments)


@pytest.fixture
def world(driver: Driver, tools: Tools, tmp_path: Path) -> Iterator[World]:
    yield World(driver, tools, tmp_path)
    keyed_replica.forget_all()


def counts(left: list[tuple[str, str, int]]) -> list[int]:
    return [count for _, _, count in left]


# ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
    assert made == [0, 3, 2, 1]
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
        assert gate.wait(30)
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
            assert gate.wait(30)
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

    world.run(of(0, 1), change, of(0), barrier(7), passed_on, marker(2), of(0))
    assert world.driver.done("count") == []
    assert world.files.found() == []


def test_nothing_of_what_was_written_is_kept_in_memory(world: World) -> None:
    """Encoded, the state was here a second time until the next checkpoint."""
    world.run(of(0, 1), barrier(7), world.awaits(7))
    assert world.replica._stateful._parts == []


# ── starting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_replica_loads_what_it_now_owns(world: World) -> None:
    world.run(of(0, 0, 1), barrier(7), world.awaits(7))
    world.restart(world.done(7))
    world.table = Table(2, (1, 0, 1, 1))
    assert counts(world.run(of(0), replica=1, generation=1)) == [3]
    assert counts(world.run(of(1), generation=1)) == [2]


def test_state_is_made_of_the_segments_of_several_replicas(world: World) -> None:
    world.run(of(0, 0, 1), barrier(7), world.awaits(7))
    world.run(of(2), barrier(7), world.awaits(7, 1), replica=1)
    world.restart(world.done(7), world.done(7, 1))
    world.table = Table(2, (2, 2, 2, 2))
    assert counts(world.run(of(0, 1, 2, 3), replica=2, generation=1)) == [3, 2, 2, 1]


def test_only_what_the_record_names_is_loaded(world: World) -> None:
    """The first attempt had written its part of checkpoint 8 when the query died; its number is not used again."""
    world.run(of(0), barrier(7), world.awaits(7), of(0), barrier(8), world.awaits(8))
    assert sorted(segment.name for segment in world.files.found()) == ["7.0.0", "8.0.0"]
    world.restart(world.done(7))
    assert counts(world.run(of(0), generation=1)) == [2]


def test_an_attempt_that_dies_leaves_nothing_in_its_process(world: World) -> None:
    world.run(of(0), barrier(7), world.awaits(7))

    def breaks() -> None:
        raise EOFError("Spark is gone")

    world.restart(world.done(7))
    with pytest.raises(EOFError):
        world.run(of(0), breaks, generation=1)
    assert counts(world.run(of(0), generation=2)) == [2]


def test_what_is_kept_of_an_attempt_that_is_over_is_what_it_said(world: World) -> None:
    """The agent says it again when its connection breaks; it held the whole state of 64 attempts for that."""
    world.run(of(0), barrier(7), world.awaits(7))
    state = weakref.ref(world.replica._stateful._state)
    world.replica = None
    gc.collect()
    assert state() is None


# ── micro-batches ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "loaded"])
def test_counts_go_on_over_batches(world: World, cached: bool) -> None:
    assert counts(world.micro_batch(of(0, 1, 0), batch=0)) == [1, 1, 2]
    if not cached:
        keyed_replica.forget_all()
    assert counts(world.micro_batch(of(0), of(1), batch=1)) == [3, 2]
    assert sorted(segment.name for segment in world.files.found()) == ["0.0.0", "1.0.0"]
    assert world.replica._counters.state_keys == 0  # counted with the next batch


def test_a_batch_that_is_done_again_counts_once(world: World) -> None:
    """The process still has the state of the first try: it must not be used."""
    world.micro_batch(of(0), batch=0)
    assert counts(world.micro_batch(of(0), batch=1)) == [2]
    assert counts(world.micro_batch(of(0), of(0), batch=1, generation=1)) == [2, 3]
    assert counts(world.micro_batch(of(0), batch=2, generation=1)) == [4]


# ── hand-overs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_loser_goes_on_until_all_markers_are_there(world: World) -> None:
    """Group 1 goes to replica 1; replica 0 counts its events until the marker, then hands it over."""
    file = world.folder / "moves" / "0-2-0.state"

    def change() -> None:
        world.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1)))

    def handed() -> None:
        world.tools.until(file.exists)

    def not_yet() -> None:
        assert not file.exists()

    left = world.run(of(1), change, of(1, 0, first=5), not_yet, marker(2), handed, of(0, first=9))
    assert counts(left) == [1, 2, 1, 2]
    assert [group for group, _ in world.files.take(0, 2, 0, {1})] == [1]
    world.tools.until(lambda: [s for heard in world.driver.heard for s in heard.state if s.handed == 2])


def test_events_of_other_groups_get_their_turn_while_state_is_given(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups go; one is given before the next bundle, the other between two of its events."""
    monkeypatch.setattr(keyed_replica, "MOVE_S", 0.0)
    world.table = Table(1, (0, 0, 0, 1))
    owned: list[set[int]] = []

    def slow(replica: keyed_replica.KeyedReplica, _: keyed_replica.Call) -> None:
        time.sleep(0.05)
        owned.append(set(replica._state.owned))

    def change() -> None:
        world.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 0, 1)))

    monkeypatch.setattr(keyed_replica.KeyedReplica, "process", slow)
    world.run(change, of(0), marker(2), of(0, 0, 0))
    assert owned == [{0, 1, 2}, {0, 2}, {0}, {0}]
    assert [group for group, _ in world.files.take(0, 2, 0, {1, 2})] == [1, 2]


def test_a_gainer_holds_back_what_it_does_not_own_and_nothing_else(world: World) -> None:
    world.run(of(1, 1, 1))  # replica 0 counts to three
    with world.files.hand_over(1, 2, 0) as add:
        add(1, True, world.replica._stateful._state.whole(1))
    table = Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1))

    def handed() -> None:
        world.publish(Table(2, table.owners, table.before, handed=(0,)))
        world.tools.until(lambda: world.replica._counters.groups_moved == 1)

    def waiting() -> None:
        world.tools.until(lambda: world.replica._inbox.waiting == 2)

    left = world.run(of(1, 2, 1, first=10), waiting, handed, of(1, first=20), replica=1, generation=1)
    assert [(one, count) for one, _, count in left] == [("11", 1), ("10", 4), ("12", 5), ("20", 6)]
    assert world.replica._counters.processed == 4
    assert world.replica._counters.moving.count == 1
    world.tools.until(lambda: [s for heard in world.driver.heard for s in heard.state if s.taken == 2])


def test_what_was_taken_is_kept_whole_at_the_next_checkpoint(world: World) -> None:
    world.run(of(1, 1, 1))
    with world.files.hand_over(1, 2, 0) as add:
        add(1, True, world.replica._stateful._state.whole(1))

    def handed() -> None:
        world.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1), handed=(0,)))
        world.tools.until(lambda: world.replica._counters.groups_moved == 1)

    world.run(handed, barrier(7), world.awaits(7, 1), replica=1, generation=1)
    world.restart(world.done(7, 1))
    world.table = Table(3, (1, 1, 1, 1))
    assert counts(world.run(of(1), replica=1, generation=2)) == [4]


# ── errors and limits ───────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_of_two_types(world: World) -> None:
    world.table = Table(1, (0, 0, 0, 0))
    with pytest.raises(EngineError, match=r"all keys must have one type, and the first was str; got 7"):
        world.run(bundle({"word": "storm"}, {"word": 7}))


def test_a_key_that_changes_on_the_way(world: World) -> None:
    world.table = Table(1, (0, 0, 0, 0))
    wrong = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [{"word": "storm"}], Keys(0, b"\x01\x00\x00\x00")))
    with pytest.raises(EngineError, match=r"the key 'storm' \(str\) was another when the event was sent"):
        world.run(wrong)


def unkept(event: Any, state: dict[str, Any]) -> None:
    state["file"] = object()


def test_state_that_cannot_be_kept_shows_at_the_first_event(world: World) -> None:
    world.topology = words(unkept)
    with pytest.raises(EngineError, match=r"the state of key 'word \d+' \(dict\) cannot be encoded"):
        world.run(of(0))


def picky(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    if event.get("bad"):
        raise ValueError("not this one")
    return count(event, state)


def test_an_event_that_raises_is_shown_as_it_came(world: World) -> None:
    world.topology = words(picky)
    with pytest.raises(EngineError, match=r"ValueError: not this one; on event 0: \{'word': 'word \d+', 'bad': True\}"):
        world.run(bundle({"word": word_of(0), "bad": True}))


def test_events_that_are_dropped_do_not_touch_the_state(world: World) -> None:
    world.topology = words(picky, on_error="drop")
    bad = {"word": word_of(0), "bad": True}
    assert counts(world.run(bundle(bad), of(0, first=1), of(0, first=2))) == [1, 2]
    assert world.run(of(0), generation=1, limits=Limits(t_out_s=30.0)) == []
    assert world.replica._counters.dropped == {"t_out": 1}


def test_keys_expire_by_the_time_of_their_events(world: World) -> None:
    world.topology = words(expire_after_s=10.0)
    bundles = [bundle({"word": word_of(0)}, born=born) for born in (100.0, 105.0, 120.0)]
    assert counts(world.run(*bundles)) == [1, 2, 1]
