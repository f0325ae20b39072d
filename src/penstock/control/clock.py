"""The real clock."""

from __future__ import annotations

import threading
import time

LOOK_S = 0.1  # in which a stop shows


class SteadyClock:
    """Seconds since 1970 that never go back or jump, whatever is done to the machine's clock; sleeps until stopped.

    Who may be woken sleeps in parts, as it waits for one of two things.
    """

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._woken = threading.Event()
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        """The time."""
        return time.monotonic() + self._offset_s

    def sleep_until(self, time_s: float) -> None:
        """Return at that time, or at once when woken, or soon when the run stops."""
        while (left_s := time_s - self.now()) > 0 and not self._stopped.is_set():
            if self._woken.wait(min(left_s, LOOK_S)):
                self._woken.clear()
                return

    def wake(self) -> None:
        """Let who sleeps go on."""
        self._woken.set()
