"""A clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable


class ManualClock:
    """Time passes only when someone sleeps or calls `advance`; listeners are told how much has passed.

    `jump` sets the clock without any time passing, as an administrator or NTP may do.

    >>> clock = ManualClock()
    >>> clock.sleep_until(5.0)
    >>> clock.now()
    5.0
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s
        self._listeners: list[Callable[[float], None]] = []

    def listen(self, listener: Callable[[float], None]) -> None:
        """Call this with the seconds that passed, whenever some did."""
        self._listeners.append(listener)

    def now(self) -> float:
        """The time."""
        return self._now_s

    def sleep_until(self, time_s: float) -> None:
        """Let the time pass until then."""
        self.advance(max(0.0, time_s - self._now_s))

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self._now_s += seconds
        for listener in self._listeners:
            listener(seconds)

    def jump(self, seconds: float) -> None:
        """Set the clock forward or back; no time passes."""
        self._now_s += seconds
