"""How far off a forecast's last values were, and so how far the next may be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.pending import Pending

_KEPT = 500  # errors for each step
_OFFSET = 0.02  # of the mean rate
_MEMORY = 500.0  # rows of the mean rate


class Spread:
    """Quantiles of the last 500 errors ln((y + c) / (ŷ + c)), for each step ahead; c is 2 % of the mean rate.

    A level is taken as (n + 1)·level of n errors, as conformal prediction does, so that it also holds for few.
    A step without errors of its own yet has those of the step before it; where there are none, it is sure.

    Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005, §2.
    """

    def __init__(self, steps: int) -> None:
        self._pending = Pending(1, steps)
        self._errors = np.full((_KEPT, steps), np.nan)
        self._time = 0
        self._sum = 0.0
        self._seen = 0.0

    def learn(self, rate: float) -> None:
        """Take in the rate of the row that came."""
        kept = 1 - 1 / _MEMORY
        self._sum, self._seen = kept * self._sum + rate, kept * self._seen + 1
        offset = self._offset
        if offset > 0:
            self._errors[self._time % _KEPT] = np.log((rate + offset) / (self._pending.due[0] + offset))
            self._time += 1

    def keep(self, made: Rates) -> None:
        """Take in the forecast that was made after it."""
        self._pending.keep(made[None, :])

    def around(self, made: Rates, levels: Sequence[float]) -> Rates:
        """The forecast moved to these levels, a row for each; steps beyond the last are as unsure as it is."""
        errors = self._at(np.asarray(levels))
        moved = errors[:, np.minimum(np.arange(len(made)), len(errors[0]) - 1)]
        return np.clip((made + self._offset) * np.exp(moved) - self._offset, 0.0, None)

    def _at(self, levels: Rates) -> Rates:
        """The errors at these levels, by level and step."""
        columns = np.sort(self._errors, axis=0)  # NaN come last
        count = np.count_nonzero(~np.isnan(columns), axis=0)
        known = np.maximum(count, 1)
        ranks = np.clip(levels[:, None] * (known + 1) / known, 0.0, 1.0)
        places = np.maximum(np.ceil(known * ranks - 1), 0).astype(int)
        errors = np.where(count, columns[places, np.arange(len(known))], 0.0)
        for step in np.flatnonzero(count[1:] == 0) + 1:
            errors[:, step] = errors[:, step - 1]
        return errors

    @property
    def _offset(self) -> float:
        return _OFFSET * self._sum / self._seen if self._seen else 0.0
