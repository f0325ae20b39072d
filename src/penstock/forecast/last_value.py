"""The last value, for ever."""

from __future__ import annotations

import math

import numpy as np

from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate


class LastValue:
    """Tomorrow is as today: ŷ(t+h) = y(t). What PSPS assumes of λ_G.

    >>> last = LastValue()
    >>> last.learn(100), last.learn(120)
    (None, None)
    >>> last.forecast(2).tolist()
    [120.0, 120.0]

    Wladdimiro et al., SBAC-PAD 2022, equation 2a.
    """

    def __init__(self) -> None:
        self._last: float | None = None

    @property
    def ready(self) -> bool:
        """After the first rate."""
        return self._last is not None

    def learn(self, rate: float) -> None:
        """Keep the rate; a missing one leaves the one before it."""
        rate = checked_rate(rate)
        if not math.isnan(rate):
            self._last = rate

    def forecast(self, horizon: int) -> Rates:
        """The last rate, `horizon` times."""
        horizon = checked_horizon(horizon)
        if self._last is None:
            raise NotReady("forecaster 'last_value': needs 1 rate; has none")
        return np.full(horizon, self._last)
