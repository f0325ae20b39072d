"""Latencies as a histogram: constant memory, mergeable, percentiles within 2.5 %.

Bucket b holds latencies from 0.1 ms · 1.05^b up to the next bound; mean and count are exact.

>>> h = LatencyHistogram()
>>> for ms in (10.0, 20.0, 30.0):
...     h.add(ms)
>>> h.count, h.mean_ms, round(h.percentile_ms(0.5))
(3, 20.0, 20)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np

FLOOR_MS = 0.1
GROWTH = 1.05
MANY = 32
_LOG_GROWTH = math.log(GROWTH)


class LatencyHistogram(msgspec.Struct):
    """How many events took how long."""

    buckets: dict[int, int] = msgspec.field(default_factory=dict)
    count: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0

    def add(self, latency_ms: float, count: int = 1) -> None:
        """Count one event, or several alike; a negative latency (clocks of two machines) counts as none."""
        latency_ms = max(latency_ms, 0.0)
        bucket = int(math.log(latency_ms / FLOOR_MS) / _LOG_GROWTH) if latency_ms > FLOOR_MS else 0
        self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.count += count
        self.total_ms += count * latency_ms
        self.max_ms = max(self.max_ms, latency_ms)

    def add_many(self, latencies_ms: list[float]) -> None:
        """Count several events, many of them faster than one by one."""
        if len(latencies_ms) < MANY:
            for latency_ms in latencies_ms:
                self.add(latency_ms)
            return
        values = np.maximum(np.array(latencies_ms), 0.0)
        buckets = (np.log(np.maximum(values, FLOOR_MS) / FLOOR_MS) / _LOG_GROWTH).astype(int)
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self.buckets[int(bucket)] = self.buckets.get(int(bucket), 0) + int(count)
        self.count += len(values)
        self.total_ms += float(values.sum())
        self.max_ms = max(self.max_ms, float(values.max()))

    def merge(self, other: LatencyHistogram) -> None:
        """Add all events of another histogram."""
        if not self.buckets:
            self.buckets = dict(other.buckets)
        else:
            for bucket, count in other.buckets.items():
                self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.count += other.count
        self.total_ms += other.total_ms
        self.max_ms = max(self.max_ms, other.max_ms)

    def since(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """What came after `earlier`, an older state of the same histogram (the maximum is the overall one)."""
        before = earlier.buckets
        return LatencyHistogram(
            {b: grown for b, n in self.buckets.items() if (grown := n - before.get(b, 0)) > 0},
            max(self.count - earlier.count, 0),
            max(self.total_ms - earlier.total_ms, 0.0),
            self.max_ms,
        )

    @property
    def mean_ms(self) -> float:
        """Exact mean; NaN with no events."""
        return self.total_ms / self.count if self.count else math.nan

    def count_above(self, latency_ms: float) -> int:
        """How many events took longer: all of a bucket did if its middle is longer.

        >>> h = LatencyHistogram()
        >>> h.add_many([1.0, 10.0, 3000.0])
        >>> h.count_above(5.0), h.count_above(2000.0), h.count_above(5000.0)
        (2, 1, 0)
        """
        return sum(count for one, count in self.buckets.items() if FLOOR_MS * GROWTH ** (one + 0.5) > latency_ms)

    def share_above(self, latency_ms: float) -> float:
        """The share of events that took longer, as far as buckets tell; NaN without events."""
        return self.count_above(latency_ms) / self.count if self.count else math.nan

    def percentile_ms(self, q: float) -> float:
        """The latency that a share q of the events does not exceed; NaN with no events."""
        if not self.count:
            return math.nan
        rank, seen = q * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return min(FLOOR_MS * math.pow(GROWTH, bucket + 0.5), self.max_ms)
        return self.max_ms


def merged(histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
    """One histogram over all."""
    total = LatencyHistogram()
    for histogram in histograms:
        total.merge(histogram)
    return total
