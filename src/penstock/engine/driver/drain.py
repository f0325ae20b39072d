"""Nothing in flight: how the driver finds out."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.metrics.counters import RunCounters

ROUND_EVERY_S = 0.05


class Drain:
    """Two rounds of reports that agree: all that was sent was processed or dropped.

    One round is not enough: a sender may have reported before it sent, a receiver after it processed. `counters` asks
    for a round and gives None if not all answered. What the last round saw is kept, so that short waits get on, too.
    """

    def __init__(self, counters: Callable[[], RunCounters | None]) -> None:
        self._counters = counters
        self._seen: tuple[int, int] | None = None

    def wait(self, deadline: float) -> bool:
        """Wait for that; False if the time is over first, but not before another round."""
        while True:
            seen, self._seen = self._seen, self._round()
            if seen is not None and seen == self._seen:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(ROUND_EVERY_S)

    def _round(self) -> tuple[int, int] | None:
        """What was sent and processed in all, if nothing is in between."""
        now = self._counters()
        if now is None or any(one.backlog for one in now.operators.values()):
            return None
        return sum(now.sources.values()), sum(one.total.processed for one in now.operators.values())
