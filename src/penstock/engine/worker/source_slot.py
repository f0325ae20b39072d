"""A source's slot: sends the events that are due, by number, and keeps its place with the driver.

The source lives in its slots, not in the driver: slot s of n sends events s, s + n, s + 2n, … when they are due.
The driver knows where each batch starts; a slot asks when its batch begins and tells when it ends,
so a batch that is done again sends the same events again, and no event is sent by two batches. When another shift
takes over, the slot says where it has stopped, and that shift begins there.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import BatchEnd, Halted, StartQuery, TablesQuery
from penstock.engine.protocol.progress import Phase, Progress, ShiftState
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.outbox import Outbox, warm_up
from penstock.engine.worker.replica import report_of
from penstock.engine.worker.role import Role
from penstock.metrics.counters import ReplicaCounters

CHUNK = 4000  # events sent at once
TICK_S = 0.005  # shortest wait between two looks at what is due
LONGEST_WAIT_S = 0.25
IDLE_S = 0.05  # while nothing is to be sent


class SourceSlot:
    """One slot of a source in one batch."""

    def __init__(self, program: Program, name: str, slot: int, batch: int) -> None:
        self._program = program
        self._name = name
        self._slot = slot
        self._slots = sum(one.operator == name for one in program.layout.stages[0])
        self._batch = batch
        self._source = program.source(name)
        self._counters = ReplicaCounters()
        self._outbox = Outbox(program, 0, name, slot, self._counters)
        self._agent = agent_for(program)
        self._prefix = f"{name}:" if len([one for one in program.layout.stages[0] if one.replica == 0]) > 1 else ""
        self._woken = threading.Event()
        self._role = Role(report_of(program, name, slot, batch, self._counters), lambda _: None, self._outbox.mail)
        self._position = 0
        self._until: int | None = None
        self._has_begun = False
        self._halted = 0  # up to which time that it had to stand still it has said where

    def run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Send what is due until Spark ends the batch."""
        try:
            yield from self._run(BatchEnding(batches, self._woken))
        finally:
            self._role.on_tables = None
            self._outbox.mail.close()

    def _run(self, end: BatchEnding) -> Iterator[pa.RecordBatch]:
        yield from warm_up(self._program, 0, self._batch)
        self._agent.join(self._role)
        if self._program.needs_tables(self._name):
            self._outbox.begin(self._agent.ask_tables(TablesQuery(self._program.generation, self._batch)))
            self._role.on_tables = self._woken.set
        while not end.reached.is_set():
            self._woken.clear()
            progress = self._agent.progress
            if not self._begun(progress):
                end.reached.wait(IDLE_S)
                continue
            self._say_halted(progress.of(self._program.shift))
            chunk = range(self._position, min(self._due(progress), self._position + CHUNK))
            if chunk:
                self._add(chunk, progress.epoch_s or 0.0)
                self._position = chunk.stop
            if (rows := self._outbox.rows(self._agent.routing, self._agent.used)) is not None:
                yield rows
            if not chunk and not end.reached.is_set():
                self._woken.wait(self._wait_s(progress))
        end.check()
        if self._begun(self._agent.progress):  # also where the batch was over before a first look
            self._agent.ask(BatchEnd(*self._me, self._position))
        self._agent.wake()

    @property
    def _me(self) -> tuple[int, str, int, int]:
        return self._program.generation, self._name, self._slot, self._batch

    def _begun(self, progress: Progress) -> bool:
        """Whether it knows where to start; it does not ask before its shift has taken over."""
        if not self._has_begun and progress.of(self._program.shift).phase is not Phase.STARTING:
            answer = self._agent.ask(StartQuery(*self._me))
            self._position, self._until, self._has_begun = answer.position, answer.until, True
        return self._has_begun

    def _say_halted(self, mine: ShiftState) -> None:
        """Tell the driver, once each time that the slot is to stand still, which event is the first that was not sent.

        It may say where to stop instead: a slot that does its batch again had come further before.
        """
        if mine.since > self._halted:
            answer = self._agent.ask(Halted(*self._me, self._position, mine.since))
            self._until = self._until if answer.until is None else answer.until
            self._halted = mine.since

    def _due(self, progress: Progress) -> int:
        """Before which of its events this slot may have sent all by now."""
        if progress.epoch_s is None:
            return self._position
        if progress.of(self._program.shift).phase is not Phase.SENDING:
            return self._position if self._until is None else self._until  # done again
        due = self._source.due(time.time() - progress.epoch_s)
        return max(self._position, (due - self._slot + self._slots - 1) // self._slots)

    def _wait_s(self, progress: Progress) -> float:
        number = self._number(self._position)
        sending = progress.of(self._program.shift).phase is Phase.SENDING
        if progress.epoch_s is None or not sending or number >= (self._source.total or math.inf):
            return IDLE_S
        next_due = progress.epoch_s + self._source.due_times(range(number, number + 1))[0]
        return min(max(next_due - time.time(), TICK_S), LONGEST_WAIT_S)

    def _number(self, position: int) -> int:
        return position * self._slots + self._slot

    def _add(self, positions: range, epoch_s: float) -> None:
        numbers = range(self._number(positions.start), self._number(positions.stop), self._slots)
        now, add = time.time(), self._outbox.add_one
        times = self._source.due_times(numbers)
        for number, due_s, event in zip(numbers, times, self._source.read(numbers), strict=True):
            add(f"{self._prefix}{number}", now if math.isnan(due_s) else epoch_s + due_s, event)
        self._counters.processed += len(numbers)


class BatchEnding:
    """Spark ends a real-time batch by ending its input, which a thread waits for."""

    def __init__(self, batches: Iterable[Any], woken: threading.Event) -> None:
        self.reached = threading.Event()
        self._woken = woken
        self._batches = batches
        self._broken: BaseException | None = None
        threading.Thread(target=self._wait, name="penstock-batch", daemon=True).start()

    def check(self) -> None:
        """Raise what broke the input, if that is how it ended: such a batch is done again."""
        if self._broken is not None:
            raise self._broken

    def _wait(self) -> None:
        try:
            for _ in self._batches:
                pass
        except BaseException as error:  # it belongs to the source's own thread
            self._broken = error
        finally:
            self.reached.set()
            self._woken.set()
