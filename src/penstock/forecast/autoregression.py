"""The next rates from the last few."""

from __future__ import annotations

from typing import ClassVar

from penstock.common.checks import whole
from penstock.forecast.parts.alone import Alone
from penstock.forecast.parts.direct import Model
from penstock.forecast.parts.features import Features

_DAY = 288  # rows: it knows of no days, and refits as often as one that has such


class Autoregression(Alone):
    """AR(p) on the logarithm, one for each step ahead: x(t+k) − x(t) = a_k + Σ_{i<p} b_ki·x(t−i), k = 1…18.

    Coefficients of least squares with a small penalty, over the last 10,080 rates at most. It is ready after 40.

    >>> ar = Autoregression(lags=2)
    >>> for n in range(60):
    ...     ar.learn(100 if n % 2 else 300)
    >>> ar.forecast(3).round(-1).tolist()
    [300.0, 100.0, 300.0]

    Marcellino, Stock and Watson, "A comparison of direct and iterated multistep AR methods", Journal of Econometrics
    135, 2006.
    """

    name: ClassVar[str] = "ar"

    def __init__(self, lags: int = 12) -> None:
        self.lags = whole("forecaster 'ar'", "lags", lags)
        super().__init__(Model(Features(lags), penalty=1.0, robust=False), _DAY)
