"""What came one season ago comes again."""

from __future__ import annotations

import math

import numpy as np

from penstock.common.checks import flag, whole
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.plain import seasonal


class SeasonalNaive:
    """The rate one season ago: ŷ(t+h) = y(t+h−s·⌈h/s⌉), where s is a day, or a week with `week`.

    `day`: rows that make a day. It is ready after one season. Where a rate is missing, that of the season before it
    stands in; in the first season, the rate before it.

    >>> naive = SeasonalNaive(day=3)
    >>> for rate in (10, 20, 30, 11):
    ...     naive.learn(rate)
    >>> naive.forecast(4).tolist()
    [20.0, 30.0, 11.0, 20.0]

    Hyndman and Athanasopoulos, "Forecasting: principles and practice", 3rd ed., §5.2.
    """

    def __init__(self, day: int = 288, week: bool = False) -> None:
        self.day = whole("forecaster 'seasonal_naive'", "day", day)
        self.week = flag("forecaster 'seasonal_naive'", "week", week)
        self.season = 7 * day if week else day
        self._rates = np.zeros(self.season)  # by place in the season
        self._rows = 0

    @property
    def ready(self) -> bool:
        """After one season."""
        return self._rows >= self.season

    def learn(self, rate: float) -> None:
        """Put the rate in its place in the season."""
        rate = checked_rate(rate)
        place = self._rows % self.season
        if math.isnan(rate):
            if not self._rows:
                return
            rate = self._rates[place] if self.ready else self._rates[place - 1]
        self._rates[place] = rate
        self._rows += 1

    def forecast(self, horizon: int) -> Rates:
        """The last season, over and over."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            rows = f"{self.season} rates, one season; has {self._rows}"
            raise NotReady(f"forecaster 'seasonal_naive': needs {rows}")
        return seasonal(np.roll(self._rates, -(self._rows % self.season)), self.season, horizon)
