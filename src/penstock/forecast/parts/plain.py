"""Members that need no fit."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.features import STEPS
from penstock.forecast.parts.past import Window

PLAIN = 5
SLOW = 3  # the place of the slowest mean
_SHORT = 12  # rows
_DAY = (36, 288)  # rows: between these a day counts as one in a mean
_SEEN = 4  # times its rows: what is older hardly counts in a mean


def plain(window: Window, day: int) -> Rates:
    """The last value; means of 12 rows, of a day and of three; the rates a day ago. NaN where history is short.

    The means are exponential ones, of the same mean age as a plain mean of so many rows: no rate leaves them at once.

    >>> from penstock.forecast.parts.past import Past
    >>> past = Past(20)
    >>> for rate in range(1, 14):
    ...     past.add(rate)
    >>> plain(past.window, day=4)[:, :2].round(1).tolist()
    [[13.0, 13.0], [9.2, 9.2], [nan, nan], [nan, nan], [10.0, 11.0]]
    """
    wide = day_in_means(day)
    levels = [_mean(window.rates, rows) for rows in (_SHORT, wide, 3 * wide)]
    flat = np.repeat([[window.rates[-1]], *([level] for level in levels)], STEPS, axis=1)
    return np.concatenate([flat, seasonal(window.rates, day, STEPS)[None, :]])


def day_in_means(day: int) -> int:
    """The rows that count as a day in a mean: enough to be one, and not so many that it is slow to follow.

    >>> day_in_means(24), day_in_means(144), day_in_means(1440)
    (36, 144, 288)
    """
    return min(max(day, _DAY[0]), _DAY[1])


def _mean(rates: Rates, rows: int) -> float:
    """Σ c^i·y(t−i) / Σ c^i with c = (rows − 1) / (rows + 1); NaN where there are fewer rows than that."""
    if len(rates) < rows:
        return np.nan
    seen = rates[-_SEEN * rows :]
    weights = _weights(rows)[-len(seen) :]
    return float(seen @ weights / weights.sum())


@lru_cache
def _weights(rows: int) -> Rates:
    """c^i, the latest last."""
    return np.asarray(((rows - 1) / (rows + 1)) ** np.arange(_SEEN * rows - 1, -1, -1), np.float64)


def seasonal(rates: Rates, season: int, horizon: int) -> Rates:
    """The rates of the next rows, one season ago, over and over; NaN where there is no season yet."""
    if len(rates) < season:
        return np.full(horizon, np.nan)
    return rates[len(rates) - season + np.arange(horizon) % season]
