"""What runs in a partition that is a slot of a source: reads its part, sends events, and barriers when it is time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import Barrier
from penstock.engine.protocol.messages import Done, StartQuery, TablesQuery
from penstock.engine.protocol.progress import Phase, ShiftState
from penstock.engine.pull.post import RoomNote
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.processing import FLUSH_S, MANY_WAITING
from penstock.engine.worker.replica import copied, report_of
from penstock.engine.worker.role import Role
from penstock.metrics.counters import ReplicaCounters
from penstock.metrics.jump import Jumps
from penstock.sources.base import Polled, Reader, Slot, Undecoded

CHUNK = 4000  # events sent at once
WAIT_S = 0.02  # longest wait for events: news of the driver wait no longer
IDLE_S = 0.05  # while nothing is to be sent
EXPIRED = "expired"
LOOK_EVERY_S = 0.1  # at how much waits outside, and whether it has jumped


class SourceSlot:
    """One slot of a source in one attempt."""

    def __init__(self, program: Program, name: str, slot: int, batch: int) -> None:
        self._program = program
        self._name = name
        self._slot = slot
        self._counters = ReplicaCounters()
        self._outbox = Outbox(program, 0, name, slot, self._counters)
        self._agent = agent_for(program)
        self._prefix = f"{name}:" if len([one for one in program.layout.stages[0] if one.replica == 0]) > 1 else ""
        self._woken = threading.Event()
        self._role = Role(report_of(program, name, slot, batch, self._counters), self._tell, self._outbox.mail)
        self._outbox.post = self._agent.post
        self._role.on_room = self._hear
        self._reader: Reader | None = None
        self._sent = self._owed = 0
        self._barrier = max(0, program.checkpoint - 1)  # the last that was sent; earlier ones were for earlier attempts
        self._look_s = 0.0
        self._jumps = Jumps()
        self._done = Done(program.generation, name, slot)

    def run(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Send what there is until Spark ends the batch, which it does when the query is stopped."""
        try:
            yield from self._run(BatchEnding(batches, self._woken))
        finally:
            self._role.end()
            self._outbox.close()
            if self._reader is not None:
                self._reader.close()

    def _run(self, end: BatchEnding) -> Iterator[pa.RecordBatch]:
        if self._program.direct:
            self._outbox.lines = self._agent.lines(self._program, end.reached.is_set)
        self._agent.join(self._role)
        if self._program.needs_tables(self._name):
            self._outbox.begin(self._agent.ask_tables(TablesQuery(self._program.generation)))
        self._role.on_news = self._woken.set
        while not end.reached.is_set():
            self._woken.clear()
            mine = self._agent.progress.of(self._program.shift)
            reader = self._reader or self._open(mine)
            if reader is None:
                end.reached.wait(IDLE_S)
                continue
            polled = self._poll(reader, mine)
            self._forgive(reader)
            barrier = self._due(mine)
            if barrier is None and polled and self._may_wait():
                continue
            rows = self._outbox.rows(self._agent.routing, self._agent.used, barrier)
            if barrier is not None:
                self._reach(reader, barrier.number)
            yield from rows
            self._heed(reader)
            self._look_outside(reader)
            if not polled and (reader.ended or mine.phase is not Phase.SENDING):
                self._role.report.still = mine.phase is not Phase.SENDING and self._sent >= self._owed
                self._woken.wait(IDLE_S)
            elif not polled and self._outbox.holding:
                self._woken.wait(WAIT_S)
        end.check()

    def _open(self, mine: ShiftState) -> Reader | None:
        """Open its part of the source once its shift sends; where, says the driver."""
        epoch_s = self._agent.progress.epoch_s
        if mine.phase is Phase.STARTING or epoch_s is None:
            return None
        program, name, number = self._program, self._name, self._slot
        start = self._agent.ask_start(StartQuery(program.generation, name, number))
        slots = sum(one.operator == name for one in program.layout.stages[0])
        self._sent, self._owed = start.sent, start.owed
        self._reader = program.source(name).open(Slot(program.run, name, number, slots, epoch_s), start.cursor)
        return self._reader

    def _poll(self, reader: Reader, mine: ShiftState) -> Sequence[Polled]:
        """The next events; while sources stand still, only those that had been sent before the query died."""
        sending = mine.phase is Phase.SENDING
        if sending:
            self._role.report.still = False  # before anything is polled
        most = min(CHUNK, self._outbox.room())
        most = most if sending else min(most, self._owed - self._sent)
        if most <= 0 or reader.ended:
            return ()
        polled = reader.poll(most, self._patience_s())
        add, prefix, bad = self._outbox.add_one, self._prefix, 0
        for event_id, born_s, event in polled:
            full_id = f"{prefix}{event_id}" if prefix else event_id
            if type(event) is Undecoded:
                self._outbox.failures.reject((full_id, born_s, event.raw), event.error)
                bad += 1
            else:
                add(full_id, born_s, event)
        self._sent += len(polled)
        self._counters.processed += len(polled) - bad
        if polled and self._agent.resting:
            self._agent.wake()
        return polled

    def _patience_s(self) -> float:
        """How long to wait for events: until what waits is to leave, and not at all if it waits for room."""
        if self._outbox.waiting:
            return max(0.0, self._outbox.left_s + FLUSH_S - time.perf_counter())
        return 0.0 if self._outbox.holding else WAIT_S

    def _may_wait(self) -> bool:
        """Whether what was polled leaves with what comes next: each time costs all who get a part of it."""
        few = self._outbox.waiting < min(MANY_WAITING, self._outbox.room())
        return few and time.perf_counter() < self._outbox.left_s + FLUSH_S

    def _forgive(self, reader: Reader) -> None:
        """What was sent before the query died and is no longer there is not waited for; it is counted as expired."""
        missing = self._owed - self._sent
        if missing > 0 and (reader.ended or reader.caught_up):
            self._counters.dropped[EXPIRED] = self._counters.dropped.get(EXPIRED, 0) + missing
            self._sent = self._owed

    def _tell(self, counters: ReplicaCounters) -> None:
        counters.held = self._outbox.held()
        self._outbox.failures.tell()

    def _hear(self, note: RoomNote) -> None:
        """A replica that it sends to has room."""
        if self._outbox.hear(note):
            self._woken.set()

    def _look_outside(self, reader: Reader) -> None:
        """How much waits there, now and then, and whether anything ever will."""
        report = self._role.report
        report.ended = reader.ended
        if (now_s := time.monotonic()) >= self._look_s:
            self._counters.lag, self._look_s = reader.lag() or 0, now_s + LOOK_EVERY_S
            jumped = self._jumps.look(now_s, {self._name: self._sent + self._counters.lag})
            report.jump = self._jumps.last[self._name] if jumped else 0.0
            if jumped:
                self._agent.wake()

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _due(self, mine: ShiftState) -> Barrier | None:
        """The barrier that is to be sent now, behind all that was polled, and all that is owed if sources stand still.

        It may be the last of the shift: what came behind it would be sent again by the next.
        """
        owes = mine.phase is not Phase.SENDING and self._sent < self._owed
        if mine.barrier <= self._barrier or owes:
            return None
        self._barrier = mine.barrier
        return Barrier(mine.barrier, mine.members)

    def _reach(self, reader: Reader, number: int) -> None:
        """Tell the driver where the checkpoint is in this part of the source."""
        counters, followed = copied(self._counters), self._agent.routing.version
        done = msgspec.structs.replace(self._done, number=number, counters=counters, routing=followed)
        self._say(msgspec.structs.replace(done, cursor=reader.cursor, sent=self._sent))

    def _heed(self, reader: Reader) -> None:
        """Tell the source that its cursor is committed."""
        committed = self._agent.progress.committed
        if self._done.number >= committed > self._done.shown:
            if self._done.number == committed:
                reader.committed(self._done.cursor)
            self._say(msgspec.structs.replace(self._done, shown=committed))

    def _say(self, done: Done) -> None:
        self._done = self._role.done = done
        self._agent.wake()


class BatchEnding:
    """Spark ends a real-time batch by ending its input, which a thread waits for."""

    def __init__(self, batches: Iterable[Any], woken: threading.Event) -> None:
        self.reached = threading.Event()
        self._woken = woken
        self._batches = batches
        self._broken: BaseException | None = None
        threading.Thread(target=self._wait, name="penstock-batch", daemon=True).start()

    def check(self) -> None:
        """Raise what broke the input, if that is how it ended."""
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
