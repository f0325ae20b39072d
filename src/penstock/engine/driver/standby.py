"""The standby: an attempt whose processes are there already, and wait for the one at work to die."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.plan.program import Program
from penstock.engine.plan.queries import Query

log = logging.getLogger(__name__)

PAUSE_S = 10.0  # after a standby that ended by itself
THERE_WITHIN_S = 20.0
LOOK_EVERY_S = 0.02


class AttemptsPort(Protocol):
    """What standbys need to know of the attempts of their shift."""

    def wanted(self) -> bool:
        """Whether there is to be one now."""

    def program(self, generation: int) -> Program:
        """What its processes are shipped."""

    def fits(self, program: Program) -> bool:
        """Whether an attempt that began now would be shipped the same."""

    def call(self, generation: int) -> None:
        """Have it go to work, from the last record on."""

    def there(self, generation: int) -> bool:
        """Whether all its processes are."""


@dataclass(frozen=True)
class Standby:
    """One that waits."""

    generation: int
    program: Program
    query: StreamingQuery


class Standbys:
    """At most one standby of a shift: made when it is wanted, again when it ends by itself, taken when it is needed.

    The supervisor holds its own lock around all calls but `end`.
    """

    def __init__(self, query: Query, attempts: AttemptsPort, numbers: Iterator[int]) -> None:
        self._query = query
        self._attempts = attempts
        self._numbers = numbers
        self._waiting: Standby | None = None
        self._given_up = -1  # the generation that is to end
        self._not_before_s = 0.0

    @property
    def waits(self) -> bool:
        """Whether there is one."""
        return self._waiting is not None

    def look(self) -> None:
        """Make one if it is wanted; let go of one that has ended, or is to end."""
        if (one := self._waiting) is None:
            if time.monotonic() >= self._not_before_s and self._attempts.wanted():
                self._make()
        elif not one.query.isActive or one.generation == self._given_up:
            log.warning("the standby has ended; another is made in %g s", PAUSE_S)
            self._waiting, self._not_before_s = None, time.monotonic() + PAUSE_S
            self._end_soon(one)

    def give_up(self, generation: int) -> None:
        """Have the standby end if it is of that generation; returns at once."""
        if (one := self._waiting) is not None and one.generation == generation:
            self._given_up = generation

    def take(self) -> Standby | None:
        """The one that waits, for the next attempt; None if there is none that will do."""
        one, self._waiting = self._waiting, None
        if one is None or (
            one.query.isActive and one.generation != self._given_up and self._attempts.fits(one.program)
        ):
            return one
        self._end_soon(one)
        return None

    def call(self, standby: Standby) -> StreamingQuery:
        """Have one that was taken go to work; its query."""
        try:
            self._attempts.call(standby.generation)
        except Exception:
            self._end_soon(standby)
            raise
        return standby.query

    def end(self, standby: Standby) -> None:
        """End one that was taken, once all its processes are there.

        A task that Spark cancels while it waits for its Python worker takes the daemon for gone, and ends it with the
        workers of all others.
        """
        deadline = time.monotonic() + THERE_WITHIN_S
        with contextlib.suppress(Exception):  # Spark itself may be gone
            while standby.query.isActive and not self._attempts.there(standby.generation):
                if time.monotonic() > deadline:
                    break
                time.sleep(LOOK_EVERY_S)
            standby.query.stop()

    def _end_soon(self, standby: Standby) -> None:
        threading.Thread(target=self.end, args=(standby,), name="penstock-standby", daemon=True).start()

    def _make(self) -> None:
        generation = next(self._numbers)
        try:
            program = self._attempts.program(generation)
            self._waiting = Standby(generation, program, self._query.start(program))
        except Exception as error:  # the run goes on without
            log.warning("no standby for now: %s", error)
            self._not_before_s = time.monotonic() + PAUSE_S
