"""The last few rates, some of them missing."""

from __future__ import annotations

import math
from collections import deque


class Recent:
    """The known ones of the last `window` rates, with their places 1, 2, … in it; never empty once one was known.

    >>> recent = Recent(3)
    >>> for rate in (10.0, 20.0, math.nan, 40.0):
    ...     recent.add(rate)
    >>> recent.points
    ([1, 3], [20.0, 40.0])
    """

    def __init__(self, window: int) -> None:
        self.known = 0  # of all that were added
        self._rates: deque[float] = deque(maxlen=window)
        self._last = math.nan

    def __len__(self) -> int:
        return len(self._rates)

    def add(self, rate: float) -> None:
        """Take in a rate, NaN where it is missing, and forget the one that leaves the window."""
        self._rates.append(rate)
        if not math.isnan(rate):
            self.known += 1
            self._last = rate

    @property
    def points(self) -> tuple[list[int], list[float]]:
        """Places and rates; the last known rate at the first place where the whole window is missing."""
        known = {place: rate for place, rate in enumerate(self._rates, start=1) if not math.isnan(rate)}
        known = known or {1: self._last}
        return list(known), list(known.values())
