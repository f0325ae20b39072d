"""A replica with state: goes on from a checkpoint, holds back what is not its own, gives, takes."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import pytest

from penstock.engine.plan.program import Limits
from penstock.engine.protocol.bundle import Events, Header, Keys, pack
from penstock.engine.worker import keyed_replica
from penstock.errors import EngineError
from penstock.state.handover import Table

from .keyed_world import World, barrier, bundle, count, counts, of, switch, word_of, words

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


def test_a_loser_goes_on_until_all_switches_are_there(world: World) -> None:
    """Group 1 goes to replica 1; replica 0 counts its events until the switch, then hands it over."""
    file = world.folder / "moves" / "0-2-0.state"

    def change() -> None:
        world.publish(Table(2, (0, 1, 1, 1), before=(0, 0, 1, 1)))

    def handed() -> None:
        world.tools.until(file.exists)

    def not_yet() -> None:
        assert not file.exists()

    left = world.run(of(1), change, of(1, 0, first=5), not_yet, switch(2), handed, of(0, first=9))
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
    world.run(change, of(0), switch(2), of(0, 0, 0))
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
