"""Nothing in flight: how the driver finds out."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.engine.channel import ControlServer
from penstock.engine.routing import RoutingTable
from penstock.metrics.counters import RunCounters

ROUND_EVERY_S = 0.05


def ask_all(routing: RoutingTable, server: ControlServer, timeout_s: float) -> bool:
    """Have every connected process report now; whether all have within the time."""
    poll, deadline = routing.poll(), time.monotonic() + timeout_s
    while not server.answered(poll):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def await_drained(counters: Callable[[], RunCounters | None], deadline: float) -> bool:
    """Wait until two rounds of reports agree that all that was sent was processed or dropped.

    One round is not enough: a sender may have reported before it sent, a receiver after it processed. `counters` asks
    for a round and gives None if not all answered.
    """
    seen: tuple[int, int] | None = None
    while time.monotonic() < deadline:
        now = counters()
        totals = None
        if now is not None and all(one.backlog == 0 for one in now.operators.values()):
            totals = (sum(now.sources.values()), sum(one.total.processed for one in now.operators.values()))
            if totals == seen:
                return True
        seen = totals
        time.sleep(ROUND_EVERY_S)
    return False
