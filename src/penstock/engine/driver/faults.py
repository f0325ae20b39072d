"""How long events stood still at each fault: from the last that reached a sink to the first that had not before."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

RECENT_S = 1.0  # what was delivered this long before the death was the last before it; else the stream was idle
KEPT = 1000  # of the last ones


@dataclass(frozen=True, slots=True)
class Fault:
    """A query that died: when that was noticed, of what, and how long nothing new reached a sink."""

    number: int
    time_s: float
    cause: str
    seconds: float | None = None  # None while it lasts
    deaths: int = 1  # it may die again before it has come back


class Faults:
    """Told of deaths and of what sinks have processed; as exact as replicas report often.

    An event that is done again counts once, so all is done again when sinks have as much as before.

    >>> faults = Faults()
    >>> faults.deliver(10.0, 70, ready=lambda: True)
    >>> faults.died(10.2, "a worker was killed")
    >>> faults.deliver(12.0, 40, ready=lambda: True)  # from the last checkpoint on
    >>> faults.deliver(13.5, 75, ready=lambda: True)
    >>> [(one.cause, one.seconds) for one in faults.all]
    [('a worker was killed', 3.5)]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._most, self._grown_s = 0, 0.0  # delivered so far, and when that was heard last
        self._since_s: float | None = None  # nothing new has come since then, while a fault lasts
        self._all: deque[Fault] = deque(maxlen=KEPT)

    @property
    def all(self) -> list[Fault]:
        """The faults so far, the last of them."""
        with self._lock:
            return list(self._all)

    @property
    def lasting(self) -> bool:
        """Whether sinks have yet to get what they had when a query died."""
        return self._since_s is not None

    def died(self, now_s: float, cause: str) -> None:
        """A query has died."""
        with self._lock:
            if self._since_s is not None:
                self._all[-1] = replace(self._all[-1], deaths=self._all[-1].deaths + 1)
                return
            self._since_s = self._grown_s if now_s - self._grown_s <= RECENT_S else now_s
            self._all.append(Fault(self._all[-1].number + 1 if self._all else 1, now_s, cause))

    def deliver(self, now_s: float, count: int, ready: Callable[[], bool]) -> None:
        """Sinks have processed so many events in all; `ready` says whether all replicas are there."""
        with self._lock:
            if self._since_s is not None and count >= self._most and ready():
                self._all[-1] = replace(self._all[-1], seconds=now_s - self._since_s)
                self._since_s = None
            if count > self._most:
                self._most, self._grown_s = count, now_s
