"""The shift at work, how each of its attempts begins, and how the next shift takes over from it.

Two can be at work at the same time. The next one starts while the last goes on; when all its replicas are ready, the
sources of the last stop behind a barrier, and those of the next go on from there. The last finishes what it has: when
its last checkpoint is committed it is over. Until then operators of the next that process events of one key in order
only queue them. If either dies meanwhile, both end, and the next begins again from the last checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.driver.attempts import Attempted
from penstock.engine.driver.causes import Cause
from penstock.engine.driver.checkpoints import Checkpoints, Round
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.phases import Phases, Position, Shift
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import Question, Start, StartQuery
from penstock.errors import EngineError
from penstock.topology import ReplicaId

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02
HALT_WITHIN_S = 10.0
THERE_WITHIN_S = 20.0  # all processes of a shift that is to end before it was ready
HOLDER = "shift"

T = TypeVar("T")


class DriverPort(Protocol):
    """What shifts need of the driver."""

    ready_within_s: float
    log_file: Path
    first_shift: int  # beyond all of earlier drivers

    @property
    def catches_up(self) -> bool:
        """Whether what a fault has held up is not worked off yet."""

    def with_room(self, act: Callable[[], T]) -> T:
        """What it gives; a run that is carried on waits while the disk is full."""

    def supervise(self, of: Attempted) -> Supervisor:
        """Who runs a shift."""

    def died(self, cause: Cause, died_s: float, generation: int) -> None:
        """The query of the shift at work has died, and is about to begin again, in that generation."""

    def recover(self, generation: int) -> None:
        """Have sinks clean up, and state be looked at, before an attempt begins from the last checkpoint."""


class Shifts:
    """The shift at work, and the one that finishes what it has."""

    def __init__(
        self, driver: DriverPort, tally: Tally, phases: Phases, handovers: Handovers, checkpoints: Checkpoints
    ) -> None:
        self._driver = driver
        self._tally = tally
        self._phases = phases
        self._handovers = handovers
        self._checkpoints = checkpoints
        self._changing = threading.Lock()
        self._relieving = threading.Lock()  # while it is open which shift is at work
        self._stopping = threading.Event()
        self._over_restarts = 0  # of shifts that have ended
        self._shifts: dict[int, Shift] = {}
        self._ended: set[int] = set()
        self._starting: Shift | None = None  # the next one, while it is not at work
        self._owed: dict[ReplicaId, int] = {}  # how many events each slot has been heard to have sent, in any attempt
        self.next = driver.first_shift  # the number of the next shift
        self.current: Shift

    lasting = True  # its processes stay connected

    @property
    def layout(self) -> Layout:
        """Of the shift at work."""
        return self.current.layout

    def open(self, layout: Layout) -> None:
        """Start the first shift of this driver."""
        self.current = self._new(layout)
        self._tally.current = self.current.number
        self._phases.open(self.current)
        self._driver.with_room(self.current.supervisor.start)

    def stop_sources(self) -> None:
        """No source sends any more, in this shift and in those that take over."""
        self._phases.stop()

    def stop(self) -> None:
        """End them all."""
        self._stopping.set()
        self._checkpoints.stop()
        for shift in list(self._shifts.values()):
            shift.supervisor.stop()

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no shift but the present one is at work; False if the time is over first."""
        deadline = time.monotonic() + timeout_s
        others = [shift for shift in list(self._shifts.values()) if shift.left]
        return all(shift.ended.wait(max(0.0, deadline - time.monotonic())) for shift in others)

    def all_sent(self) -> bool:
        """Whether no earlier shift is at work, and sources have sent again what they had when a query died.

        If sources are stopped, also whether each slot has heard so: one may still send what it had polled before.
        """
        if any(shift.left for shift in list(self._shifts.values())):
            return False
        current = self.current
        if not self._is_ready(current):
            return False
        if self._phases.stopped and not all(self._tally.still(current.number, slot) for slot in current.source_slots):
            return False
        return all(self._sent(current, slot) >= self._owed.get(slot, 0) for slot in current.source_slots)

    def is_ready(self) -> bool:
        """Whether all replicas of the shift at work are there."""
        return self._is_ready(self.current)

    def all_read(self) -> bool:
        """Whether no source will ever have another event."""
        return not self._starting and self._is_ready(self.current) and self._tally.ended(self.current.number)

    @property
    def query(self) -> StreamingQuery | None:
        """That of the shift at work."""
        return self.current.supervisor.running

    @property
    def failure(self) -> EngineError | None:
        """Why a shift that is needed has ended for good, if one has."""
        needed = [shift for shift in list(self._shifts.values()) if shift.left or shift is self.current]
        return next((shift.supervisor.failure for shift in needed if shift.supervisor.failure), None)

    @property
    def restarts(self) -> int:
        """How often a query was started again."""
        return self._over_restarts + sum(shift.supervisor.restarts for shift in list(self._shifts.values()))

    def start_of(self, question: StartQuery) -> Start:
        """Where a source's slot starts."""
        shift, slot = self.check(question), (question.source, question.slot)
        begun = shift.begin.get(slot, Position())
        return Start(begun.cursor, begun.sent, self._owed.get(slot, 0))

    def check(self, question: Question) -> Shift:
        """The shift of whoever asks; raises an EngineError if it has been replaced."""
        for shift in list(self._shifts.values()):
            if shift.supervisor.generation == question.generation and shift.number not in self._ended:
                return shift
        raise EngineError(f"a replica of generation {question.generation} asked; it has been replaced")

    def is_starting(self, generation: int) -> bool:
        """Whether that is of the next shift, while another is at work."""
        return self._starting is not None and self._starting.supervisor.generation == generation

    def checkpoint_now(self, timeout_s: float) -> bool:
        """Whether all that sources are heard to have sent is in a checkpoint, and shown, within the time.

        An attempt that has died since sends it again: its checkpoints count once it has.
        """
        deadline = time.monotonic() + timeout_s
        sent = {slot: self._sent(self.current, slot) for slot in self.current.source_slots}
        sent = {slot: max(count, self._owed.get(slot, 0)) for slot, count in sent.items()}
        while self._checkpoints.now(deadline - time.monotonic()):
            record = self._checkpoints.records.last
            if record is not None and all(record.start(slot)[1] >= count for slot, count in sent.items()):
                return True
        return False

    def give_up(self, generation: int, cause: Cause) -> None:
        """End that attempt, if it is still at work; it is started again as after any death."""
        for shift in list(self._shifts.values()):
            shift.supervisor.give_up(generation, cause)

    def suspect(self, generation: int, pid: int, said: str) -> None:
        """A process of that attempt, on this machine, may have ended."""
        self.current.supervisor.suspect(generation, pid, said)

    def renew(self, between: Callable[[], None]) -> None:
        """Have the shift at work begin again from the last checkpoint; nothing runs while `between` is called."""
        self.current.supervisor.renew(between)

    def await_ready(self) -> None:
        """Wait until the sources can begin."""
        self._await_ready(self.current)

    def to_checkpoint(self) -> Shift | None:
        """The shift at work, if all its replicas are there and no other finishes what it has."""
        if any(shift.left for shift in list(self._shifts.values())) or self._phases.current.epoch_s is None:
            return None
        return self.current if self._is_ready(self.current) else None

    # ── attempts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin_attempt(self, shift: Shift, generation: int) -> None:
        """Before a query is started: everything after the last checkpoint is done again, unless another shift goes on.

        Called by the shift's supervisor, in its thread.
        """
        with self._relieving:
            if shift is self._starting:
                return  # nothing of it counts yet, and another shift is at work
        if shift.left:
            raise EngineError("the next shift has taken over")
        self._checkpoints.abandon()  # from here on nothing is committed that is done again
        for other in list(self._shifts.values()):
            if other.left:
                self._finish(other)
        if shift.begin and (cause := shift.supervisor.cause) is not None:
            self._driver.died(cause, shift.supervisor.died_s, generation)
        for slot in shift.source_slots:
            self._owed[slot] = max(self._owed.get(slot, 0), self._sent(shift, slot))
        self._phases.begin_attempt(shift)
        self._tally.restart(shift.number, generation)
        record = self._checkpoints.records.last
        shift.begin = {slot: Position(*record.start(slot)) if record else Position() for slot in shift.source_slots}
        self._driver.recover(generation)

    def _sent(self, shift: Shift, slot: ReplicaId) -> int:
        return shift.begin.get(slot, Position()).sent + self._tally.sent_by(shift.number, slot)

    def _is_ready(self, shift: Shift) -> bool:
        return not shift.replicas - self._tally.heard(shift.supervisor.generation)

    def _await_ready(self, shift: Shift) -> None:
        """Wait until every replica of the shift has reported in its present generation."""
        deadline, at_work = time.monotonic() + self._driver.ready_within_s, self.current.supervisor.generation
        while missing := shift.replicas - self._tally.heard(shift.supervisor.generation):
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            if shift is not self.current and at_work != self.current.supervisor.generation:
                raise EngineError("pools stay as they are: the query at work died while the next was started")
            if time.monotonic() > deadline or self._stopping.is_set():
                died = f"; its query died last of: {shift.supervisor.cause}" if shift.supervisor.cause else ""
                raise EngineError(
                    f"{len(missing)} of {len(shift.replicas)} replicas were not ready within "
                    f"{self._driver.ready_within_s:g} s{died}; Spark's log: {self._driver.log_file}"
                )
            time.sleep(0.05)

    # ── from shift to shift ─────────────────────────────────────────────────────────────────────────────────────────

    def take_over(self, layout: Layout) -> float:
        """Have the next shift, on that layout, take over; how long no source could send.

        One take-over at a time: the shift before must have finished. If that, or the next one, is not ready in time, or
        the sources do not stop, all stays as it was and an EngineError says so.
        """
        with self._changing:
            if not self.wait_settled(self._driver.ready_within_s):
                raise EngineError("pools stay as they are: an earlier shift still finishes what it had")
            self._handovers.hold(HOLDER)
            last = self.current
            try:
                following = self._starting = self._new(layout)
                last.supervisor.end_standby()
                following.supervisor.start()
                self._await_ready(following)
                return self._relieve(last, following)
            except BaseException:
                if self.current is last:
                    self._handovers.release(HOLDER)
                    if self._starting is not None:
                        self._dismiss(self._starting)
                raise
            finally:
                self._starting = None

    def _new(self, layout: Layout) -> Shift:
        number = self.next
        self.next += 1
        supervisor = self._driver.supervise(
            Attempted(
                number,
                layout,
                prepare=lambda generation: self._begin_attempt(self._shifts[number], generation),
                may_stand_by=lambda: self._may_stand_by(number),
            )
        )
        self._shifts[number] = Shift(number, layout, supervisor)
        return self._shifts[number]

    def _may_stand_by(self, number: int) -> bool:
        """Whether the next attempt may wait beside the one at work: Spark has slots for no more than these."""
        if self._starting is not None or self._driver.catches_up or (shift := self.to_checkpoint()) is None:
            return False
        return shift.number == number

    def _relieve(self, last: Shift, following: Shift) -> float:
        round_ = self._checkpoints.last_of(last, self._driver.ready_within_s)
        begun = time.monotonic()
        try:
            self._await_halted(last, round_)
            if not last.supervisor.leave(round_.generation):
                raise EngineError("pools stay as they are: the query died before the next could take over")
        except BaseException:
            self._phases.resume(last)
            self._checkpoints.cancel(round_)
            raise
        following.begin = {
            slot: Position(round_.done[slot].cursor, round_.done[slot].sent) for slot in last.source_slots
        }
        with self._relieving:
            self.current, self._starting = following, None
            self._tally.current = following.number
            self._phases.take_over(last, following)
        threading.Thread(target=self._see_off, args=(last, round_), name="penstock-shifts", daemon=True).start()
        return time.monotonic() - begun

    def _await_halted(self, shift: Shift, round_: Round) -> None:
        """Wait until all its slots have sent their last barrier, and said where they are."""
        deadline = time.monotonic() + HALT_WITHIN_S
        while missing := shift.source_slots & round_.missing:
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            if shift.supervisor.generation != round_.generation:
                raise EngineError("pools stay as they are: the query died before the next could take over")
            if time.monotonic() > deadline:
                names = ", ".join(sorted({name for name, _ in missing}))
                raise EngineError(f"pools stay as they are: sources did not stop within {HALT_WITHIN_S:g} s: {names}")
            time.sleep(LOOK_EVERY_S)

    def _see_off(self, shift: Shift, round_: Round) -> None:
        """End a shift once its last checkpoint is committed and shown."""
        while not self._checkpoints.wait_over(round_, 0.5):
            if self._stopping.is_set() or shift.ended.wait(LOOK_EVERY_S):
                return
            if shift.supervisor.died:
                log.warning("shift %d: died before it had finished; the next one does it again", shift.number)
                self.current.supervisor.renew(lambda: None, unless=shift.ended.is_set)
                return
        self._finish(shift)

    def _finish(self, shift: Shift) -> None:
        """End a shift that was left, whether it is committed or done again; who comes second waits for the first."""
        with self._relieving:
            second = shift.number in self._ended
            self._ended.add(shift.number)  # whoever asks from now on has been replaced
        if second:
            shift.ended.wait()
            return
        shift.supervisor.stop()
        self._tally.close(shift.number)
        self._phases.end(shift)
        self._handovers.release(HOLDER)
        self._forget(shift)

    def _dismiss(self, shift: Shift) -> None:
        """End a shift that was never at work, once all its processes are there.

        A task that Spark cancels while it waits for its Python worker takes the daemon for gone, and ends it with the
        workers of all others.
        """
        deadline, supervisor = time.monotonic() + THERE_WITHIN_S, shift.supervisor
        while not (self._is_ready(shift) or supervisor.failure or self._stopping.is_set()):
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_EVERY_S)
        self._tally.discard(shift.number)
        self._ended.add(shift.number)
        shift.supervisor.stop()
        self._forget(shift)

    def _forget(self, shift: Shift) -> None:
        """Only now has it ended, and its slots in Spark are free."""
        if self._shifts.pop(shift.number, None) is not None:
            self._over_restarts += shift.supervisor.restarts
            shift.ended.set()
