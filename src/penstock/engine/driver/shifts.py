"""The shift at work, and how the next one takes over from it.

Two can be at work at the same time. The next one starts while the last goes on; when all its replicas are ready, the
sources of the last stop and those of the next go on from there. The last finishes what it has and is ended. Until then
operators of the next that process events of one key in order only queue them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.phases import Phases, Shift
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import Halted, Position, Question, StartQuery, TablesQuery
from penstock.engine.protocol.progress import shift_of
from penstock.errors import EngineError, InputError
from penstock.topology import Topology

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02
HALT_WITHIN_S = 10.0
TRY_AGAIN_S = 1.0  # after a shift could not be seen off


class DriverPort(Protocol):
    """What shifts need of the driver."""

    ready_within_s: float
    log_file: Path

    def ask_all(self, timeout_s: float) -> bool:
        """Whether every process has reported anew within the time."""

    def supervise(self, shift: int, layout: Layout) -> Supervisor:
        """Who runs a shift."""


class Shifts:
    """The shift at work, and those that finish what they have."""

    def __init__(
        self, driver: DriverPort, tally: Tally, positions: Positions, phases: Phases, handovers: Handovers
    ) -> None:
        self._driver = driver
        self._tally = tally
        self._positions = positions
        self._phases = phases
        self._handovers = handovers
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._over_restarts = 0  # of shifts that have ended
        self._shifts: dict[int, Shift] = {}
        self._ended: set[int] = set()
        self.next = 0  # the number of the next shift
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
        self.current.supervisor.start()

    def stop_sources(self) -> None:
        """No source sends any more, in this shift and in those that take over."""
        self._phases.stop()

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
        if self._phases.stopped and not self.current.left:
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
        if not isinstance(question, StartQuery) and shift_of(question.batch) in self._ended:
            return Position(question.batch, question.position)  # Spark may end the batch of a query that it stops
        shift = self.check(question)
        if isinstance(question, StartQuery):
            return self._phases.start(shift, question)
        if isinstance(question, Halted):
            return self._phases.halted(shift, question)
        slot = (question.source, question.slot)
        return Position(question.batch, self._positions.end(question.batch, slot, question.position))

    def check(self, question: Question | TablesQuery) -> Shift:
        """The shift of whoever asks; raises an EngineError if it has been replaced."""
        shift = self._shifts.get(shift_of(question.batch))
        if shift is None or shift.number in self._ended or question.generation != shift.supervisor.generation:
            raise EngineError(f"a replica of generation {question.generation} asked; it has been replaced")
        return shift

    def renew(self, between: Callable[[], None]) -> None:
        """Have the batch of the shift at work begin again; nothing runs while `between` is called."""
        self.current.supervisor.renew(between)

    def await_ready(self) -> None:
        """Wait until the sources can begin."""
        self._await_ready(self.current)

    def _await_ready(self, shift: Shift) -> None:
        """Wait until every replica of the shift has reported in its present generation."""
        deadline = time.monotonic() + self._driver.ready_within_s
        while missing := shift.replicas - self._tally.heard(shift.supervisor.generation):
            if (failure := shift.supervisor.failure) is not None:
                raise failure
            if time.monotonic() > deadline or self._stopping.is_set():
                raise EngineError(
                    f"{len(missing)} of {len(shift.replicas)} replicas were not ready within "
                    f"{self._driver.ready_within_s:g} s; Spark's log: {self._driver.log_file}"
                )
            time.sleep(0.05)

    def take_over(self, layout: Layout) -> float:
        """Have the next shift, on that layout, take over; how long no source could send.

        One take-over at a time: the shift before must have finished. If that, or the next one, is not ready in time, or
        the sources do not stop, all stays as it was and an EngineError says so.
        """
        with self._changing:
            if not self.wait_settled(self._driver.ready_within_s):
                raise EngineError("pools stay as they are: an earlier shift still finishes what it had")
            self._handovers.hold()
            last, following = self.current, self._new(layout)
            try:
                following.supervisor.start()
                self._await_ready(following)
                return self._relieve(last, following)
            except BaseException:
                if self.current is last:
                    self._dismiss(following)
                    self._handovers.release()
                raise

    def _new(self, layout: Layout) -> Shift:
        shift = Shift(self.next, layout, self._driver.supervise(self.next, layout))
        self._shifts[shift.number] = shift
        self.next += 1
        return shift

    def _relieve(self, last: Shift, following: Shift) -> float:
        begun = time.monotonic()
        self._phases.pause()
        try:
            self._await_halted(last)
            self._phases.leave(last)
            self._positions.begin(following.number, last.halted)
        except BaseException:
            self._phases.resume(last)
            raise
        self.current = following
        self._tally.current = following.number
        self._phases.take_over(last, following)
        threading.Thread(target=self._see_off, args=(last,), name="penstock-shifts", daemon=True).start()
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
            now = self._tally.in_flight(shift.number) if self._driver.ask_all(1.0) else None
            if now is not None and now[0] == 0 and now == seen and self._all_sent(shift):
                return True
            seen = now
            time.sleep(LOOK_EVERY_S)
        return False

    def _all_sent(self, shift: Shift) -> bool:
        """Whether its sources are where they halted: after a restart they first have to come there again."""
        if shift.source_slots - shift.halted.keys() or shift.replicas - self._tally.heard(shift.supervisor.generation):
            return False
        for slot, position in dict(shift.halted).items():
            batch, sent = self._tally.newest(shift.number, slot)
            if self._positions.start(batch, slot) + sent != position:
                return False
        return True

    def _done(self, shift: Shift, within_s: float) -> bool:
        """Whether it has finished within the time, and its state is on disk."""
        generation = shift.supervisor.generation
        if not self._finished(shift, within_s):
            return False
        self._phases.write(shift, generation)
        written = self._handovers.await_written(generation, shift.replicas, within_s)
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
        self._end(shift)
        self._tally.close(shift.number)
        self._phases.end(shift)
        self._handovers.release()
        self._forget(shift)

    def _finally_done(self, shift: Shift) -> bool:
        """Whether it has finished, within a minute, and its positions are forgotten."""
        try:
            if not self._done(shift, within_s=60.0):
                return False
            self._positions.forget(shift.number)
        except Exception as error:  # a full disk, say: the next try may do better
            log.warning("shift %d: cannot be ended yet: %s", shift.number, error)
            return False
        return True

    def _dismiss(self, shift: Shift) -> None:
        self._tally.discard(shift.number)
        self._end(shift)
        self._forget(shift)

    def _end(self, shift: Shift) -> None:
        self._ended.add(shift.number)  # whoever asks from now on has been replaced
        shift.supervisor.stop()
        self._handovers.forget(shift.number)

    def _forget(self, shift: Shift) -> None:
        """Only now has it ended, and its slots in Spark are free."""
        del self._shifts[shift.number]
        self._over_restarts += shift.supervisor.restarts
        shift.ended.set()


def check_pools(topology: Topology, pools: Mapping[str, Sequence[int]], active: Mapping[str, tuple[int, ...]]) -> None:
    """Raise an InputError unless every operator's pool has its active replicas, and none beyond its declared pool."""
    for name, operator in topology.operators.items():
        missing = sorted(set(active[name]) - set(pools.get(name, ())))
        wrong = sorted(replica for replica in pools.get(name, ()) if not 0 <= replica < operator.pool)
        if missing or wrong:
            raise InputError(
                f"{operator}: its pool must have the active replicas and none beyond 0..{operator.pool - 1}; "
                f"missing: {missing}, beyond: {wrong}"
            )
