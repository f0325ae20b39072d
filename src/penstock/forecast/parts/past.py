"""The last rates of a series, gaps filled, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.forecast.base import Rates

_DAYS = 35  # kept of a series
_BOUNDS = (1_000, 12_000)  # rows
_LONGEST_DAY = 20_000  # rows: beyond, a day is not waited for


def rows_kept(day: int) -> int:
    """How many rows of a series with such days are worth keeping: five weeks, within bounds, and three days at least.

    >>> rows_kept(24), rows_kept(288), rows_kept(17_280)
    (1000, 10080, 51840)
    """
    rows = min(max(_DAYS * day, _BOUNDS[0]), _BOUNDS[1])
    return max(rows, 3 * day) if day <= _LONGEST_DAY else rows


@dataclass(frozen=True, slots=True)
class Window:
    """Rates in a row, whether each was known or is a guess, and the number of the first since the start."""

    rates: Rates
    known: NDArray[np.bool_]
    first: int

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def count(self) -> int:
        """All rates since the start, those that have left the window included."""
        return self.first + len(self.rates)

    def extended(self, rates: Rates) -> Window:
        """The window as it would be if these came next."""
        guessed = np.zeros(len(rates), dtype=np.bool_)
        return Window(np.concatenate([self.rates, rates]), np.concatenate([self.known, guessed]), self.first)


class Past:
    """Keeps the last `most` rates; what it takes does not grow.

    >>> past = Past(3)
    >>> for rate in (10.0, 20.0, 30.0, 40.0):
    ...     past.add(rate)
    >>> past.add(50.0, known=False)
    >>> window = past.window
    >>> window.rates.tolist(), window.known.tolist(), window.first
    ([30.0, 40.0, 50.0], [True, True, False], 2)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._rates = np.zeros(2 * most)
        self._known = np.zeros(2 * most, dtype=np.bool_)
        self._end = 0
        self._count = 0

    def __len__(self) -> int:
        return min(self._end, self.most)

    def add(self, rate: float, known: bool = True) -> None:
        """Take in a rate, or a guess in its place."""
        if self._end == len(self._rates):  # seldom: so that a window is always one piece
            for kept in (self._rates, self._known):
                kept[: self.most] = kept[self.most :]
            self._end = self.most
        self._rates[self._end] = rate
        self._known[self._end] = known
        self._end += 1
        self._count += 1

    @property
    def window(self) -> Window:
        """The rates kept; it is a view, good until the next one is added."""
        kept = slice(self._end - len(self), self._end)
        return Window(self._rates[kept], self._known[kept], self._count - len(self))
