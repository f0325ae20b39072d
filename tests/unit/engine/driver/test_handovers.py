"""The driver's part: the same table for all partitions of a batch, and what takes too long is taken back."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.protocol.messages import Report, Reports, StateReport, TablesQuery
from penstock.engine.protocol.progress import first_batch
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.state.files import StateFiles
from penstock.state.handover import Table
from penstock.state.segments import SegmentName
from penstock.topology import Topology

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


def test_all_who_begin_a_batch_begin_with_the_same_table(routing: RoutingTable, handovers: Handovers) -> None:
    first = handovers.tables(TablesQuery(0, 7))
    routing.activate("count", 2)
    assert handovers.tables(TablesQuery(0, 7)) == first == {"count": Table(1, (0, 0, 0, 0))}
    assert table(routing).version == 2


def test_all_who_end_a_batch_end_with_the_same_table(routing: RoutingTable, handovers: Handovers) -> None:
    handovers.tables(TablesQuery(0, 7))
    ended = handovers.tables(TablesQuery(0, 7, "count"))
    routing.activate("count", 2)
    assert handovers.tables(TablesQuery(0, 7, "count")) == ended == {"count": Table(1, (0, 0, 0, 0))}
    assert handovers.tables(TablesQuery(0, 8)) == {"count": Table(2, (0, 0, 1, 1))}  # the wish, with nobody at work


def test_micro_batches_take_what_is_wished_for(routing: RoutingTable, handovers: Handovers, tmp_path: Path) -> None:
    """Nobody hands anything over: the next batch loads what it owns. What no batch needs any more is removed."""
    for batch in range(60):
        StateFiles(tmp_path / "count").write(SegmentName(batch, 0, 0), [])
    routing.activate("count", [3])
    handovers.settle()
    assert table(routing) == Table(2, (3, 3, 3, 3))
    assert len(StateFiles(tmp_path / "count").names()) < 60


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
    before = handovers.tables(TablesQuery(0, 0))
    handovers.hold()
    routing.activate("count", 2)
    assert handovers.tables(TablesQuery(1, first_batch(1))) == before
    assert handovers.tables(TablesQuery(2, 1)) == before  # the last shift's next batch
    assert table(routing).owners == (0, 0, 0, 0)
    handovers.forget(0)
    handovers.release()
    assert table(routing).owners == (0, 0, 1, 1)


def test_a_change_that_goes_on_is_waited_for(routing: RoutingTable, tmp_path: Path) -> None:
    handovers = Handovers(routing, {"count": StateFiles(tmp_path / "count")}, 0.1, routing.roll_back)
    routing.activate("count", 2)
    with pytest.raises(EngineError, match=r"key groups were still moving after 0\.2 s"):
        handovers.hold()
    routing.activate("count", 1)
    for replica in (0, 1):
        handovers.hear(said(replica, handed=2, taken=2))
    assert table(routing).version == 3  # changes may begin again


def test_state_is_written_when_the_last_shift_is_over(routing: RoutingTable, handovers: Handovers) -> None:
    replicas = {("words", 0), ("count", 0), ("count", 1)}
    assert not handovers.await_written(7, replicas, timeout_s=0.05)
    for replica, generation in ((0, 7), (1, 6)):
        report = StateReport("count", replica, generation, 1, 1, written=True)
        handovers.hear(Reports("here", 1, 0, [], state=[report]))
    assert not handovers.await_written(7, replicas, timeout_s=0.05)  # what an earlier generation wrote does not count
    handovers.hear(Reports("here", 1, 0, [], state=[StateReport("count", 1, 7, 1, 1, written=True)]))
    assert handovers.await_written(7, replicas, timeout_s=0.05)


def test_without_state_nothing_is_written(routing: RoutingTable) -> None:
    assert Handovers(routing, {}, 1.0, routing.roll_back).await_written(7, {("count", 0)}, timeout_s=0.0)
