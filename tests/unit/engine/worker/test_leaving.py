"""When what was emitted leaves: at once, or together with what comes within a few milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.worker import processing
from penstock.engine.worker.replica import OperatorReplica
from tests.waiting import LONG_S

from ..made import app

Driver = Any
Tools = SimpleNamespace


class Stream:
    """Bundles for a replica, one by one, the next when the last has been worked off; then nothing, for a while."""

    def __init__(self, driver: Driver, tools: Tools, count: int, *, patient: bool = True) -> None:
        self._tools, self._count, self._patient = tools, count, patient
        self.over = threading.Event()
        self.rows: list[Any] = []
        self.replica = OperatorReplica(driver.program(app(str.upper)), 1, "op", 0, 1)
        self.thread = threading.Thread(target=lambda: self.rows.extend(self._left()))

    def _left(self) -> Iterator[Any]:
        for batch in self.replica.run(self._batches()):
            if self._tools.left(batch).events:  # else it only warms up
                yield batch

    def _batches(self) -> Iterator[Any]:
        for number in range(self._count):
            yield self._tools.Batch([self._tools.bundle(["a"], first=number)])
            if self._patient:
                self._tools.until(lambda number=number: self.replica._counters.processed == number + 1)
        self.over.wait(LONG_S)


def test_what_comes_soon_after_leaves_together(driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event left in rows of its own, however soon the next one came, and every row costs Spark the same."""
    monkeypatch.setattr(processing, "FLUSH_S", 3600.0)
    stream = Stream(driver, tools, 20)
    stream.thread.start()
    tools.until(lambda: stream.replica._counters.processed == 20)
    assert stream.replica._counters.sent == {"end": 20}  # they count, so that nobody takes all for done
    stream.over.set()
    stream.thread.join(LONG_S)
    assert tools.left(*stream.rows).ids == [str(number) for number in range(20)]
    assert len(stream.rows) < 10  # who is woken for news sends what there is


def test_what_was_emitted_does_not_wait_for_another_event(driver: Driver, tools: Tools) -> None:
    stream = Stream(driver, tools, 1, patient=False)
    stream.thread.start()
    tools.until(lambda: stream.rows)  # though nothing came after it
    stream.over.set()
    stream.thread.join(LONG_S)
    assert tools.left(*stream.rows).ids == ["0"]
