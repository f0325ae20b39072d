"""The mean of the last few rates."""

from __future__ import annotations

import numpy as np

from penstock.common.checks import whole
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.recent import Recent


class MovingAverage:
    """The mean of the last `window` rates: ŷ(t+h) = (y(t) + … + y(t−w+1)) / w.

    It is ready after the first rate, and takes the mean of those it has. Missing ones do not count; where all
    of the window is missing, the last known rate stays.

    >>> average = MovingAverage(window=2)
    >>> for rate in (10, 20, 40):
    ...     average.learn(rate)
    >>> average.forecast(2).tolist()
    [30.0, 30.0]

    Hyndman and Athanasopoulos, "Forecasting: principles and practice", 3rd ed., §5.2.
    """

    def __init__(self, window: int = 5) -> None:
        self.window = whole("forecaster 'moving_average'", "window", window)
        self._recent = Recent(window)

    @property
    def ready(self) -> bool:
        """After the first rate."""
        return self._recent.known >= 1

    def learn(self, rate: float) -> None:
        """Take in a rate and forget the one that leaves the window."""
        self._recent.add(checked_rate(rate))

    def forecast(self, horizon: int) -> Rates:
        """The mean, `horizon` times."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady("forecaster 'moving_average': needs 1 rate; has none")
        _, rates = self._recent.points
        return np.full(horizon, sum(rates) / len(rates))
