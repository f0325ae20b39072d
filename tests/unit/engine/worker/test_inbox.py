"""A replica's own queue: what arrives, what is dropped, when the reader waits, and how a stream breaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.engine.protocol.bundle import Unpacker
from penstock.engine.worker.inbox import Inbox
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from tests.waiting import LONG_S

SENDERS = ("tweets", "clean")


@pytest.fixture
def inbox_of(tools: Any) -> Any:
    """`inbox_of(bundles…)`: a started inbox that gets each bundle in a batch of its own, and its counters."""

    def made(*bundles: bytes, queue_bytes: int = 1 << 20, capacity: int | None = None) -> tuple[Inbox, ReplicaCounters]:
        counters = ReplicaCounters()
        inbox = Inbox([tools.Batch([one]) for one in bundles], counters, SENDERS, queue_bytes)
        inbox.capacity = capacity
        inbox.start()
        return inbox, counters

    return made


def all_of(inbox: Inbox) -> list[Any]:
    events = []
    while (arrival := inbox.take()) is not None:
        events += Unpacker()(arrival.bundle).events[: arrival.count]
        inbox.finish(arrival.count)
    return events


def test_bundles_come_out_in_order_and_are_counted_by_sender(tools: Any, inbox_of: Any) -> None:
    bundles = tools.bundle(["a", "b"]), tools.bundle(["c"], sender=1), tools.bundle(["d"])
    inbox, counters = inbox_of(*bundles)
    assert all_of(inbox) == ["a", "b", "c", "d"]
    assert counters.received == {"tweets": 3, "clean": 1}
    assert (inbox.waiting, inbox.empty(), counters.dropped) == (0, True, {})


def test_several_bundles_may_come_in_one_batch(tools: Any) -> None:
    counters = ReplicaCounters()
    inbox = Inbox([tools.Batch([tools.bundle(["a"]), tools.bundle(["b"])])], counters, SENDERS, 1 << 20)
    inbox.start()
    assert all_of(inbox) == ["a", "b"]


def test_waiting_counts_what_is_taken_until_it_is_finished(tools: Any, inbox_of: Any) -> None:
    inbox, _ = inbox_of(tools.bundle(["a", "b", "c"]))
    assert inbox.take().count == 3
    assert inbox.waiting == 3
    inbox.finish(2)
    assert inbox.waiting == 1


def test_what_finds_the_queue_full_is_dropped_and_counted(tools: Any, inbox_of: Any) -> None:
    bundles = tools.bundle(["a", "b"]), tools.bundle(["c", "d", "e"]), tools.bundle(["f"], sender=1)
    inbox, counters = inbox_of(*bundles, capacity=3)
    tools.until(lambda: sum(counters.received.values()) == 6)
    assert all_of(inbox) == ["a", "b", "c"]  # of the second bundle one fits in, of the third none
    assert counters.dropped == {"q_size": 3}
    assert counters.received == {"tweets": 5, "clean": 1}


def test_a_finished_event_makes_room_for_another(tools: Any) -> None:
    worked_off = threading.Event()

    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle(["a", "b"])])
        assert worked_off.wait(LONG_S)
        yield tools.Batch([tools.bundle(["c", "d"])])

    counters = ReplicaCounters()
    inbox = Inbox(batches(), counters, SENDERS, 1 << 20)
    inbox.capacity = 2
    inbox.start()
    inbox.finish(inbox.take().count - 1)
    worked_off.set()
    assert all_of(inbox) == ["c"]
    assert counters.dropped == {"q_size": 1}


def test_the_reader_waits_when_the_queue_holds_too_many_bytes_and_then_goes_on(tools: Any) -> None:
    read = []

    def batches() -> Iterator[Any]:
        for number in range(6):
            read.append(number)
            yield tools.Batch([tools.bundle([number])])

    size = len(tools.bundle([0]))
    inbox = Inbox(batches(), ReplicaCounters(), SENDERS, 2 * size)
    inbox.start()
    tools.until(lambda: inbox.waiting == 3)
    assert read == [0, 1, 2]  # the third is one too many: no more is read until something is taken
    assert inbox.take().count == 1
    tools.until(lambda: inbox.waiting == 4)
    assert read == [0, 1, 2, 3]
    assert len(all_of(inbox)) == 5


def test_what_breaks_the_stream_is_raised_behind_the_events_that_came_before(tools: Any) -> None:
    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle(["a"])])
        raise EOFError("Spark is gone")

    inbox = Inbox(batches(), ReplicaCounters(), SENDERS, 1 << 20)
    inbox.start()
    assert inbox.take().count == 1
    with pytest.raises(EOFError, match="Spark is gone"):
        inbox.take()


def test_a_row_that_is_no_bundle_breaks_the_stream(tools: Any, inbox_of: Any) -> None:
    inbox, _ = inbox_of(b"??")
    with pytest.raises(EngineError, match="a bundle of 2 bytes is not as it was sent"):
        inbox.take()


def test_ending_tells_the_end_of_the_batch_from_another_bundle(tools: Any, inbox_of: Any) -> None:
    inbox, _ = inbox_of(tools.bundle(["a"]), tools.bundle(["b"]))
    tools.until(lambda: inbox.waiting == 2)
    assert not inbox.ending()
    inbox.take()
    assert not inbox.ending()
    inbox.take()
    assert inbox.ending()
    assert inbox.take() is None
