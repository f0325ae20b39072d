"""Which shift is at work, and how the next one takes over from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.driver.halting import Halting
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.ledger import Ledger
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shift
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import BatchEnd, Halted, Position, Question, StartQuery, TablesQuery
from penstock.engine.protocol.numbers import shift_of
from penstock.errors import EngineError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02
HALT_WITHIN_S = 10.0
TRY_AGAIN_S = 1.0  # after a shift could not be seen off


@dataclass(frozen=True)
class Books:
    """What the shifts share."""

    routing: RoutingTable
    ledger: Ledger
    positions: Positions
    ask_all: Callable[[float], bool]  # whether every process has reported anew within the time
    handovers: Handovers


class Rota:
    """The shift at work, and those that finish what they have."""

    def __init__(
        self,
        books: Books,
        supervisor: Callable[[int, Layout], Supervisor],
        *,
        ready_within_s: float,
        log_file: Path,
        first: int = 0,
    ) -> None:
        self._books = books
        self._supervisor = supervisor
        self._ready_within_s = ready_within_s
        self._log_file = log_file
        self._halting = Halting(books.routing, books.ledger, books.positions)
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._count = first
        self._over_restarts = 0  # of shifts that have ended
        self._shifts: dict[int, Shift] = {}
        self._ended: set[int] = set()
        self.current: Shift

    lasting = True  # its processes stay connected

    @property
    def layout(self) -> Layout:
        """Of the shift at work."""
        return self.current.layout

    def open(self, layout: Layout) -> None:
        """Start the first shift of this driver."""
        self.current = self._new(layout)
        self._books.ledger.current = self.current.number
        self._books.routing.change(shift=self.current.number, turn=self.current.number)
        self.current.supervisor.start()

    def stop_sources(self) -> None:
        """No source sends any more, in this shift and in those that take over."""
        self._halting.stop()

    def stop(self) -> None:
        """End them all."""
        self._stopping.set()
        for shift in list(self._shifts.values()):
            shift.supervisor.stop()

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no shift but the present one is at work; False if the time is over first."""
        deadline = time.monotonic() + timeout_s
        others = [shift for shift in list(self._shifts.values()) if shift.left]
        return all(shift.ended.wait(max(0.0, deadline - time.monotonic())) for shift in others)

    def all_sent(self) -> bool:
        """Whether the sources that are to stop have, and have sent again what was in flight when a query died."""
        stopped = [shift for shift in list(self._shifts.values()) if shift.left]
        if self._halting.for_good and not self.current.left:
            stopped.append(self.current)
        try:
            return all(self._all_sent(shift) for shift in stopped)
        except EngineError:  # its positions are forgotten: it is just being seen off
            return False

    @property
    def failure(self) -> EngineError | None:
        """Why a shift that is needed has ended for good, if one has."""
        needed = [shift for shift in list(self._shifts.values()) if shift.left or shift is self.current]
        return next((shift.supervisor.failure for shift in needed if shift.supervisor.failure), None)

    @property
    def restarts(self) -> int:
        """How often a query was started again."""
        return self._over_restarts + sum(shift.supervisor.restarts for shift in list(self._shifts.values()))

    def answer(self, question: Question) -> Position:
        """What a source slot wants to know, or to have kept."""
        if isinstance(question, BatchEnd) and shift_of(question.batch) in self._ended:
            return Position(question.batch, question.position)  # Spark may end the batch of a query that it stops
        shift = self.check(question)
        if isinstance(question, StartQuery):
            return self._halting.start(shift, question)
        if isinstance(question, Halted):
            return self._halting.halted(shift, question)
        slot = (question.source, question.slot)
        return Position(question.batch, self._books.positions.end(question.batch, slot, question.position))

    def check(self, question: Question | TablesQuery) -> Shift:
        """The shift of whoever asks; raises an EngineError if it has been replaced."""
        shift = self._shifts.get(shift_of(question.batch))
        if shift is None or question.generation != shift.supervisor.generation:
            raise EngineError(f"a replica of generation {question.generation} asked; it has been replaced")
        return shift

    def roll_back(self) -> None:
        """Have the query of the shift at work begin its batch again, under the owners before the change."""
        self.current.supervisor.renew(self._books.routing.roll_back)

    def await_ready(self) -> None:
        """Wait until the sources can begin."""
        self._await_ready(self.current)

    def _await_ready(self, shift: Shift) -> None:
        """Wait until every replica of the shift has reported in its present generation."""
        deadline = time.monotonic() + self._ready_within_s
        while missing := shift.replicas - self._books.ledger.heard(shift.supervisor.generation):
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            if time.monotonic() > deadline or self._stopping.is_set():
                raise EngineError(
                    f"{len(missing)} of {len(shift.replicas)} replicas were not ready within "
                    f"{self._ready_within_s:g} s; Spark's log: {self._log_file}"
                )
            time.sleep(0.05)

    def take_over(self, layout: Layout) -> float:
        """Have the next shift, on that layout, take over; how long no source could send.

        One take-over at a time: the shift before must have finished. If that, or the next one, is not ready in time, or
        the sources do not stop, all stays as it was and an EngineError says so.
        """
        with self._changing:
            if not self.wait_settled(self._ready_within_s):
                raise EngineError("pools stay as they are: an earlier shift still finishes what it had")
            self._books.handovers.hold()
            last, following = self.current, self._new(layout)
            try:
                following.supervisor.start()
                self._await_ready(following)
                return self._hand_over(last, following)
            except BaseException:
                if self.current is last:
                    self._dismiss(following)
                    self._books.handovers.release()
                raise

    def _new(self, layout: Layout) -> Shift:
        shift = Shift(self._count, layout, self._supervisor(self._count, layout))
        self._shifts[shift.number] = shift
        self._count += 1
        return shift

    def _hand_over(self, last: Shift, following: Shift) -> float:
        books, begun = self._books, time.monotonic()
        self._halting.pause()
        try:
            self._await_halted(last)
            self._halting.leave(last)
            books.positions.begin(following.number, last.halted)
        except BaseException:
            self._halting.resume(last)
            raise
        self.current = following
        books.ledger.current = following.number
        self._halting.hand_over(last, following)
        threading.Thread(target=self._see_off, args=(last,), name="penstock-rota", daemon=True).start()
        return time.monotonic() - begun

    def _await_halted(self, shift: Shift) -> None:
        deadline = time.monotonic() + HALT_WITHIN_S
        while missing := shift.source_slots - shift.halted.keys():
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            if time.monotonic() > deadline:
                names = ", ".join(sorted({name for name, _ in missing}))
                raise EngineError(f"pools stay as they are: sources did not stop within {HALT_WITHIN_S:g} s: {names}")
            time.sleep(LOOK_EVERY_S)

    def _finished(self, shift: Shift, timeout_s: float) -> bool:
        """Whether all that the shift's sources sent is processed within the time, by two rounds of reports that agree.

        One round is not enough: a sender may have reported before it sent, a receiver after it processed.
        """
        deadline, seen = time.monotonic() + timeout_s, None
        while time.monotonic() < deadline and not self._stopping.is_set():
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            now = self._books.ledger.in_flight(shift.number) if self._books.ask_all(1.0) else None
            if now is not None and now[0] == 0 and now == seen and self._all_sent(shift):
                return True
            seen = now
            time.sleep(LOOK_EVERY_S)
        return False

    def _all_sent(self, shift: Shift) -> bool:
        """Whether its sources are where they halted: after a restart they first have to come there again."""
        ledger, positions = self._books.ledger, self._books.positions
        if shift.source_slots - shift.halted.keys() or shift.replicas - ledger.heard(shift.supervisor.generation):
            return False
        for slot, position in dict(shift.halted).items():
            batch, sent = ledger.newest(shift.number, slot)
            if positions.start(batch, slot) + sent != position:
                return False
        return True

    def _done(self, shift: Shift, within_s: float) -> bool:
        """Whether it has finished within the time, and its state is on disk."""
        generation = shift.supervisor.generation
        if not self._finished(shift, within_s):
            return False
        written = self._books.handovers.write(generation, shift.replicas, within_s)
        return written and generation == shift.supervisor.generation

    def _see_off(self, shift: Shift) -> None:
        """End a shift once it has finished what it had, and that is on disk."""
        while not self._finally_done(shift):
            if self._stopping.wait(TRY_AGAIN_S):
                return
            if (failure := shift.supervisor.failure) is not None:
                log.warning("shift %d: ended before it had finished: %s", shift.number, failure)
                return  # it stays among the shifts, so that the run fails
            log.info("shift %d: still finishes what it had when the next took over", shift.number)
        del self._shifts[shift.number]
        self._end(shift)
        self._books.ledger.close(shift.number)
        self._books.routing.change(turn=min(self._shifts))
        self._books.handovers.release()
        shift.ended.set()

    def _finally_done(self, shift: Shift) -> bool:
        """Whether it has finished, within a minute, and its positions are forgotten."""
        try:
            if not self._done(shift, within_s=60.0):
                return False
            self._books.positions.forget(shift.number)
        except Exception as error:  # a full disk, say: the next try may do better
            log.warning("shift %d: cannot be ended yet: %s", shift.number, error)
            return False
        return True

    def _dismiss(self, shift: Shift) -> None:
        del self._shifts[shift.number]
        self._books.ledger.discard(shift.number)
        self._end(shift)
        shift.ended.set()

    def _end(self, shift: Shift) -> None:
        self._ended.add(shift.number)
        shift.supervisor.stop()
        self._over_restarts += shift.supervisor.restarts
        self._books.handovers.forget(shift.number)
