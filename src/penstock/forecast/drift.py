"""The last rate, going on as it went."""

from __future__ import annotations

import numpy as np

from penstock.common.checks import whole
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.recent import Recent


class Drift:
    """The line through the first and last rate of a window: ŷ(t+h) = y(t) + h · (y(t) − y(t−w+1)) / (w − 1).

    Never below 0. It is ready after two rates, and draws the line through those it has. Where rates are missing it
    goes through the first and the last known one; one alone stays level.

    >>> drift = Drift(window=3)
    >>> for rate in (10, 25, 30):
    ...     drift.learn(rate)
    >>> drift.forecast(2).tolist()
    [40.0, 50.0]

    Hyndman and Athanasopoulos, "Forecasting: principles and practice", 3rd ed., §5.2.
    """

    def __init__(self, window: int = 3) -> None:
        self.window = whole("forecaster 'drift'", "window", window, least=2)
        self._recent = Recent(window)

    @property
    def ready(self) -> bool:
        """After the second rate."""
        return self._recent.known >= 2

    def learn(self, rate: float) -> None:
        """Take in a rate and forget the one that leaves the window."""
        self._recent.add(checked_rate(rate))

    def forecast(self, horizon: int) -> Rates:
        """Points on the line, none below 0."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady(f"forecaster 'drift': needs 2 rates; has {self._recent.known}")
        times, rates = self._recent.points
        slope = (rates[-1] - rates[0]) / max(1, times[-1] - times[0])
        steps = np.arange(1, horizon + 1, dtype=np.float64) + (len(self._recent) - times[-1])
        return np.clip(rates[-1] + slope * steps, 0.0, None)
