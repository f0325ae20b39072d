"""Keeps the store off the loop's back: writes in a thread of its own, and outlives a store that fails."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.exc import InterfaceError, OperationalError

from penstock.common.checks import whole
from penstock.metrics.rows import IntervalRecord
from penstock.metrics.store import reason_of

log = logging.getLogger(__name__)

_GONE = (OperationalError, InterfaceError, OSError)  # disk full, database gone: worth another try


@dataclass(frozen=True, slots=True)
class RecorderState:
    """How the recorder is doing."""

    written: int
    waiting: int
    lost: int
    failing: str | None  # why the store cannot be written at present


class Recorder:
    """Writes records in order, in the background.

    While the store fails, up to `capacity` intervals wait and the oldest beyond it are lost; the log says once
    why, and when it works again how many were lost. A record that the store refuses for good is lost alone.

    >>> written = []
    >>> recorder = Recorder(written.append)
    >>> recorder.record("an interval")
    >>> recorder.close().written, written
    (1, ['an interval'])
    """

    def __init__(self, write: Callable[[IntervalRecord], None], *, capacity: int = 600, retry_s: float = 1.0) -> None:
        self._write = write
        self._retry_s = retry_s
        self._waiting: deque[IntervalRecord] = deque()
        self._capacity = whole("recorder", "capacity", capacity)
        self._changed = threading.Condition()
        self._closing = False
        self._written = 0
        self._lost = 0
        self._failing: str | None = None
        self._thread: threading.Thread | None = None  # from the first record on

    def record(self, record: IntervalRecord) -> None:
        """Hand over an interval; never waits and never fails."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="penstock-recorder", daemon=True)
                self._thread.start()
            self._waiting.append(record)
            if len(self._waiting) > self._capacity:
                self._waiting.popleft()
                self._lost += 1
            self._changed.notify_all()

    @property
    def state(self) -> RecorderState:
        """How many intervals were written, wait and were lost, and why the store fails if it does."""
        with self._changed:
            return RecorderState(self._written, len(self._waiting), self._lost, self._failing)

    def close(self, timeout_s: float = 10.0) -> RecorderState:
        """Write what waits, try a failing store once more, and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        with self._changed:
            self._lost += len(self._waiting)
            self._waiting.clear()
        if self._lost:
            log.error("the store lost %d intervals of this run", self._lost)
        return self.state

    def _work(self) -> None:
        while (record := self._next()) is not None:
            reason = self._try(record)
            if reason and not self._pause():
                return

    def _next(self) -> IntervalRecord | None:
        """The oldest record, once there is one; None when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting[0] if self._waiting else None

    def _pause(self) -> bool:
        """Wait before the next try; False when there is to be none, since the recorder closes."""
        with self._changed:
            if self._closing:
                return False
            self._changed.wait_for(lambda: self._closing, self._retry_s)
            return True

    def _try(self, record: IntervalRecord) -> str | None:
        """Write one record; the reason if the store is gone and it has to wait."""
        try:
            self._write(record)
        except _GONE as error:
            return self._fail(error)
        except Exception:
            log.exception("the store refused an interval, which is lost")
            self._done(record, lost=True)
            return None
        self._done(record, lost=False)
        return None

    def _fail(self, error: Exception) -> str:
        reason = reason_of(error)
        if self._failing is None:
            log.warning("the store cannot be written: %s; the run goes on and intervals wait", reason)
        with self._changed:
            self._failing = reason
        return reason

    def _done(self, record: IntervalRecord, *, lost: bool) -> None:
        with self._changed:
            if self._waiting and self._waiting[0] is record:  # else it was pushed out, and counted as lost
                self._waiting.popleft()
                self._lost += lost
            elif not lost:
                self._lost -= 1
            self._written += not lost
            recovered = self._failing is not None and not lost
            if recovered:
                self._failing = None
            missing = self._lost
        if recovered:
            log.warning("the store can be written again; %d intervals were lost", missing)
