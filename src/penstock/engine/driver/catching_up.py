"""Catching up after a fault, with whole pools, until what was done again and what came meanwhile is worked off.

The replicas of a pool that are not active are there anyway. With twice as many at work, what came since the last
checkpoint is done again in half the time, and what waits after that is gone several times sooner.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

from penstock.engine.driver.routing import RoutingTable
from penstock.metrics.counters import RunCounters

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1
SOON_S = 0.1  # what is done within so long does not count as waiting
PATIENCE_S = 5.0  # whole pools that get no further for so long are of no use


class Wait:
    """Whether a run that catches up has done so, from its counters again and again.

    It has when no more waits at an operator than its pool, or than it does in `SOON_S`, and no more outside than
    enters in that time. It also has when what waits has not become less for `PATIENCE_S`: more comes than whole pools
    can do, and how many replicas there are is again for others to say.
    """

    def __init__(self) -> None:
        self._last: RunCounters | None = None
        self._least, self._least_s = math.inf, math.inf

    def is_over(self, now: RunCounters) -> bool:
        """Look once more."""
        last, self._last = self._last, now
        waiting = sum(one.backlog for one in now.operators.values()) + sum(now.lag.values())
        if waiting < self._least:
            self._least, self._least_s = waiting, now.time_s
        if last is None or now.time_s <= last.time_s:
            return False
        return _waits_little(last, now) or now.time_s - self._least_s >= PATIENCE_S


def _waits_little(last: RunCounters, now: RunCounters) -> bool:
    share = SOON_S / (now.time_s - last.time_s)
    for name, one in now.operators.items():
        done = one.total.processed - last.operators[name].total.processed
        if one.backlog > max(one.pool, share * done):
            return False
    entered = {name: count - last.sources.get(name, 0) for name, count in now.sources.items()}
    return all(lag <= max(1.0, share * entered.get(name, 0)) for name, lag in now.lag.items())


class CatchingUp:
    """Whole pools from a death on; a thread looks when they are no longer needed."""

    def __init__(
        self, routing: RoutingTable | None, counters: Callable[[], RunCounters | None], delivered: Callable[[], None]
    ) -> None:
        self._routing = routing  # None: pools stay as they are
        self._counters = counters  # None while events are done again that sinks had before
        self._delivered = delivered  # called when sinks have all again that they had
        self._lock = threading.Lock()
        self._watching = False
        self._deaths = 0
        self._stopped = threading.Event()

    def begin(self) -> None:
        """A query has died, and the next attempt is about to begin."""
        with self._lock:
            self._deaths += 1
            if self._routing is not None:
                self._routing.spread()
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="penstock-catching-up", daemon=True).start()

    @property
    def lasting(self) -> bool:
        """Whether it goes on."""
        return self._watching

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def _watch(self) -> None:
        deaths, wait = 0, Wait()
        while not self._stopped.wait(LOOK_EVERY_S):
            try:
                now = self._counters()
            except Exception as error:  # the run is about to fail: others say why
                log.debug("catching up: %s", error)
                continue
            if now is None:
                continue
            if deaths != self._deaths:
                deaths, wait = self._deaths, Wait()
                self._delivered()
            if wait.is_over(now) and self._end(deaths):
                return

    def _end(self, deaths: int) -> bool:
        """Go back to those that are asked for, unless it has died again."""
        with self._lock:
            if deaths != self._deaths:
                return False
            if self._routing is not None:
                self._routing.gather()
            self._watching = False
            return True
