"""A replica whose operator takes many events in one call: how many, and who is to blame when it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from tests.waiting import LONG_S

from ..made import InBulk, app, sink

Driver = Any
Tools = SimpleNamespace
Work = Any

gate = threading.Event()


def test_process_many_gets_the_ids_and_gives_one_output_for_each_event(work: Work, tools: Tools) -> None:
    done = work(app(InBulk()), tools.bundle([0, 1, 5]), tools.bundle([7], first=3))
    assert done.left.ids == ["1.0", "1.1", "2", "3"]
    assert done.left.events == [1, 1, 10, 14]
    assert [one for call in InBulk.calls for one in call] == ["0", "1", "2", "3"]
    assert done.counters.processed == 4


def test_process_many_gets_more_and_more_events_while_it_is_quick(work: Work, tools: Tools) -> None:
    work(app(InBulk()), tools.bundle(list(range(2, 200))))
    assert [len(call) for call in InBulk.calls][:5] == [1, 2, 4, 8, 16]


class Patient(InBulk):
    def process_many(self, events: list[int]) -> list[Any]:
        gate.wait(LONG_S)
        return super().process_many(events)


def test_process_many_takes_bundles_together_that_wait(driver: Driver, tools: Tools) -> None:
    gate.clear()
    replica = OperatorReplica(driver.program(app(Patient())), 1, "op", 0, 1)
    replica._processing.at_once = 8

    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle([2, 3], first=2 * n) for n in range(12)])
        gate.set()  # all of them wait by now

    assert len(tools.left(*replica.run(batches())).ids) == 24
    assert max(len(call) for call in InBulk.calls) >= 8


class Weighed:
    """Keeps how many bytes each call was for."""

    calls: list[int] = []  # noqa: RUF012 - shared with the copy that is shipped

    def process(self, event: bytes) -> None: ...

    def process_many(self, events: list[bytes]) -> None:
        gate.wait(LONG_S)
        Weighed.calls.append(sum(map(len, events)))


def test_process_many_gets_no_more_bytes_than_fit_into_memory(driver: Driver, tools: Tools) -> None:
    """A call for up to 4,096 events took all that waited, whatever their size: 400 MB of events of 100 KB."""
    gate.clear()
    Weighed.calls = []
    replica = OperatorReplica(driver.program(sink(Weighed())), 1, "op", 0, 1)
    replica._processing.at_once = 4096

    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle([b"x" * 1_000_000], first=n) for n in range(50)])
        gate.set()  # all of them wait by now

    list(replica.run(batches()))
    assert sum(Weighed.calls) == 50_000_000
    assert max(Weighed.calls) <= 18_000_000


def test_a_wake_up_between_bundles_is_no_event(driver: Driver, tools: Tools) -> None:
    """One that sends to an operator with state is woken when key groups move, and took that for a broken bundle."""
    gate.clear()
    replica = OperatorReplica(driver.program(app(Patient())), 1, "op", 0, 1)
    replica._processing.at_once = 8

    def batches() -> Iterator[Any]:
        for n in range(4):
            yield tools.Batch([tools.bundle([2, 3], first=2 * n)])
            replica._inbox.wake()
        gate.set()

    assert tools.left(*replica.run(batches())).ids == [str(n) for n in range(8)]


def test_process_many_gets_fewer_events_when_they_take_long(driver: Driver, tools: Tools) -> None:
    class Slow:
        def process(self, event: int) -> None: ...

        def process_many(self, events: list[int]) -> None:
            time.sleep(0.03)

    replica = OperatorReplica(driver.program(sink(Slow())), 1, "op", 0, 1)
    replica._processing.at_once = 8
    list(replica.run([tools.Batch([tools.bundle(list(range(8)))])]))
    assert replica._processing.at_once == 4


def test_process_many_that_gives_too_few_outputs_is_an_error(work: Work, tools: Tools) -> None:
    class Forgetful(InBulk):
        def process_many(self, events: list[int]) -> list[Any]:
            return []

    topology = app(Forgetful())
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([1]))
    expected = f"{topology['op']}: process_many must give one output for each event; got 0 for 1"
    assert str(caught.value) == expected


def test_process_many_may_give_nothing_at_all(work: Work, tools: Tools) -> None:
    class Silent(InBulk):
        def process_many(self, events: list[int]) -> None: ...

    done = work(app(Silent()), tools.bundle([1, 2, 3]))
    assert (done.left.ids, done.counters.processed) == ([], 3)


def test_process_many_drops_only_the_event_that_is_to_blame(driver: Driver, tools: Tools) -> None:
    program = driver.program(app(InBulk(), on_error="drop"))
    replica = OperatorReplica(program, 1, "op", 0, 1)
    replica._processing.at_once = 4
    left = tools.left(*replica.run([tools.Batch([tools.bundle([2, -1, 4, 5])])]))
    assert left.ids == ["0", "2", "3"]
    assert (replica._counters.processed, replica._counters.dropped) == (3, {"error": 1})


def test_process_many_that_fails_names_the_event_that_fails_alone(driver: Driver, tools: Tools) -> None:
    """The first event of the call used to be named, or one of the others."""
    topology = app(InBulk())
    replica = OperatorReplica(driver.program(topology), 1, "op", 0, 1)
    replica._processing.at_once = 4
    with pytest.raises(EngineError) as caught:
        list(replica.run([tools.Batch([tools.bundle([2, 3, -1, 5])])]))
    assert str(caught.value) == f"{topology['op']}: ValueError: minus one; on event 2: -1"


class Crowded(InBulk):
    def process_many(self, events: list[int]) -> list[Any]:
        if len(events) > 1:
            raise ValueError("too many")
        return super().process_many(events)


def test_an_error_that_no_event_has_alone_still_ends_the_run(driver: Driver, tools: Tools) -> None:
    topology = app(Crowded())
    replica = OperatorReplica(driver.program(topology), 1, "op", 0, 1)
    replica._processing.at_once = 4
    with pytest.raises(EngineError) as caught:
        list(replica.run([tools.Batch([tools.bundle([2, 3, 4, 5])])]))
    assert str(caught.value) == f"{topology['op']}: ValueError: too many; on event 0 or one of the 3 after it: 2"


def test_a_sink_that_fails_is_not_called_again(driver: Driver, tools: Tools) -> None:
    """It may have written some of the events."""
    topology = sink(InBulk())
    replica = OperatorReplica(driver.program(topology), 1, "op", 0, 1)
    replica._processing.at_once = 4
    with pytest.raises(EngineError) as caught:
        list(replica.run([tools.Batch([tools.bundle([2, 3, -1, 5])])]))
    assert str(caught.value) == f"{topology['op']}: ValueError: minus one; on event 0 or one of the 3 after it: 2"
    assert InBulk.calls == [("0", "1", "2", "3")]
