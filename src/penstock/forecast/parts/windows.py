"""Windows of a series: what was seen, and what came after it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from penstock.forecast.base import Rates


def filled(rates: Rates) -> Rates:
    """Missing values replaced by the last known one; those at the start by the first known one.

    >>> filled(np.array([np.nan, 4.0, np.nan, np.nan, 6.0])).tolist()
    [4.0, 4.0, 4.0, 4.0, 6.0]
    """
    known = np.flatnonzero(~np.isnan(rates))
    at = np.maximum(np.searchsorted(known, np.arange(len(rates)), side="right") - 1, 0)
    return np.asarray(rates[known[at]], dtype=np.float64)


def remember(recent: deque[float], rate: float) -> None:
    """Take a rate into the window of the last ones; a missing one is the last known, and nothing before the first.

    >>> recent = deque([4.0], maxlen=2)
    >>> remember(recent, math.nan), remember(recent, 6.0), list(recent)
    (None, None, [4.0, 6.0])
    """
    if not math.isnan(rate):
        recent.append(rate)
    elif recent:
        recent.append(recent[-1])


def padded(recent: Sequence[float], window: int) -> Rates:
    """The last rates as one window; where there are too few, the first of them stands for those before it.

    >>> padded([4.0, 5.0], window=4).tolist()
    [4.0, 4.0, 4.0, 5.0]
    """
    return np.array([*[recent[0]] * (window - len(recent)), *recent], dtype=np.float64)


def windows(rates: Rates, window: int, horizon: int) -> tuple[Rates, Rates]:
    """All windows of `window` rates, a row each, and the `horizon` rates that follow each.

    Gaps are filled in the windows. A window after which a rate is missing is left out: nothing is learnt from a guess.

    >>> seen, after = windows(np.array([1.0, 2.0, 3.0, np.nan, 5.0, 6.0]), window=2, horizon=1)
    >>> seen.tolist(), after.tolist()
    ([[1.0, 2.0], [3.0, 3.0], [3.0, 5.0]], [[3.0], [5.0], [6.0]])
    """
    if len(rates) < window + horizon or np.isnan(rates).all():
        return np.empty((0, window)), np.empty((0, horizon))
    after = sliding_window_view(rates[window:], horizon)
    seen = sliding_window_view(filled(rates), window)[: len(after)]
    known = ~np.isnan(after).any(axis=1)
    return seen[known], after[known]
