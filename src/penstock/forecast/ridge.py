"""The next rates from the last few and from past days, outliers aside."""

from __future__ import annotations

from typing import ClassVar

from penstock.common.checks import whole
from penstock.forecast.parts.alone import Alone
from penstock.forecast.parts.direct import Model
from penstock.forecast.parts.features import Features


class Ridge(Alone):
    """Huber-ridge on the logarithm, one for each step ahead: x(t+k) − x(t) = a_k + b_k·features(t), k = 1…18.

    Features: `lags` last values, the time of day, and, after two days and two weeks, the same time on days and weeks
    past. Coefficients of least Σ ρ(residual) + 5·|b|², over five weeks at most. It is ready after 40 rates.

    >>> ridge = Ridge(day=4, lags=2)
    >>> for n in range(100):
    ...     ridge.learn((100, 200, 300, 200)[n % 4])
    >>> ridge.forecast(3).round(-1).tolist()
    [100.0, 200.0, 300.0]

    Owen, "A robust hybrid of lasso and ridge regression", Contemporary Mathematics 443, 2007.
    """

    name: ClassVar[str] = "ridge"

    def __init__(self, day: int = 288, lags: int = 12) -> None:
        self.day = whole("forecaster 'ridge'", "day", day)
        self.lags = whole("forecaster 'ridge'", "lags", lags)
        super().__init__(Model(Features(lags, (), (day, 7 * day), harmonics=4)), day)
