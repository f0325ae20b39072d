"""The real clock."""

from __future__ import annotations

import threading
import time


class SteadyClock:
    """Seconds since 1970 that never go back or jump, whatever is done to the machine's clock; sleeps until stopped."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        """The time."""
        return time.monotonic() + self._offset_s

    def sleep_until(self, time_s: float) -> None:
        """Return at that time, or at once when the run stops."""
        self._stopped.wait(max(0.0, time_s - self.now()))
