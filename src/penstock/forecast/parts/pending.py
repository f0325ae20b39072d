"""Forecasts that wait for their rows."""

from __future__ import annotations

import numpy as np

from penstock.forecast.base import Rates


class Pending:
    """Keeps what members said of the next `steps` rows until those rows have come.

    >>> pending = Pending(members=1, steps=2)
    >>> pending.keep(np.array([[11.0, 12.0]]))
    >>> pending.keep(np.array([[21.0, 22.0]]))
    >>> pending.due.tolist()
    [[21.0, 12.0]]
    """

    def __init__(self, members: int, steps: int) -> None:
        self._made = np.full((steps, members, steps), np.nan)
        self._time = 0

    def keep(self, made: Rates) -> None:
        """Take in what was said at the row that just came: a line for each member."""
        self._made[self._time % len(self._made)] = made
        self._time += 1

    @property
    def due(self) -> Rates:
        """What was said of the next row, one step ago, two steps ago, …; NaN where nothing was."""
        back = np.arange(len(self._made))
        return self._made[(self._time - 1 - back) % len(self._made), :, back].T
