"""A replica with state: it counts over batches, holds back what it does not own, gives and takes."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.engine.plan.program import Limits, MicroBatch
from penstock.engine.protocol.bundle import HASH, Events, Header, Keys, Marker, pack, pack_marker
from penstock.engine.protocol.messages import OperatorRouting, Routing, TablesQuery
from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.engine.worker import keyed_replica
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.grouping import stable_hash
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.segments import SegmentName
from penstock.topology import Topology

from ..made import LONG_AGO

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
    return pack(Header(0, 1, 0, len(events)), columns)


def of(*groups: int, first: int = 0) -> bytes:
    return bundle(*[{"word": word_of(group)} for group in groups], first=first)


def marker(version: int) -> bytes:
    return pack_marker(Header(0, 1, 0, 0), Marker(0, version))


class Table1:
    """The driver's answers: the table with which batches begin, and that with which they end."""

    def __init__(self, driver: Driver, *owners: int) -> None:
        self.driver, self.begin, self.end = driver, Table(1, owners), Table(1, owners)
        self.published = 1
        driver.tables = self.answer

    def answer(self, question: TablesQuery) -> dict[str, Table]:
        return {"count": self.end if question.ending else self.begin}

    def publish(self, table: Table) -> None:
        self.published += 1
        self.end = table
        routing = {"count": OperatorRouting((0,), table=table), "end": OperatorRouting((0,))}
        self.driver.server.publish(Routing(self.published, routing))


class World:
    """One replica at a time, over a folder."""

    def __init__(self, driver: Driver, tools: Tools, folder: Path) -> None:
        self.driver, self.tools, self.folder = driver, tools, folder
        self.tables = Table1(driver, 0, 0, 1, 1)
        self.topology = words()
        self.replica: Any = None

    def run(self, *steps: Any, replica: int = 0, batch: int = 1, **program: Any) -> list[tuple[str, str, int]]:
        """Work off bundles; a step that can be called is called in between. Ids, words and counts that left."""
        made = self.driver.program(self.topology, state_folder=str(self.folder), **program)
        self.replica = at_work = OperatorReplica(made, 1, "count", replica, batch)
        rows = list(at_work.run(self.batches(steps)))
        left = self.tools.left(*rows)
        return [
            (event_id, event["word"], event["count"]) for event_id, event in zip(left.ids, left.events, strict=True)
        ]

    def batches(self, steps: Any) -> Iterator[Any]:
        for step in steps:
            if callable(step):
                step()
            else:
                yield self.tools.Batch([step])


@pytest.fixture
def world(driver: Driver, tools: Tools, tmp_path: Path) -> Iterator[World]:
    yield World(driver, tools, tmp_path)
    keyed_replica.forget_all()


def counts(left: list[tuple[str, str, int]]) -> list[int]:
    return [count for _, _, count in left]


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("realtime", [True, False], ids=["realtime", "microbatch"])
@pytest.mark.parametrize("cached", [True, False], ids=["cached", "loaded"])
def test_counts_go_on_over_batches(world: World, realtime: bool, cached: bool) -> None:
    active, given = {"count": (0, 1)}, {} if realtime else {"microbatch": MicroBatch(0, "words")}
    assert counts(world.run(of(0, 1, 0), batch=0, active=active, **given)) == [1, 1, 2]
    if not cached:
        keyed_replica.forget_all()
    assert counts(world.run(of(0), of(1), batch=10**9, active=active, **given)) == [3, 2]
    assert sorted(file.name for file in (world.folder / "count").iterdir()) == ["0.0.0", "1000000000.0.0"]


def test_a_batch_that_is_done_again_counts_once(world: World) -> None:
    """The process still has the state of the first try: it must not be used."""
    world.run(of(0), batch=0)
    assert counts(world.run(of(0), batch=1)) == [2]
    assert counts(world.run(of(0), of(0), batch=1, generation=1)) == [2, 3]
    assert counts(world.run(of(0), batch=2, generation=1)) == [4]


def test_another_replica_loads_what_it_now_owns(world: World) -> None:
    world.run(of(0, 0, 1), batch=0)
    world.tables.begin = world.tables.end = Table(2, (1, 0, 1, 1))
    assert counts(world.run(of(0), batch=1, replica=1)) == [3]
    assert counts(world.run(of(1), batch=1)) == [2]


def test_a_batch_that_breaks_leaves_no_state_behind(world: World) -> None:
    world.run(of(0), batch=0)

    def breaks() -> None:
        raise EOFError("Spark is gone")

    with pytest.raises(EOFError):
        world.run(of(0), breaks, batch=1)
    assert counts(world.run(of(0), batch=1, generation=1)) == [2]


# ── hand-overs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_loser_goes_on_until_all_markers_are_there(world: World) -> None:
    """Group 1 goes to replica 1; replica 0 counts its events until the marker, then hands it over."""
    table = Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1))
    file = world.folder / "count" / "moves" / "0-2-0.state"

    def change() -> None:
        world.tables.publish(table)
        world.tools.until(lambda: world.replica._agent.routing.version == 2)

    def handed() -> None:
        world.tools.until(file.exists)

    def not_yet() -> None:
        assert not file.exists()

    left = world.run(of(1), change, of(1, 0, first=5), not_yet, marker(2), handed, of(0, first=9))
    assert counts(left) == [1, 2, 1, 2]
    assert [group for group, _ in StateFiles(world.folder / "count").take(0, 2, 0, {1})] == [1]
    world.tools.until(lambda: [s for heard in world.driver.heard for s in heard.state if s.handed == 2])
    assert world.replica._counters.state_keys == 0  # counted with the next batch


