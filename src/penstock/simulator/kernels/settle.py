"""Source events: on their way, out, or failed."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from penstock.metrics.latency import FLOOR_MS, GROWTH
from penstock.simulator.kernels.arrays import BUCKETS

_LOG_GROWTH = math.log(GROWTH)


@njit(cache=True)
def bucket_of(latency_s: float) -> int:
    """The bucket of the latency histogram, as in metrics.latency."""
    latency_ms = 1000.0 * latency_s
    if latency_ms <= FLOOR_MS:
        return 0
    return min(int(math.log(latency_ms / FLOOR_MS) / _LOG_GROWTH), BUCKETS - 1)


@njit(cache=True)
def leave(histogram: Any, times: Any, counts: Any, latency_s: float) -> None:
    """A source event has left for good."""
    histogram[bucket_of(latency_s)] += 1
    times[0] += latency_s
    if latency_s > times[1]:
        times[1] = latency_s
    if latency_s > times[2]:
        counts[2] += 1
    counts[0] += 1


@njit(cache=True)
def settle(tracking: Any, tally: Any, source: int, born: float, time: float, parts: int, failed: bool) -> None:
    """One derived event became `parts` others, at this time; with none left its source event is out, or failed."""
    if tracking.used[0] == 0:
        if failed:
            tally.counts[1] += 1
        elif parts == 0:
            leave(tally.latency, tally.times, tally.counts, time - born)
        return
    pending, last, broken, window, _ = tracking
    place = source % len(pending)
    pending[place] += parts - 1
    if failed:
        broken[place] = 1
    elif parts == 0 and time > last[place]:
        last[place] = time
    if pending[place] > 0:
        return
    if broken[place]:
        tally.counts[1] += 1
    else:
        leave(tally.latency, tally.times, tally.counts, last[place] - born)
    base = window[0]
    while base < window[1] and pending[base % len(pending)] == 0:
        base += 1
    window[0] = base


@njit(cache=True)
def settle_all(tracking: Any, tally: Any, events: Any) -> None:
    """All these events are lost."""
    for place in range(len(events.time)):
        settle(tracking, tally, events.source[place], events.born[place], events.time[place], 0, True)


@njit(cache=True)
def enter(tracking: Any, sources: Any, copies: int) -> None:
    """Source events enter, each in so many copies."""
    for source in sources:
        place = source % len(tracking.parts)
        tracking.parts[place] = copies
        tracking.last[place] = 0.0
        tracking.failed[place] = 0
        tracking.base[1] = source + 1
