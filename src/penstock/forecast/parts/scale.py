"""The scale on which a model sees rates: their logarithm, or their level over the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.forecast.base import Rates

_LOWEST = 0.02  # of the mean: no rate counts as less on the logarithmic scale, so that zeros stay in sight
_LEAST_OFFSET = 1e-3  # of the mean


@dataclass(frozen=True, slots=True)
class Scale:
    """x = ln(y/unit + offset), or x = y/unit where it is not logarithmic.

        unit = mean y      offset = max(0.001, 0.02 − min y / unit)

    >>> scale = Scale.of(np.array([0.0, 100.0, 200.0]), log=True)
    >>> scale.offset
    0.02
    >>> scale.outward(scale.inward(np.array([0.0, 50.0]))).round(9).tolist()
    [0.0, 50.0]
    """

    unit: float
    offset: float
    log: bool

    @classmethod
    def of(cls, rates: Rates, log: bool) -> Scale:
        """The scale that suits these rates; all zeros suit any."""
        unit = float(rates.mean()) or 1.0
        return cls(unit, max(_LEAST_OFFSET, _LOWEST - float(rates.min()) / unit), log)

    def inward(self, rates: Rates) -> Rates:
        """Rates on this scale."""
        return np.log(rates / self.unit + self.offset) if self.log else rates / self.unit

    def outward(self, values: Rates, most: float = np.inf) -> Rates:
        """Values on this scale as rates, none below 0 and none above `most`."""
        if self.log:
            values = np.exp(np.minimum(values, np.log(most / self.unit + self.offset))) - self.offset
        return np.clip(values * self.unit, 0.0, most)
