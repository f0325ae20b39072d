"""What waits at a source, as a user's own function says: asked beside the loop, which waits for nobody."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

STALE_S = 60.0  # an answer that is older says nothing any more
WITHIN_S = 0.5  # in which an answer is used at once; a later one is used by the next step


class Lag:
    """Rows that wait at the source of a query: the last answer of a function, which may be slow or fail.

    >>> lag = Lag("clicks", lambda: 120)
    >>> lag.ask()
    >>> lag.rows(within_s=5.0)
    120.0
    """

    def __init__(
        self,
        query: str,
        asked: Callable[[], float],
        *,
        stale_s: float = STALE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.query = query
        self.stale_s = stale_s
        self._asked = asked
        self._now = now
        self._since_s = now()
        self._told: tuple[float, float | None] | None = None  # when, and what
        self._thread: threading.Thread | None = None
        self._wrong: str | None = None  # what the log has been told

    def ask(self) -> None:
        """Have the function asked in a thread of its own, unless it still is."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._ask, name=f"penstock-lag-{self.query}", daemon=True)
            self._thread.start()

    def rows(self, within_s: float = 0.0) -> float | None:
        """The answer that comes in time, or else the last; None if that says nothing, or is too old."""
        if self._thread is not None:
            self._thread.join(within_s)
        told_s, rows = self._told or (self._since_s, None)
        if self._now() - told_s <= self.stale_s:
            return rows
        self._say(f"its lag has not been told for {self.stale_s:g} s")
        return None

    def _ask(self) -> None:
        """What is no number, or fails, says nothing."""
        try:
            rows = float(self._asked())
        except Exception as error:
            self._say(f"its lag cannot be asked: {error}")
            rows = math.nan
        else:
            self._say(None if 0 <= rows < math.inf else f"its lag must be a number of at least 0; got {rows}")
        self._told = self._now(), rows if 0 <= rows < math.inf else None

    def _say(self, wrong: str | None) -> None:
        if wrong is not None and wrong != self._wrong:
            log.warning("query '%s': %s; it is left out", self.query, wrong)
        self._wrong = wrong


def ask_all(lags: Mapping[str, Lag], within_s: float = WITHIN_S) -> dict[str, float | None]:
    """What all of them say: asked at the same time, and none is waited for longer than that."""
    until_s = time.monotonic() + within_s
    for one in lags.values():
        one.ask()
    return {name: one.rows(max(0.0, until_s - time.monotonic())) for name, one in lags.items()}
