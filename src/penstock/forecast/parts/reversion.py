"""How far a forecast is to be moved towards the level of the last days, and by how much it is too low."""

from __future__ import annotations

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.pending import Pending

_PRIOR = 1000.0  # rows that speak for no change
_GAIN = 0.005  # of the squared errors: for less, nothing is moved


class Reversion:
    """Moves a forecast towards a level, for each step ahead as far as its own errors have asked for.

        ŷ'(t+k) = ŷ(t+k) + a + b·(level(t) − ŷ(t+k))      a, b of least Σ (y − ŷ')², shrunk as if by 1,000 rows

    Models that are fitted on the logarithm, or with outliers clipped, expect what is common and not the mean: `a` makes
    up for it. Far ahead a forecast that follows the last rows goes too far: `b` takes that back. Nothing is forgotten,
    and a step is moved only while that has lowered its sum of squared errors, by half a per cent at least: a little
    there can be a loss on the common rows.

    >>> reversion = Reversion(steps=1)
    >>> for _ in range(1000):
    ...     reversion.keep(np.array([90.0]), level=90.0)
    ...     reversion.learn(100.0)
    >>> reversion.moved(np.array([90.0]), level=90.0).tolist()
    [95.0]

    Mincer and Zarnowitz, "The evaluation of economic forecasts", in: Economic Forecasts and Expectations, 1969.
    """

    def __init__(self, steps: int) -> None:
        self._pending = Pending(3, steps)
        self._rows = np.zeros(steps)
        self._sums = np.zeros((4, steps))  # of gap, gap², error and gap·error
        self._squares = np.zeros((2, steps))  # of errors as they were, and as they are when moved

    def learn(self, rate: float) -> None:
        """Take in the rate of the row that came."""
        made, level, moved = self._pending.due
        there = ~np.isnan(moved)
        gap, error, left = (np.where(there, one, 0.0) for one in (level - made, rate - made, rate - moved))
        self._rows += there
        self._sums += np.stack([gap, gap**2, error, gap * error])
        self._squares += np.stack([error**2, left**2])

    def keep(self, made: Rates, level: float) -> None:
        """Take in the forecast that was made after it, and the level at that time; NaN where there is none."""
        self._pending.keep(np.stack([made, np.full(len(made), level), self._all(made, level)]))

    def moved(self, made: Rates, level: float) -> Rates:
        """The forecast, moved at the steps where that has helped; none below 0."""
        before, after = self._squares
        helped = (after < (1 - _GAIN) * before) & ~np.isnan(level)
        return np.where(helped, self._all(made, level), made)

    def _all(self, made: Rates, level: float) -> Rates:
        constants, slopes = self._line()
        return np.clip(made + constants + slopes * (level - made), 0.0, None)

    def _line(self) -> tuple[Rates, Rates]:
        """a and b by the normal equations, whose diagonal the prior raises."""
        gap, squares, error, products = self._sums
        rows = self._rows + _PRIOR
        raised = squares * rows / np.maximum(self._rows, 1.0)
        determinant = rows * raised - gap**2
        flat = determinant <= 0  # no row yet, or a forecast that is the level itself
        slopes = np.where(flat, 0.0, rows * products - gap * error) / np.where(flat, 1.0, determinant)
        return (error - slopes * gap) / rows, slopes
