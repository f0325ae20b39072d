"""Keeps the query alive: one that dies is started again from its checkpoint, with back-off and bounded retries."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.options import RunOptions
from penstock.engine.plan.program import Program
from penstock.engine.plan.queries import Query
from penstock.errors import EngineError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1
FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 10.0


class Supervisor:
    """A thread that watches the query; every start is a new generation of the program."""

    def __init__(
        self,
        query: Query,
        program: Callable[[int], Program],
        options: RunOptions,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._query = query
        self._program = program
        self._options = options
        self._numbers = numbers if numbers is not None else itertools.count()  # of generations, also of other shifts
        self._running: StreamingQuery | None = None
        self._not_started = ""
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="penstock-supervisor", daemon=True)
        self.generation = next(self._numbers)
        self.restarts = 0
        self.causes: list[str] = []
        self.restarting = True  # else a query that dies is left so
        self.died = False
        self.failure: EngineError | None = None

    def start(self) -> None:
        """Start the first generation and watch it."""
        self._running = self._query.start(self._program(self.generation))
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, then the query."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(30)
        with self._changing:  # a query that is just being renewed is stopped, too
            if self._running is not None:
                with contextlib.suppress(Exception):
                    self._running.stop()

    def leave(self, generation: int) -> bool:
        """From now on leave a query that dies; False, and all stays as it is, if that generation has died."""
        with self._changing:
            if self.generation != generation or self._running is None or not self._running.isActive:
                return False
            self.restarting = False
            return True

    def renew(self, between: Callable[[], None], unless: Callable[[], bool] = lambda: False) -> None:
        """End the query, call `between`, and start the next generation; it does not count as a restart.

        `unless` is asked when no restart goes on: that may have done what is wanted.
        """
        with self._changing:
            if self._stopping.is_set() or unless():
                return
            if self._running is not None:
                with contextlib.suppress(Exception):  # it says so when a batch is cut short, which is what is wanted
                    self._running.stop()
            between()
            self.generation = next(self._numbers)
            self._start()

    def _watch(self) -> None:
        try:
            self._keep_alive()
        except Exception as error:  # Spark itself is gone, and nobody else would notice
            self.failure = EngineError(f"the query can no longer be watched: {cause_of(error)}")

    def _keep_alive(self) -> None:
        tries, since = 0, time.monotonic()
        failed: set[str] = set()  # events that have ended the query
        while not self._stopping.wait(LOOK_EVERY_S):
            with self._changing:
                if self._running is not None and self._running.isActive:
                    continue
                if self._query.finishing:
                    return
                if not self.restarting:
                    self.died = True
                    return
                if time.monotonic() - since > self._options.retry_window_s:
                    tries = 0
                cause = cause_of(self._running.exception()) if self._running is not None else self._not_started
                if (event := failed_event(cause)) in failed:
                    self.failure = EngineError(f"an event failed in the same way each time: {cause}")
                    return
                failed |= {event} if event is not None else set()
                if tries >= self._options.retries:
                    self.failure = EngineError(f"the query died {tries + 1} times in a row; the last time: {cause}")
                    return
                tries, since = tries + 1, time.monotonic()
                self._restart(cause, tries)

    def _restart(self, cause: str, tries: int) -> None:
        self.causes.append(cause)
        log.warning("the query died (%s); restart %d of %d", cause, tries, self._options.retries)
        if self._stopping.wait(min(FIRST_BACKOFF_S * 2 ** (tries - 1), LONGEST_BACKOFF_S)):
            return
        self.generation = next(self._numbers)
        self.restarts += 1
        self._start()

    def _start(self) -> None:
        try:
            self._running = self._query.start(self._program(self.generation))
        except Exception as error:
            self._not_started = f"it could not be started again: {cause_of(error)}"
            self._running = None


def failed_event(cause: str) -> str | None:
    """Operator, error and id of the event that a query died of, if it did.

    >>> failed_event("operator 'parse' (app.py:3): ValueError: no; on event 41: {'n': 7}")
    "operator 'parse' (app.py:3): ValueError: no; on event 41"
    """
    found = re.match(r"(?:operator|source) .+?; on event \S+?(?=: )", cause)
    return found[0] if found else None


def cause_of(error: Any) -> str:
    """The one sentence of a Spark stack trace that a person wants to read."""
    text = str(error or "").strip() or (repr(error) if error else "it ended without saying why")
    for pattern in (r"penstock\.errors\.\w+: (.+)", r"Python worker exited unexpectedly[^\n]*", r"\n(\w*Error: .+)"):
        if found := re.search(pattern, text):
            return found[1] if found.groups() else found[0]
    return text.splitlines()[0][:500]
