"""Keeps the query alive: one that dies is started again from its checkpoint, as `restarts` decides."""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.driver.causes import Cause, Kind, cause_of
from penstock.engine.driver.restarts import Death, Over, Restarts
from penstock.engine.driver.standby import Standbys
from penstock.engine.options import RunOptions
from penstock.engine.plan.program import Program
from penstock.engine.plan.queries import Query
from penstock.errors import EngineError
from penstock.infra.processes import process_mark

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.05
TOLD_WITHIN_S = 1.0  # all that failed tasks say
ENDS_WITHIN_S = 0.2  # a process whose connections are closed, if it ends
HURRY_S = 0.002  # from look to look, meanwhile
RENEWED = Cause(Kind.RENEWED, "the driver had it begin again")


class Suspected(NamedTuple):
    """A process that may have ended: of which attempt, what is to be said then, and until when that is looked at."""

    generation: int
    pid: int
    said: str
    until_s: float


class Supervisor:
    """A thread that watches the query; every attempt is a new generation of the program."""

    def __init__(
        self,
        query: Query,
        program: Callable[[int], Program],
        options: RunOptions,
        numbers: Iterator[int] | None = None,
        checkpoints: Callable[[], int] = lambda: 0,
        standbys: Standbys | None = None,
    ) -> None:
        self._query = query
        self._program = program
        self._numbers = numbers if numbers is not None else itertools.count()  # of generations, also of other shifts
        self._checkpoints = checkpoints  # how many have been committed by now
        self._restarts = Restarts(options.retries, options.retry_window_s, random.Random())
        self._standbys = standbys
        self._running: StreamingQuery | None = None
        self._not_started = cause_of(None)
        self._given_up: tuple[int, Cause] | None = None  # that generation is to end, and why
        self._suspected: Suspected | None = None
        self._hurry = threading.Event()
        self._ending: list[threading.Thread] = []
        self._started_s = 0.0
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="penstock-supervisor", daemon=True)
        self.generation = next(self._numbers)
        self.restarts = 0
        self.cause: Cause | None = None  # of the last death
        self.died_s = 0.0  # when that was noticed, by the monotonic clock
        self.restarting = True  # else a query that dies is left so
        self.died = False
        self.failure: EngineError | None = None

    def start(self) -> None:
        """Start the first generation and watch it."""
        self._started_s = time.monotonic()
        self._running = self._query.start(self._program(self.generation))
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, then the query."""
        self._stopping.set()
        self._hurry.set()
        for thread in [self._thread, *self._ending]:
            if thread.is_alive():
                thread.join(30)
        with self._changing:  # a query that is just being renewed is stopped, too
            if self._running is not None:
                _stop(self._running)
        self.end_standby()

    def end_standby(self) -> None:
        """Have no attempt wait beside the one at work until the next look: its slots in Spark are needed."""
        if self._standbys is not None:
            with self._changing:
                standby = self._standbys.take()
            if standby is not None:
                self._standbys.end(standby)

    @property
    def running(self) -> StreamingQuery | None:
        """The query of the present attempt."""
        return self._running

    def leave(self, generation: int) -> bool:
        """From now on leave a query that dies; False, and all stays as it is, if that generation has died."""
        with self._changing:
            if self.generation != generation or self._running is None or not self._running.isActive:
                return False
            self.restarting = False
            return True

    def give_up(self, generation: int, cause: Cause) -> None:
        """Have that generation end, and treat it as one that died of this cause; returns at once."""
        self._given_up = generation, cause
        if self._standbys is not None:
            self._standbys.give_up(generation)

    def suspect(self, generation: int, pid: int, said: str) -> None:
        """A process of that attempt may have ended: if so, a standby need not wait until Spark notices."""
        self._suspected = Suspected(generation, pid, said, time.monotonic() + ENDS_WITHIN_S)
        self._hurry.set()

    def renew(self, between: Callable[[], None], unless: Callable[[], bool] = lambda: False) -> None:
        """End the query, call `between`, and start the next generation; it does not count as a restart.

        `unless` is asked when no restart goes on: that may have done what is wanted.
        """
        with self._changing:
            if self._stopping.is_set() or unless():
                return
            self.cause, self.died_s = RENEWED, time.monotonic()
            if self._running is not None:
                _stop(self._running)
            between()
            self._begin_again()

    def _watch(self) -> None:
        try:
            self._keep_alive()
        except Exception as error:  # Spark itself is gone, and nobody else would notice
            self.failure = EngineError(f"the query can no longer be watched: {cause_of(error)}")

    def _keep_alive(self) -> None:
        while not self._stopping.is_set():
            self._hurry.wait(LOOK_EVERY_S if self._suspected is None else HURRY_S)
            self._hurry.clear()
            with self._changing:
                if self._stopping.is_set():
                    return
                if self._running is not None and self._running.isActive and not self._end_given_up():
                    if self._standbys is not None and self.restarting:
                        self._standbys.look()
                    continue
                if self._query.finishing:
                    return
                if not self.restarting:
                    self.died = True
                    return
                if not self._restart(self._death()):
                    return

    def _end_given_up(self) -> bool:
        """End the query if it is to be given up, or is known to have died; whether that was done."""
        if self._is_gone():
            return True
        if self._running is None or self._given_up is None or self._given_up[0] != self.generation:
            return False
        _stop(self._running)
        return True

    def _is_gone(self) -> bool:
        """Whether a process has ended, and a standby can go on at once; Spark then ends the others behind its back."""
        one = self._suspected
        if one is None or self._running is None:
            return False
        waits = self._standbys is not None and self._standbys.waits and self.restarting
        if not waits or one.generation != self.generation or time.monotonic() > one.until_s:
            self._suspected = None
            return False
        if process_mark(one.pid) is not None:
            return False
        self._suspected, self._given_up = None, (one.generation, Cause(Kind.ENVIRONMENT, one.said))
        self._ending = [one for one in self._ending if one.is_alive()]
        self._ending.append(threading.Thread(target=_stop, args=(self._running,), daemon=True))
        self._ending[-1].start()
        return True

    def _death(self) -> Death:
        self.died_s = time.monotonic()
        lived_s = self.died_s - self._started_s
        self.cause = cause = self._cause()
        return Death(cause, lived_s, self._checkpoints())

    def _cause(self) -> Cause:
        if self._given_up is not None and self._given_up[0] == self.generation:
            return self._given_up[1]
        return self._not_started if self._running is None else self._told(self._running)

    def _told(self, query: StreamingQuery) -> Cause:
        """What it died of: if Spark says only that a task lost another, what that one said, which may come later."""
        cause, deadline = cause_of(query.exception()), time.monotonic() + TOLD_WITHIN_S
        while cause.kind is Kind.CONSEQUENCE:
            told: list[Cause] = []
            with contextlib.suppress(Exception):  # Spark may not remember its tasks, or is about to end itself
                said = map(cause_of, self._query.complaints(query))
                told = [one for one in said if one.kind is not Kind.CONSEQUENCE]
            if told or time.monotonic() > deadline or self._stopping.wait(0.02):
                return min(told, key=lambda one: one.outside, default=cause)
        return cause

    def _restart(self, death: Death) -> bool:
        """Start it again after a pause, unless it is over."""
        decided = self._restarts.decide(death)
        if not self._query.can_start():
            decided = Over(f"Spark itself has ended, and the query with it: {death.cause}")
        if isinstance(decided, Over):
            self.failure = EngineError(decided.why)
            return False
        log.warning(
            "the query died (%s); restart %d in a row without progress, after %.1f s",
            *(death.cause, decided.in_a_row, decided.pause_s),
        )
        if self._stopping.wait(decided.pause_s):
            return False
        self.restarts += 1
        self._begin_again()
        return True

    def _begin_again(self) -> None:
        """Have the standby go to work, or start the next attempt."""
        standby = self._standbys.take() if self._standbys is not None else None
        self.generation = next(self._numbers) if standby is None else standby.generation
        self._started_s = time.monotonic()
        try:
            if self._standbys is not None and standby is not None:
                self._running = self._standbys.call(standby)
            else:
                self._running = self._query.start(self._program(self.generation))
        except Exception as error:
            self._not_started = cause_of(error, before="it could not be started again: ")
            self._running = None


def _stop(query: StreamingQuery) -> None:
    with contextlib.suppress(Exception):  # it says so when a batch is cut short, which is what is wanted
        query.stop()
