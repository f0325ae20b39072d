"""How far forecasts were off: sMAPE, RMSE and MAE over the rows whose rate is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import InputError
from penstock.forecast.base import Rates


@dataclass(frozen=True, slots=True)
class Errors:
    """The three errors of a row of forecasts; NaN where no rate was known.

    >>> Errors.of(np.array([100.0, 50.0, 0.0, 8.0]), np.array([100.0, 150.0, 0.0, 8.0]))
    Errors(smape=25.0, rmse=50.0, mae=25.0)
    """

    smape: float
    rmse: float
    mae: float

    @classmethod
    def of(cls, actual: Rates, expected: Rates) -> Errors:
        """All three."""
        return cls(smape(actual, expected), rmse(actual, expected), mae(actual, expected))


def smape(actual: Rates, expected: Rates) -> float:
    """The symmetric error in per cent, the mean of 200·|y − p| / (|y| + |p|), where 0/0 counts as 0.

    >>> smape(np.array([150.0, 0.0]), np.array([50.0, 0.0]))
    50.0
    """
    y, p = _known(actual, expected)
    size = np.abs(y) + np.abs(p)
    shares = np.divide(np.abs(y - p), size, out=np.zeros_like(size), where=size != 0)
    return _mean(200.0 * shares)


def rmse(actual: Rates, expected: Rates) -> float:
    """The root of the mean squared error.

    >>> rmse(np.array([3.0, np.nan, 0.0]), np.array([0.0, 9.0, 4.0]))
    3.5355339059327378
    """
    y, p = _known(actual, expected)
    return float(np.sqrt(_mean((y - p) ** 2)))


def mae(actual: Rates, expected: Rates) -> float:
    """The mean absolute error.

    >>> mae(np.array([3.0, 1.0]), np.array([0.0, 2.0]))
    2.0
    """
    y, p = _known(actual, expected)
    return _mean(np.abs(y - p))


def _known(actual: Rates, expected: Rates) -> tuple[Rates, Rates]:
    """The rows whose rate is not missing."""
    y, p = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if y.shape != p.shape:
        raise InputError(f"errors: rates and forecasts must be as many; got {y.size} and {p.size}")
    known = ~np.isnan(y)
    return y[known], p[known]


def _mean(values: Rates) -> float:
    return float(values.mean()) if values.size else float("nan")
