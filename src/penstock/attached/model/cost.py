"""What batches cost: slot-seconds by row and by batch, and the time that no slot can shorten, by regression."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from penstock.attached.model.progress import Batch

HALF_LIFE_S = 300.0  # after so long a batch counts half
CERTAIN = 0.3  # the prior of a slope counts as much as one point so far from the mean, as a share of it
SMALLEST = 1e-9
REMEMBERED = 200  # batches whose times are compared with what was foretold
COLD = 2  # batches with rows, the first of all: Java compiles, and Python workers start
FEWEST = 10  # of them, before what they say is believed
UNKNOWN_SPREAD = 1.25  # until then: batches may take a quarter longer than foretold
WIDEST_SPREAD = 3.0


class Line:
    """y = a + k · x by least squares, neither below 0; earlier points fade, and without spread in x a prior holds.

        k = (cov + τ · k₀) / (var + τ)      τ = (0.3 · mean x)² / n      a = mean y − k · mean x

    >>> line = Line()
    >>> for rows in (100, 200, 300):
    ...     line.learn(rows, 0.5 + 0.01 * rows)
    >>> [round(one, 3) for one in line.fit()]
    [0.424, 0.01]
    >>> alone = Line()
    >>> alone.learn(100, 1.5)
    >>> alone.fit(), alone.fit(prior=0.01)
    ((0.0, 0.015), (0.5, 0.01))
    """

    def __init__(self) -> None:
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def learn(self, x: float, y: float, fade: float = 1.0) -> None:
        """Take in a point; those before count so much less. One that is no number counts nothing."""
        if not (SMALLEST < x < math.inf and 0 <= y < math.inf):
            return
        self._weight = fade * self._weight + 1
        self._x, self._y = fade * self._x + x, fade * self._y + y
        self._xx, self._xy = fade * self._xx + x * x, fade * self._xy + x * y

    @property
    def known(self) -> bool:
        """Whether there is any point."""
        return self._weight > 0

    def fit(self, prior: float | None = None) -> tuple[float, float]:
        """a and k. The prior of the slope is that through the origin, unless another is given."""
        if not self.known:
            return 0.0, prior or 0.0
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        through = mean_y / mean_x
        variance = max(0.0, self._xx / self._weight - mean_x**2)
        shared = self._xy / self._weight - mean_x * mean_y
        pull = (CERTAIN * mean_x) ** 2 / self._weight
        slope = max(0.0, (shared + pull * (through if prior is None else prior)) / (variance + pull))
        slope = min(slope, through)  # else the intercept would be below 0
        return max(0.0, mean_y - slope * mean_x), slope


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a batch of n rows takes on r slots: fixed + spread · (by_batch + by_row · n) / r seconds.

    `spread` is how unevenly the work lies on the slots, at least 1. `surprise`: the share of batches that is asked for
    took at most so many times what this says.
    """

    by_row_s: float  # slot-seconds
    by_batch_s: float  # slot-seconds
    fixed_s: float  # by the clock, whatever the slots
    spread: float = 1.0
    surprise: float = UNKNOWN_SPREAD

    def work_s(self, rows: float) -> float:
        """Slot-seconds of a batch."""
        return self.by_batch_s + self.by_row_s * rows

    def seconds(self, rows: float, slots: float) -> float:
        """How long a batch takes.

        >>> Cost(by_row_s=0.01, by_batch_s=0.2, fixed_s=0.3).seconds(rows=380, slots=4)
        1.3
        """
        return self.fixed_s + self.spread * self.work_s(rows) / max(slots, 1e-9)


class CostModel:
    """Learns what batches cost, from what they took.

        core seconds = by_batch + by_row · rows      seconds = fixed + spread · core seconds / slots

    Where it is never known what tasks took, all that a batch took on all slots is taken for work; where it is known of
    some batches, these count. `late`, the share of rows that may be late, picks the surprise. The first two batches
    count until there is a third.
    """

    def __init__(self, late: float = 0.01) -> None:
        self.late = late
        self._work = Line()
        self._time = Line()
        self._last_s: float | None = None
        self._measured = False  # what tasks took is known of some batch
        self._learnt = 0
        self._ratios: deque[float] = deque(maxlen=REMEMBERED)

    def learn(self, batch: Batch) -> None:
        """Take in a batch that had rows; if its slots changed meanwhile, only its work counts."""
        slots = _slots(batch)
        core_s = batch.core_s if batch.core_s is not None or self._measured else batch.seconds * slots
        if batch.rows <= 0 or not 0 < batch.seconds < math.inf or not core_s:
            return
        self._learnt += 1
        if self._learnt == COLD + 1 or (batch.core_s is not None and not self._measured):
            self._work, self._time = Line(), Line()
            self._ratios.clear()
        self._measured = self._measured or batch.core_s is not None
        known, fade = self.cost, self._fade(batch.end_s)
        self._work.learn(batch.rows, core_s, fade)
        if slots > 0:
            self._time.learn(core_s / slots, batch.seconds, fade)
            if known is not None:
                self._ratios.append(batch.seconds / max(known.seconds(batch.rows, slots), SMALLEST))

    def _fade(self, time_s: float) -> float:
        last_s, self._last_s = self._last_s, time_s
        return 1.0 if last_s is None else 2 ** (-max(0.0, time_s - last_s) / HALF_LIFE_S)

    @property
    def cost(self) -> Cost | None:
        """What is known; None before the first batch with rows."""
        if not self._work.known:
            return None
        by_batch_s, by_row_s = self._work.fit()
        fixed_s, spread = self._time.fit(prior=1.0)
        return Cost(
            by_row_s=by_row_s, by_batch_s=by_batch_s, fixed_s=fixed_s, spread=max(1.0, spread), surprise=self._surprise
        )

    @property
    def _surprise(self) -> float:
        """The quantile 1 − late of what batches took over what was foretold; the worst of all never counts."""
        if len(self._ratios) < FEWEST:
            return UNKNOWN_SPREAD
        ranked = sorted(self._ratios)
        place = min(len(ranked) - 2, math.ceil((1 - self.late) * len(ranked)) - 1)
        return min(max(1.0, ranked[place]), WIDEST_SPREAD)


def _slots(batch: Batch) -> float:
    """The slots that the batch could use."""
    there = batch.slots or 0.0
    return min(there, batch.tasks) if batch.tasks else there
