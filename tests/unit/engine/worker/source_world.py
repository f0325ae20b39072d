"""A source of numbers, and a slot of it at work in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.protocol.messages import Done
from penstock.engine.protocol.progress import Phase
from penstock.engine.worker import source_slot as module
from penstock.engine.worker.source_slot import SourceSlot
from penstock.sources import Polled, Reader, Slot, Source
from penstock.topology import Topology
from tests.waiting import LONG_S

from ..made import LONG_AGO, SparkBatch, progress

Driver = Any
Tools = SimpleNamespace


class Numbers(Source):
    """Numbers from 0 on, as far as they are there; keeps the readers that were opened."""

    opened: ClassVar[list[NumbersReader]] = []
    there = 0  # how many there are so far; the same for all slots
    knows = False  # that it has polled all of them
    gate = threading.Event()  # a poll lasts until it is open,
    holds = 0  # and so many do now

    def __init__(self, total: int | None = None) -> None:
        self.total = total

    def open(self, slot: Slot, cursor: Any | None) -> Reader:
        reader = NumbersReader(self.total, slot, cursor)
        Numbers.opened.append(reader)
        return reader

    @staticmethod
    @contextmanager
    def held() -> Iterator[None]:
        """Polls that begin meanwhile find what there is when this is over."""
        Numbers.gate.clear()
        try:
            yield
        finally:
            Numbers.gate.set()


class NumbersReader(Reader):
    def __init__(self, total: int | None, slot: Slot, cursor: Any | None) -> None:
        self.slot, self.begun, self.total = slot, cursor, total
        self.position = 0 if cursor is None else cursor["at"]
        self.told: list[Any] = []
        self.closed = 0
        self.threads: set[str] = set()

    def poll(self, most: int, wait_s: float) -> list[Polled]:
        assert most > 0
        assert 0 <= wait_s <= 0.1
        self.threads.add(threading.current_thread().name)
        Numbers.holds += 1
        assert Numbers.gate.wait(LONG_S)
        Numbers.holds -= 1
        numbers = range(self.position, min(self.position + most, Numbers.there))
        self.position = max(self.position, numbers.stop)
        return [Polled(f"n{number}", LONG_AGO + number, number) for number in numbers]

    @property
    def cursor(self) -> Any:
        return {"at": self.position}

    @property
    def ended(self) -> bool:
        return self.total is not None and self.position >= self.total

    @property
    def caught_up(self) -> bool:
        return Numbers.knows and self.position >= Numbers.there

    def lag(self) -> int | None:
        return Numbers.there - self.position if self.total is None else None

    def committed(self, cursor: Any) -> None:
        self.told.append(cursor)

    def close(self) -> None:
        self.closed += 1


def app(*sources: str) -> Topology:
    topology = Topology("app", pool=2)
    topology.operator("end", len, inputs=[topology.source(name) for name in sources or ("events",)])
    return topology


class AtWork:
    """A slot in a thread of its own, and all that it has sent."""

    def __init__(self, tools: Tools, driver: Driver, slot: SourceSlot) -> None:
        self.slot, self._tools, self._driver = slot, tools, driver
        self.rows: list[pa.RecordBatch] = []
        self._barriers: set[int] = set()
        self.batch = SparkBatch()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for rows in self.slot.run(self.batch):
            self.rows.append(rows)
            self._barriers.update(self._tools.left(rows).barriers)

    @property
    def sent(self) -> list[int]:
        return list(self._tools.left(*list(self.rows)).events)

    def order(self) -> list[str]:
        """Ids of events, and barriers as b1, b2, … once for each replica, in the order in which they left."""
        order: list[str] = []
        for rows in list(self.rows):
            left = self._tools.left(rows)
            order += left.ids
            order += [f"b{number}" for number in left.barriers]
        return order

    def await_sent(self, count: int) -> list[int]:
        self._tools.until(lambda: len(self.sent) >= count)
        return self.sent

    def tell(self, version: int, phase: Phase = Phase.SENDING, **changes: Any) -> None:
        self._driver.server.publish(progress(version, phase, **changes))
        self._tools.until(lambda: self.slot._agent.progress.version == version)

    def done(self, number: int) -> Done:
        """What it has said of a checkpoint, once its barrier has left."""
        name, replica = self.slot._name, self.slot._slot

        def said() -> list[Done]:
            return [one for one in self._driver.done(name, replica) if one.number == number]

        found: list[Done] = self._tools.until(said)
        self._tools.until(lambda: number in self._barriers)
        return found[-1]


@contextmanager
def standing_still(at_work: AtWork) -> Iterator[None]:
    """Nothing is sent meanwhile, nor for some turns of the slot afterwards."""
    before = at_work.order()
    yield
    at_work.thread.join(5 * module.IDLE_S)
    assert at_work.order() == before
