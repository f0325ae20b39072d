"""Members that need no fit."""

from __future__ import annotations

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.features import STEPS
from penstock.forecast.parts.past import Window

PLAIN = 5
_SHORT = 12  # rows
_DAY = (36, 288)  # rows: between these a day counts as one in a mean


def plain(window: Window, day: int) -> Rates:
    """The last value; the means of 12 rows, of a day and of three; the rates a day ago. NaN where history is short.

    >>> from penstock.forecast.parts.past import Past
    >>> past = Past(20)
    >>> for rate in range(1, 14):
    ...     past.add(rate)
    >>> plain(past.window, day=4)[:, :2].tolist()
    [[13.0, 13.0], [7.5, 7.5], [nan, nan], [nan, nan], [10.0, 11.0]]
    """
    wide = min(max(day, _DAY[0]), _DAY[1])
    levels = [
        float(window.rates[-rows:].mean()) if rows <= len(window) else np.nan for rows in (_SHORT, wide, 3 * wide)
    ]
    flat = np.repeat([[window.rates[-1]], *([level] for level in levels)], STEPS, axis=1)
    return np.concatenate([flat, seasonal(window.rates, day, STEPS)[None, :]])


def seasonal(rates: Rates, season: int, horizon: int) -> Rates:
    """The rates of the next rows, one season ago, over and over; NaN where there is no season yet."""
    if len(rates) < season:
        return np.full(horizon, np.nan)
    return rates[len(rates) - season + np.arange(horizon) % season]
