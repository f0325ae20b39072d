"""Keeps the load-balancing grouping fed when no control loop does: how much waits for each replica."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.utilisation import Utilisation, booked

INTERVAL_S = 1.0


class UtilisationFeed:
    """A thread that publishes U of every replica once an interval, until it is stopped."""

    def __init__(
        self, counters: Callable[[], RunCounters], publish: Callable[[Mapping[str, Utilisation]], None]
    ) -> None:
        self._counters = counters
        self._publish = publish
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="penstock-utilisation", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End: the run is over, or a control loop publishes instead."""
        self._stopped.set()

    def _feed(self) -> None:
        earlier = self._counters()
        while not self._stopped.wait(INTERVAL_S):
            later = self._counters()
            snapshot = difference(earlier, later, IntervalRules(INTERVAL_S))
            earlier = later
            loads = {name: load for name, load in snapshot.operators.items() if name not in snapshot.incomplete}
            used = {
                name: booked(load, load.active, snapshot.interval_s, len(load.active)) for name, load in loads.items()
            }
            self._publish({name: one for name, one in used.items() if one is not None})
