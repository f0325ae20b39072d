"""A destination that is away is waited for: the replica stands still meanwhile, and back-pressure holds the rest."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from penstock.errors import EngineError

log = logging.getLogger(__name__)

PATIENCE_S = 900.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0

_ending: ContextVar[Event | None] = ContextVar("ending", default=None)


@contextmanager
def giving_up(ending: Event) -> Iterator[None]:
    """What is waited for in here is waited for no longer once that is set."""
    token = _ending.set(ending)
    try:
        yield
    finally:
        _ending.reset(token)


class Waiting:
    """Pauses between tries: 0.1 s, then twice as long each time, up to 5 s; by chance each is up to a half shorter.

    >>> waiting = Waiting("table 'events'", patience_s=0.0)
    >>> waiting.pause("connection refused")
    Traceback (most recent call last):
    penstock.errors.EngineError: table 'events': away for 0 s; connection refused
    """

    def __init__(self, thing: object, patience_s: float = PATIENCE_S) -> None:
        self._thing = thing
        self._patience_s = patience_s
        self._since_s: float | None = None  # when it was first found away
        self._pause_s = FIRST_PAUSE_S
        self._ending = _ending.get()  # whoever waits may be another thread

    def pause(self, reason: object) -> None:
        """Wait before the next try, or raise an EngineError if it has been away for too long."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            log.warning("%s: away, waited for up to %g s; %s", self._thing, self._patience_s, reason)
        left_s = self._since_s + self._patience_s - now_s
        if left_s <= 0:
            raise EngineError(f"{self._thing}: away for {self._patience_s:g} s; {reason}") from None
        pause_s, ending = min(left_s, self._pause_s * random.uniform(0.5, 1.0)), _ending.get() or self._ending
        if ending is None:
            time.sleep(pause_s)
        elif ending.wait(pause_s):
            raise EngineError(f"{self._thing}: no longer waited for, as the run ends; {reason}") from None
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def over(self) -> None:
        """It answers: the next time it is away counts anew."""
        if self._since_s is not None:
            log.warning("%s: back after %.1f s", self._thing, time.monotonic() - self._since_s)
        self._since_s, self._pause_s = None, FIRST_PAUSE_S
