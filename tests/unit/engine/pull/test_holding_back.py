"""Back-pressure: a replica or slot that holds as much as it may takes nothing more, until it hears of room."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.protocol.progress import Phase
from penstock.engine.pull import sender
from penstock.engine.pull.post import Post, RoomNote
from penstock.engine.pull.sender import LEAST_HELD
from penstock.engine.worker.replica import OperatorReplica
from penstock.engine.worker.source_slot import SourceSlot
from penstock.topology import Topology
from tests.waiting import LONG_S

from ..made import LONG_AGO, progress
from ..worker.source_world import AtWork, Numbers

Driver = Any
Tools = SimpleNamespace
MANY = 5 * LEAST_HELD


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "SILENT_S", 3600.0)


class Teller:
    """Somebody who has room, and says so."""

    def __init__(self, driver: Driver, sender: str) -> None:
        self._post = Post("127.0.0.1", driver.secret)
        self._sender = sender

    def tell(self, to: Any, finished: int, credit: int) -> None:
        self._post.send(RoomNote(0, "end", 0, self._sender, 0, finished, credit), to.post().address)

    def close(self) -> None:
        self._post.close()


def app() -> Topology:
    topology = Topology("app", pool=2)
    op = topology.operator("op", str.upper, inputs=topology.source("events"), grouping="pull")
    topology.operator("end", len, inputs=op, grouping="pull")
    return topology


class Replica:
    """`op` at work, with many bundles in front of it."""

    def __init__(self, driver: Driver, tools: Tools) -> None:
        self._tools, self.over, self.rows = tools, threading.Event(), []
        self.replica = OperatorReplica(driver.program(app()), 1, "op", 0, 1)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for rows in self.replica.run(self._batches()):
            self.rows.append(rows)

    def _batches(self) -> Iterator[Any]:
        for number in range(MANY):
            yield self._tools.Batch([self._tools.bundle(["a"], first=number)])
        yield self._tools.Batch([self._tools.barrier(1)])
        self.over.wait(LONG_S)

    @property
    def left(self) -> Any:
        return self._tools.left(*list(self.rows))


@pytest.fixture
def replica(driver: Driver, tools: Tools) -> Iterator[Replica]:
    one = Replica(driver, tools)
    yield one
    one.over.set()
    one.thread.join(LONG_S)


def test_a_replica_that_holds_enough_processes_no_more_until_there_is_room(
    driver: Driver, tools: Tools, replica: Replica
) -> None:
    counters, teller = replica.replica._counters, Teller(driver, "op")
    tools.until(lambda: replica.replica._outbox.full)
    assert LEAST_HELD <= counters.processed <= LEAST_HELD + 2
    tools.until(lambda: replica.left.ids == ["0"])
    replica.replica._refresh(counters)
    assert counters.held == {"end": counters.processed - 1}
    teller.tell(replica.replica._agent, finished=1, credit=10)
    tools.until(lambda: len(replica.left.ids) == 11)
    assert counters.processed <= LEAST_HELD + 12
    teller.tell(replica.replica._agent, finished=11, credit=10 * MANY)
    tools.until(lambda: replica.left.barriers)
    assert sorted(replica.left.ids, key=int) == [str(number) for number in range(MANY)]
    teller.close()


def test_what_a_replica_waits_for_room_shows_in_what_it_may_be_given(
    driver: Driver, tools: Tools, replica: Replica
) -> None:
    """It is quick itself: its senders would give it thousands ahead, and they would wait there instead of outside."""
    rooms, teller = replica.replica._rooms, Teller(driver, "op")
    tools.until(lambda: replica.replica._outbox.full)
    quick = rooms._credit
    tools.until(lambda: replica.replica._blocked_s > 0.3)
    for finished in range(1, 9):
        teller.tell(replica.replica._agent, finished, credit=1)
        tools.until(lambda finished=finished: len(replica.left.ids) == finished + 1)
    tools.until(lambda: rooms._credit < quick / 2)
    teller.close()


def test_a_slot_that_holds_enough_reads_no_more_until_there_is_room(driver: Driver, tools: Tools) -> None:
    Numbers.there = MANY
    Numbers.gate.set()
    topology = Topology("app", pool=2)
    topology.operator("end", len, inputs=topology.source("events"), grouping="pull")
    begun = progress(1, Phase.SENDING, epoch_s=LONG_AGO)
    slot = SourceSlot(driver.program(topology, sources={"events": Numbers()}, progress=begun), "events", 0, 1)
    work, teller = AtWork(tools, driver, slot), Teller(driver, "events")
    try:
        work.await_sent(1)
        tools.until(lambda: slot._outbox.full)
        assert LEAST_HELD <= slot._sent <= LEAST_HELD + 1
        tools.until(lambda: slot._counters.lag == MANY - slot._sent)  # the rest waits outside
        teller.tell(slot._agent, finished=1, credit=10 * MANY)
        assert len(work.await_sent(MANY)) == MANY
    finally:
        Numbers.there = 0
        Numbers.opened.clear()
        teller.close()
        work.batch.end()
        work.thread.join(LONG_S)


def test_a_replica_that_holds_enough_ends_with_its_batch(tools: Tools, replica: Replica) -> None:
    """It waited for room, which nobody had any more."""
    tools.until(lambda: replica.replica._outbox.full)
    replica.over.set()
    replica.thread.join(LONG_S)
    assert not replica.thread.is_alive()
