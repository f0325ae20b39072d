"""How much each member counts, by its own recent errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.forecast.base import Rates

_SHARPNESS = 15.0
_POWER = 1.5  # of the errors: between their size, for the common rows, and their squares, for the peaks
_TRIALS = 5.0
_MEMORY = (100.0, 20.0)  # rows: the time constant at step 0, and what each step adds


class Weights:
    """Weights w ∝ exp(−15·(q − min q) / median q), for each step ahead on its own.

    q is a member's discounted mean of |error|^1.5 over forecasts whose rows have come. A newcomer counts for
    nothing until it has been compared five times, unless nobody has.

    >>> weights = Weights(members=2, steps=1)
    >>> weights.learn(np.array([[90.0], [50.0]]), 100.0)
    >>> weights.mixed(np.array([[200.0], [0.0]])).round().tolist()
    [200.0]

    Cesa-Bianchi and Lugosi, "Prediction, learning, and games", 2006, §2.1.
    """

    def __init__(self, members: int, steps: int) -> None:
        self._errors = np.zeros((members, steps))
        self._seen = np.zeros((members, steps))
        self._kept = 1 - 1 / (_MEMORY[0] + _MEMORY[1] * np.arange(1, steps + 1))

    def learn(self, due: Rates, rate: float) -> None:
        """Take in a rate and what was said of it, a column for each number of steps before."""
        there = ~np.isnan(due)
        errors = np.where(there, np.abs(np.where(there, due, rate) - rate), 0.0) ** _POWER
        self._errors = self._kept * self._errors + errors
        self._seen = self._kept * self._seen + there

    def mixed(self, made: Rates) -> Rates:
        """The members' forecasts as one; NaN where there is none at all."""
        weights = np.where(np.isnan(made), 0.0, self._of_members(~np.isnan(made)))
        return np.asarray((weights * np.nan_to_num(made)).sum(axis=0) / weights.sum(axis=0))

    def _of_members(self, there: NDArray[np.bool_]) -> Rates:
        judged = there & (self._seen >= np.minimum(_TRIALS, self._seen.max(axis=0)))
        errors = np.where(judged, self._errors / np.maximum(self._seen, 1e-9), np.inf)
        ordered = np.sort(errors, axis=0)
        middle = np.take_along_axis(ordered, (judged.sum(axis=0)[None, :] - 1) // 2, axis=0)
        return np.where(judged, np.exp(-_SHARPNESS * (errors - ordered[0]) / (middle + 1e-300)), 0.0)
