"""Level, time of day and day of the week, each smoothed."""

from __future__ import annotations

import itertools
import math

import numpy as np

from penstock.common.checks import whole
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.scale import Scale

# α, γ, ω, φ: what is tried. Seasons move slowly, so that noise does not become part of them.
_TRIED = np.array(
    [(a, g, w, p) for a, (g, w), p in itertools.product((0.02, 0.1, 0.4), ((0.05, 0.05), (0.2, 0.15)), (0.3, 0.6, 0.9))]
).T
_KEPT = 1 - 1 / 500  # of past errors, at each row
_CLIP = 5.0  # typical errors: no single row moves the state further
_HIGHEST = 4.0  # times the highest rate so far: no forecast goes further


class HoltWinters:
    """Double-seasonal exponential smoothing on the logarithm, with an AR(1) for what remains.

        e(t) = x(t) − l − d(t) − w(t)      ε(t) = e(t) − φ·e(t−1)
        l += α·ε    d(t) += γ·ε    w(t) += ω·ε
        x̂(t+k) = l + d(t+k) + w(t+k) + φᵏ·e(t)

    d has a place for each row of the day, w for each of the week. Eighteen choices of α, γ, ω and φ run side by side;
    the one of least discounted |ε| forecasts. `day`: rows that make a day. It is ready after two days.

    >>> smooth = HoltWinters(day=3)
    >>> for rate in (10, 20, 30) * 4:
    ...     smooth.learn(rate)
    >>> smooth.forecast(4).round(6).tolist()
    [10.0, 20.0, 30.0, 10.0]

    Taylor, "Short-term electricity demand forecasting using double seasonal exponential smoothing", Journal of the
    Operational Research Society 54, 2003.
    """

    def __init__(self, day: int = 288) -> None:
        self.day = whole("forecaster 'holt_winters'", "day", day)
        self._first = np.zeros(2 * day)  # the rates that it starts from
        self._rows = 0
        self._highest = 0.0
        self._scale = Scale(1.0, 1.0, log=True)
        tried = _TRIED.shape[1]
        self._level, self._left, self._errors = np.zeros(tried), np.zeros(tried), np.zeros(tried)
        self._days, self._weeks = np.zeros((tried, day)), np.zeros((tried, 7 * day))
        self._seen = 0.0

    @property
    def ready(self) -> bool:
        """After two days."""
        return self._rows >= len(self._first)

    def learn(self, rate: float) -> None:
        """Smooth the rate into level and seasons; a missing one moves nothing, and what remains fades."""
        rate = checked_rate(rate)
        missing = math.isnan(rate)
        if missing and not self._rows:
            return
        self._highest = self._highest if missing else max(self._highest, rate)
        if self.ready:
            self._follow(rate)
        else:
            self._first[self._rows] = self._first[self._rows - 1] if missing else rate
        self._rows += 1
        if self._rows == len(self._first):
            self._start()

    def forecast(self, horizon: int) -> Rates:
        """What the best choice of late expects, none below 0."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            needed = f"needs {len(self._first)} rates, two days; has {self._rows}"
            raise NotReady(f"forecaster 'holt_winters': {needed}")
        best = int(self._errors.argmin())
        ahead = np.arange(1, horizon + 1)
        rows = self._rows - 1 + ahead
        seasons = self._days[best, rows % self.day] + self._weeks[best, rows % (7 * self.day)]
        values = self._level[best] + seasons + _TRIED[3, best] ** ahead * self._left[best]
        return self._scale.outward(values, _HIGHEST * self._highest)

    def _start(self) -> None:
        self._scale = Scale.of(self._first, log=True)
        values = self._scale.inward(self._first)
        self._level[:] = values.mean()
        self._days[:] = values.reshape(2, self.day).mean(axis=0) - values.mean()

    def _follow(self, rate: float) -> None:
        alpha, gamma, omega, phi = _TRIED
        if math.isnan(rate):
            self._left = phi * self._left
            return
        day, week = self._rows % self.day, self._rows % (7 * self.day)
        value = float(self._scale.inward(np.array(rate)))
        left = value - self._level - self._days[:, day] - self._weeks[:, week]
        error = left - phi * self._left
        self._errors, self._seen = _KEPT * self._errors + np.abs(error), _KEPT * self._seen + 1
        limit = _CLIP * self._errors / self._seen
        moved = np.clip(error, -limit, limit)
        self._level = self._level + alpha * moved
        self._days[:, day] += gamma * moved
        self._weeks[:, week] += omega * moved
        self._left = left
