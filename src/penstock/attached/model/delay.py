"""How late rows are: from their arrival to the end of their batch, by row."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.metrics.latency import LatencyHistogram

PARTS = 20  # of a batch's rows, each taken to have come at its middle


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of a batch's rows, spread evenly between those of the last and the first that came.

    >>> Delays(rows=100, least_s=2.0, most_s=6.0).late(5.0)
    25
    """

    rows: int
    least_s: float
    most_s: float

    def late(self, target_s: float) -> int:
        """Rows that took longer."""
        if self.most_s <= target_s:
            return 0
        if self.least_s >= target_s:
            return self.rows
        return round(self.rows * (self.most_s - target_s) / (self.most_s - self.least_s))


@dataclass(slots=True)
class DelaySum:
    """The delays of many batches: a histogram, and how many rows were late."""

    target_s: float
    late: int = 0
    histogram: LatencyHistogram = field(default_factory=LatencyHistogram)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.histogram.count

    def add(self, delays: Delays) -> None:
        """Count a batch."""
        self.late += delays.late(self.target_s)
        done, width_s = 0, (delays.most_s - delays.least_s) / PARTS
        for part in range(PARTS):
            upto = delays.rows * (part + 1) // PARTS
            if upto > done:
                self.histogram.add(1000 * (delays.least_s + (part + 0.5) * width_s), upto - done)
            done = upto
