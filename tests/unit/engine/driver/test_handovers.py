"""The driver's part: the same table for all who begin an attempt, and what takes too long is taken back."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.driver import handovers as module
from penstock.engine.driver.handovers import KEPT, Handovers
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.protocol.messages import Report, Reports, StateReport
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.segments import Segment
from penstock.topology import Topology
from tests.waiting import LONG_S

from ..made import Published


def count(event: Any, state: dict[str, int]) -> None: ...


@pytest.fixture
def routing() -> RoutingTable:
    topology = Topology("words", pool=4)
    topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=4)
    return RoutingTable(topology, {}, Published())


@pytest.fixture
def handovers(routing: RoutingTable, tmp_path: Path) -> Handovers:
    return Handovers(routing, {"count": StateFiles(tmp_path / "count")}, 60.0, routing.roll_back)


def table(routing: RoutingTable) -> Table:
    found = routing.current.operators["count"].table
    assert found is not None
    return found


def said(replica: int, handed: int, taken: int) -> Reports:
    return Reports("here", 1, 0, [], state=[StateReport("count", replica, 0, handed, taken)])


def test_a_change_from_wish_to_end(routing: RoutingTable, handovers: Handovers) -> None:
    heard: Any = routing._publisher
    routing.activate("count", 2)
    assert routing.active == {"count": (0, 1)}  # at once
    assert table(routing) == Table(2, (0, 0, 1, 1), before=(0, 0, 0, 0))
    routing.activate("count", 1)  # waits
    assert table(routing).version == 2
    handovers.hear(said(0, handed=2, taken=2))
    assert table(routing).handed == (0,)
    handovers.hear(said(1, handed=2, taken=2))
    assert table(routing) == Table(3, (0, 0, 0, 0), before=(0, 0, 1, 1))
    assert [one.operators["count"].table for one in heard][-1] == table(routing)
    handovers.hear(said(1, handed=2, taken=2))  # said again after a broken connection: nothing new
    assert heard[-1].operators["count"].table == Table(3, (0, 0, 0, 0), before=(0, 0, 1, 1))


def test_all_who_begin_an_attempt_begin_with_the_same_table(routing: RoutingTable, handovers: Handovers) -> None:
    first = handovers.tables(0, alone=True)
    routing.activate("count", 2)
    assert handovers.tables(0, alone=True) == first == {"count": Table(1, (0, 0, 0, 0))}
    assert table(routing).version == 2


def test_the_next_attempt_begins_with_what_was_wished_for(routing: RoutingTable, handovers: Handovers) -> None:
    """A change that was going on has ended with those who took part in it, and state is loaded by the new table."""
    handovers.tables(0, alone=True)
    routing.activate("count", 2)
    routing.activate("count", [3])  # waits for the first change
    assert handovers.tables(1, alone=True) == {"count": Table(3, (3, 3, 3, 3))}
    assert handovers.hold_now("checkpoint")  # nothing moves


def test_tables_of_attempts_long_over_are_forgotten(handovers: Handovers) -> None:
    for generation in range(3 * KEPT):
        handovers.tables(generation, alone=True)
    assert len(handovers._begun) == KEPT + 1


def test_micro_batches_take_what_is_wished_for(routing: RoutingTable, handovers: Handovers, tmp_path: Path) -> None:
    """Nobody hands anything over: the next batch loads what it owns. What no batch needs any more is removed."""
    for batch in range(60):
        StateFiles(tmp_path / "count").write(Segment(batch, 0, 0), [])
    routing.activate("count", [3])
    handovers.settle()
    assert table(routing) == Table(2, (3, 3, 3, 3))
    assert len(StateFiles(tmp_path / "count").found()) < 60


def test_what_takes_too_long_is_rolled_back_and_logged(
    routing: RoutingTable, handovers: Handovers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    routing.activate("count", 2)
    handovers._look(100.0)
    handovers._look(160.0)
    assert table(routing).version == 2
    handovers._look(160.1)
    assert table(routing) == Table(3, (0, 0, 0, 0))
    assert routing.active == {"count": (0,)}
    (message,) = caplog.messages
    assert message == (
        "operator 'count': key groups [2, 3] did not get on within 60 s, waiting for replicas [0]: they stay"
    )
    handovers._look(1000.0)
    assert len(caplog.messages) == 1


def test_what_has_been_taken_is_removed(routing: RoutingTable, handovers: Handovers, tmp_path: Path) -> None:
    files = StateFiles(tmp_path / "count")
    routing.activate("count", 2)
    with files.hand_over(0, 2, 0) as add:
        add(2, True, b"two")
    handovers._look(1.0)
    moves = tmp_path / "count" / "moves"
    assert len(list(moves.iterdir())) == 1
    handovers.hear(said(0, 2, 2))
    handovers.hear(said(1, 2, 2))
    handovers._look(2.0)
    assert list(moves.iterdir()) == []


# ── progress, and shifts ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replica_that_works_off_a_long_queue_is_not_late(routing: RoutingTable, tmp_path: Path) -> None:
    taken_back: list[bool] = []
    files = {"count": StateFiles(tmp_path / "count")}
    handovers = Handovers(routing, files, 60.0, lambda: taken_back.append(True))
    routing.activate("count", 2)
    for step in range(5):
        counters = ReplicaCounters(processed=100 * step)
        handovers.hear(Reports("here", 1, 0, [Report(0, 0, "count", 0, counters)]))
        handovers._look(50.0 * step)
    assert taken_back == []
    handovers._look(250.0)
    handovers._look(261.0)
    assert taken_back == [True]


def test_the_next_shift_begins_with_the_same_owners_and_wishes_wait(
    routing: RoutingTable, handovers: Handovers
) -> None:
    before = handovers.tables(0, alone=True)
    handovers.hold("shift")
    routing.activate("count", 2)
    assert handovers.tables(1, alone=False) == before
    assert table(routing).owners == (0, 0, 0, 0)
    handovers.release("shift")
    assert table(routing).owners == (0, 0, 1, 1)
    assert handovers.tables(1, alone=False) == before  # whoever asks late


def test_changes_begin_again_when_nobody_holds_them(routing: RoutingTable, handovers: Handovers) -> None:
    for holder in ("shift", "checkpoint"):
        assert handovers.hold_now(holder)
    routing.activate("count", 2)
    handovers.release("checkpoint")
    assert table(routing).owners == (0, 0, 0, 0)
    handovers.release("shift")
    assert table(routing).owners == (0, 0, 1, 1)


def test_a_change_that_goes_on_is_told_to_who_wants_to_hold(routing: RoutingTable, handovers: Handovers) -> None:
    routing.activate("count", 2)
    assert not handovers.hold_now("checkpoint")
    routing.activate("count", 1)
    for replica in (0, 1):
        handovers.hear(said(replica, handed=2, taken=2))
    assert handovers.hold_now("checkpoint")  # and the next has not begun
    assert table(routing).owners == (0, 0, 1, 1)


def test_a_change_that_goes_on_is_waited_for(routing: RoutingTable, tmp_path: Path) -> None:
    handovers = Handovers(routing, {"count": StateFiles(tmp_path / "count")}, 0.1, routing.roll_back)
    routing.activate("count", 2)
    with pytest.raises(EngineError, match=r"key groups were still moving after 0\.2 s"):
        handovers.hold("shift")
    routing.activate("count", 1)
    for replica in (0, 1):
        handovers.hear(said(replica, handed=2, taken=2))
    assert table(routing).version == 3  # changes may begin again


def test_the_next_shift_begins_with_the_owners_that_were_wished_before(
    routing: RoutingTable, handovers: Handovers
) -> None:
    """A replica was deactivated while a checkpoint kept its key groups where they were, and then laid out no more.

    The next shift had it as an owner, and no partition for it: who sent to it died.
    """
    routing.activate("count", 2)
    for replica in (0, 1):
        handovers.hear(said(replica, handed=2, taken=2))
    assert handovers.hold_now("checkpoint")
    routing.activate("count", 1)
    taking_over = threading.Thread(target=lambda: handovers.hold("shift"))
    taking_over.start()
    taking_over.join(0.1)
    handovers.release("checkpoint")
    for replica in (0, 1):
        handovers.hear(said(replica, handed=3, taken=3))
    taking_over.join(LONG_S)
    assert not taking_over.is_alive()
    assert handovers.tables(1, alone=False)["count"].owners == (0, 0, 0, 0)


def test_who_begins_to_hold_while_another_lets_go_holds(
    routing: RoutingTable, handovers: Handovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other had seen that nobody held, and let changes begin after all: owners changed between two barriers."""
    handovers.hold_now("shift")
    letting_go, go_on, real = threading.Event(), threading.Event(), routing.coordinate

    def slowly(act: Any) -> Any:
        if threading.current_thread() is last:
            letting_go.set()
            assert go_on.wait(LONG_S)
        return real(act)

    monkeypatch.setattr(routing, "coordinate", slowly)
    last = threading.Thread(target=lambda: handovers.release("shift"))
    last.start()
    assert letting_go.wait(LONG_S)
    following = threading.Thread(target=lambda: handovers.hold_now("checkpoint"))
    following.start()
    following.join(0.2)
    go_on.set()
    for thread in (last, following):
        thread.join(LONG_S)
    routing.activate("count", 2)
    assert table(routing).owners == (0, 0, 0, 0)


def test_who_waits_for_its_end_waits_until_nobody_looks(
    routing: RoutingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that went on when the run had ended removed files of the driver that carried it on."""
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.002)
    looking, go_on = threading.Event(), threading.Event()

    def roll_back() -> None:
        looking.set()
        assert go_on.wait(LONG_S)

    handovers = Handovers(routing, {"count": StateFiles(tmp_path / "count")}, 0.01, roll_back)
    handovers.start()
    routing.activate("count", 2)  # and no replica says a word
    assert looking.wait(LONG_S)
    handovers.stop()
    handovers.join(0.01)
    assert handovers._thread.is_alive()
    go_on.set()
    handovers.join()
    assert not handovers._thread.is_alive()