def test_events_of_other_groups_get_their_turn_while_state_is_given(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups go; one is given before the next bundle, the other between two of its events."""
    monkeypatch.setattr(keyed_replica, "MOVE_S", 0.0)
    world.tables.begin = Table(1, (0, 0, 0, 1))
    owned: list[set[int]] = []

    def slow(replica: keyed_replica.KeyedReplica, _: keyed_replica.Call) -> None:
        time.sleep(0.05)
        owned.append(set(replica._state.owned))

    def change() -> None:
        world.tables.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 0, 1)))
        world.tools.until(lambda: world.replica._agent.routing.version == 2)

    monkeypatch.setattr(keyed_replica.KeyedReplica, "process", slow)
    world.run(change, of(0), marker(2), of(0, 0, 0))
    assert owned == [{0, 1, 2}, {0, 2}, {0}, {0}]
    assert [group for group, _ in StateFiles(world.folder / "count").take(0, 2, 0, {1, 2})] == [1, 2]


def test_a_gainer_holds_back_what_it_does_not_own_and_nothing_else(world: World) -> None:
    world.run(of(1, 1, 1), batch=0)  # replica 0 counts to three
    with StateFiles(world.folder / "count").hand_over(0, 2, 0) as add:
        add(1, True, world.replica._stateful._state.whole(1))
    table = Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1))

    def handed() -> None:
        world.tables.publish(Table(2, table.owners, table.before, handed=(0,)))
        world.tools.until(lambda: world.replica._counters.groups_moved == 1)

    def waiting() -> None:
        world.tools.until(lambda: world.replica._inbox.waiting == 2)

    keyed_replica.forget_all()
    left = world.run(of(1, 2, 1, first=10), waiting, handed, of(1, first=20), batch=1, replica=1)
    assert [(one, count) for one, _, count in left] == [("11", 1), ("10", 4), ("12", 5), ("20", 6)]
    assert world.replica._counters.processed == 4
    assert world.replica._counters.moving.count == 1
    world.tools.until(lambda: [s for heard in world.driver.heard for s in heard.state if s.taken == 2])


def test_who_has_not_heard_hears_at_the_end_of_the_batch(world: World) -> None:
    """The loser never heard of the change; the end of its input stands for the markers."""
    table = Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1))
    world.tables.end = table
    assert counts(world.run(of(1, 0))) == [1, 1]
    assert [group for group, _ in StateFiles(world.folder / "count").take(0, 2, 0, {1})] == [1]
    segment = StateFiles(world.folder / "count").load([0, 1], [SegmentName(1, 0, 0)])
    assert segment[0].parts
    assert not segment[1].parts


def test_a_gainer_waits_at_the_end_of_the_batch(world: World) -> None:
    world.run(of(1), batch=0)
    files = StateFiles(world.folder / "count")
    whole = world.replica._stateful._state.whole(1)
    table = Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1))
    world.tables.end = table
    asked: list[TablesQuery] = []

    def answer(question: TablesQuery) -> dict[str, Table]:
        if question.ending:
            asked.append(question)
            with files.hand_over(0, 2, 0) as add:
                add(1, True, whole)
            world.tables.publish(Table(2, table.owners, table.before, handed=(0,)))
            return {"count": table}
        return world.tables.answer(question)

    world.driver.tables = answer
    assert counts(world.run(of(1), batch=1, replica=1)) == [2]
    assert len(asked) == 1


# ── the end of a shift ──────────────────────────────────────────────────────────────────────────────────────────────


def said_written(world: World) -> bool:
    return any(state.written for heard in world.driver.heard for state in heard.state)


def test_the_end_of_a_batch_is_not_taken_for_the_end_of_the_shift(world: World) -> None:
    """Every batch writes a segment; the driver took the first for the last, and the next shift read too early."""
    world.run(of(0), batch=0)
    world.tools.until(lambda: [state for heard in world.driver.heard for state in heard.state])

    def over() -> None:
        assert not said_written(world)
        world.driver.server.publish(Progress(5, {0: ShiftState(Phase.WRITING, 5, generation=0)}, LONG_AGO))
        world.tools.until(lambda: said_written(world))
        assert (world.folder / "count" / "1.0.0").exists()

    assert counts(world.run(of(0), over, batch=1)) == [2]


def test_what_is_kept_of_a_batch_that_is_over_is_what_it_said(world: World) -> None:
    """The agent says it again when its connection breaks; it held the whole state of 64 batches for that."""
    world.run(of(0), batch=0)
    state = weakref.ref(world.replica._stateful._state)
    world.replica = None
    keyed_replica.forget_all()
    gc.collect()
    assert state() is None


# ── errors and limits ───────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_of_two_types(world: World) -> None:
    world.tables.begin = Table(1, (0, 0, 0, 0))
    with pytest.raises(EngineError, match=r"all keys must have one type, and the first was str; got 7"):
        world.run(bundle({"word": "storm"}, {"word": 7}))


def test_a_key_that_changes_on_the_way(world: World) -> None:
    world.tables.begin = Table(1, (0, 0, 0, 0))
    wrong = pack(Header(0, 1, 0, 1), Events(["0"], [0.0], [{"word": "storm"}], Keys(0, b"\x01\x00\x00\x00")))
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
    assert world.run(of(0), batch=2, limits=Limits(t_out_s=30.0)) == []
    assert world.replica._counters.dropped == {"t_out": 1}


def test_keys_expire_by_the_time_of_their_events(world: World) -> None:
    world.topology = words(expire_after_s=10.0)
    bundles = [bundle({"word": word_of(0)}, born=born) for born in (100.0, 105.0, 120.0)]
    assert counts(world.run(*bundles)) == [1, 2, 1]
