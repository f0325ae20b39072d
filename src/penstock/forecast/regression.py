"""The curve that fits the last rates best: a line, a logarithm or an exponential."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.recent import Recent

HIGHEST_RATE = 1e15  # per second: where an exponential is cut off, far above any stream
_LARGEST_EXPONENT = math.log(HIGHEST_RATE)
_ROUNDING = 1e-9  # of the rates: an error of this size is none


@dataclass(frozen=True, slots=True)
class Fit:
    """One curve through points of time and rate, and its error, the sum of squares Σ (y − ŷ)².

        linear ŷ = a + b·x      logarithmic ŷ = a + b·ln x      exponential ŷ = a·e^(b·x)

    ŷ is cut off below 0, in the error as in what is expected. Rates are per second.

    >>> Fit("exponential", a=10.0, b=math.log(2), error=0.0).rates([1, 2, 3]).round(9).tolist()
    [20.0, 40.0, 80.0]
    >>> Fit("linear", a=30.0, b=-20.0, error=0.0).rates([1, 2]).tolist()
    [10.0, 0.0]
    """

    form: str
    a: float
    b: float
    error: float

    def rates(self, times: Sequence[float]) -> Rates:
        """The curve at these times, none below 0 and none above HIGHEST_RATE."""
        return _curve(self.form, self.a, self.b, np.asarray(times, dtype=np.float64))


def linear_fit(times: Sequence[float], rates: Sequence[float]) -> Fit:
    """The line of least squares; one that stays level where all points have the same time.

    >>> linear_fit([1, 2, 3], [2, 4, 9])
    Fit(form='linear', a=-2.0, b=3.5, error=1.5)
    """
    x, y = _points(times, rates)
    return _fitted("linear", *_line(x, y), (x, y))


def logarithmic_fit(times: Sequence[float], rates: Sequence[float]) -> Fit | None:
    """The line of least squares over ln x; None where a time is not above 0."""
    x, y = _points(times, rates)
    if (x <= 0).any():
        return None
    return _fitted("logarithmic", *_line(np.log(x), y), (x, y))


def exponential_fit(times: Sequence[float], rates: Sequence[float]) -> Fit | None:
    """The line of least squares through ln y, its error measured on y.

    None where a rate is not above 0, or where the curve is too steep for numbers.
    """
    x, y = _points(times, rates)
    if (y <= 0).any():
        return None
    intercept, slope = _line(x, np.log(y))
    if abs(intercept) > 700:  # e^±709 is where floats end
        return None
    return _fitted("exponential", math.exp(intercept), slope, (x, y))


_FORMS: tuple[Callable[[Sequence[float], Sequence[float]], Fit | None], ...] = (
    linear_fit,
    logarithmic_fit,
    exponential_fit,
)


def best_fit(times: Sequence[float], rates: Sequence[float]) -> Fit:
    """The fit of least error; of equal ones the line, then the logarithm.

    Two points lie on all three curves and so get a line; one point stays level.

    >>> best_fit([1, 2, 3, 4], [10, 20, 40, 80]).form
    'exponential'
    >>> best_fit([1, 2, 3, 4], [0, 10, 20, 30])
    Fit(form='linear', a=-10.0, b=10.0, error=0.0)
    """
    fits = [fit for form in _FORMS if (fit := form(times, rates)) is not None]
    return min(fits, key=lambda fit: fit.error)


class Regression:
    """The best of three least-squares fits on the last `window` rates goes on: ŷ(t+h) = f(w+h), f of least Σ (y − ŷ)².

    f is linear (a + b·x), logarithmic (a + b·ln x) or exponential (a·e^(b·x)), with x = 1…w for the rates of the
    window. Never below 0. It is ready after two rates, which make a line; a choice takes three. Missing rates leave
    their places empty.

    >>> regression = Regression(window=4)
    >>> for rate in (500, 10, 20, 40, 80):
    ...     regression.learn(rate)
    >>> regression.forecast(2).round(6).tolist()
    [160.0, 320.0]

    Kotto-Kombi et al., "DABS-Storm: A data-aware approach for elastic stream processing", TLDKS 40, 2019, §4.1.
    """

    def __init__(self, window: int = 10) -> None:
        self.window = whole("forecaster 'regression'", "window", window, least=2)
        self._recent = Recent(window)

    @property
    def ready(self) -> bool:
        """After the second rate."""
        return self._recent.known >= 2

    def learn(self, rate: float) -> None:
        """Take in a rate and forget the one that leaves the window."""
        self._recent.add(checked_rate(rate))

    def forecast(self, horizon: int) -> Rates:
        """Points on the curve, none below 0."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady(f"forecaster 'regression': needs 2 rates; has {self._recent.known}")
        now = len(self._recent)
        return best_fit(*self._recent.points).rates(range(now + 1, now + horizon + 1))


def _points(times: Sequence[float], rates: Sequence[float]) -> tuple[Rates, Rates]:
    if not 1 <= len(times) == len(rates):
        raise InputError(f"regression: needs points, a rate for each time; got {len(times)} and {len(rates)}")
    return np.asarray(times, dtype=np.float64), np.minimum(np.asarray(rates, dtype=np.float64), HIGHEST_RATE)


def _line(x: Rates, y: Rates) -> tuple[float, float]:
    """a and b of least Σ (y − a − b·x)²; b is 0 where x does not vary."""
    middle, level = float(x.mean()), float(y.mean())
    spread = float(((x - middle) ** 2).sum())
    slope = float(((x - middle) * (y - level)).sum()) / spread if spread > 0 else 0.0
    return level - slope * middle, slope


def _fitted(form: str, a: float, b: float, points: tuple[Rates, Rates]) -> Fit:
    x, y = points
    error = float(((y - _curve(form, a, b, x)) ** 2).sum())
    return Fit(form, a, b, error if error > _ROUNDING**2 * float((y**2).sum()) else 0.0)


def _curve(form: str, a: float, b: float, x: Rates) -> Rates:
    if form == "exponential":
        values = np.exp(np.minimum(math.log(a) + b * x, _LARGEST_EXPONENT)) if a > 0 else np.zeros_like(x)
    elif form == "logarithmic":
        values = a + b * np.log(x)
    else:
        values = a + b * x
    return np.clip(values, 0.0, HIGHEST_RATE)
