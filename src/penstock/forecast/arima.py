"""ARIMA: orders and coefficients chosen by the library, the series followed by a filter of our own."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.refitting import Refitting

_VAGUE = 1e6  # the variance of what is not known at the start
_DOUBLINGS = 60  # a start variance that has not settled by then belongs to a process that never does
_SETTLED = 1e-12


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of y(t) = level + drift·t + u(t), where u, differenced, is Σ φ·u(t−i) + ε(t) + Σ θ·ε(t−i).

    `delta` are the weights of earlier u that differencing takes away: (1,) for one difference, none for none.
    """

    phi: tuple[float, ...] = ()
    theta: tuple[float, ...] = ()
    delta: tuple[float, ...] = ()
    level: float = 0.0
    drift: float = 0.0


class ArimaFilter:
    """A Kalman filter on the state-space form: a(t) = T·a(t−1) + R·ε(t), y(t) = mean(t) + Z·a(t).

    A missing rate moves the state on and corrects nothing. Nothing is refitted; a step costs the same at any time.

    >>> walk = ArimaFilter(Coefficients(delta=(1.0,)))
    >>> for rate in (10.0, 14.0, math.nan):
    ...     walk.learn(rate)
    >>> walk.forecast(2).round(3).tolist()
    [14.0, 14.0]

    Durbin and Koopman, "Time series analysis by state space methods", 2nd ed., §3.4.
    """

    def __init__(self, coefficients: Coefficients) -> None:
        self.coefficients = coefficients
        self._observe, self._move, self._noise = _state_space(coefficients)
        self._state = np.zeros(len(self._observe))
        self._spread = _start(self._move, self._noise, len(coefficients.delta))
        self._time = 0

    def learn(self, rate: float) -> None:
        """Go on by one interval and, where its rate is known, correct the state by what was not expected."""
        if self._time:
            self._state = self._move @ self._state
            self._spread = self._move @ self._spread @ self._move.T + self._noise
        self._time += 1
        if math.isnan(rate):
            return
        missed = rate - self._mean(self._time) - self._observe @ self._state
        shared = self._spread @ self._observe
        gain = shared / (self._observe @ shared)
        self._state = self._state + gain * missed
        self._spread = self._spread - np.outer(gain, shared)

    def forecast(self, horizon: int) -> Rates:
        """The state moved on without noise, observed."""
        state, expected = self._state, np.empty(horizon)
        for step in range(horizon):
            state = self._move @ state
            expected[step] = self._mean(self._time + step + 1) + self._observe @ state
        return expected

    def _mean(self, time: int) -> float:
        return self.coefficients.level + self.coefficients.drift * time


class Arima(Refitting):
    """ARIMA(p, d, q): u = y − mean differenced d times, u(t) = Σ φ_i·u(t−i) + ε(t) + Σ θ_i·ε(t−i).

    Orders and coefficients are those that statsforecast's search finds on the training part (least AICc). Afterwards
    its state is kept up to date and nothing is refitted. Without training it fits itself after 200 rates and again
    every `refit`. `season`: also seasonal orders, for seasons of so many rates; slow above a few dozen.

    >>> arima = Arima(refit=500)
    >>> arima.forecast(1)
    Traceback (most recent call last):
    penstock.forecast.base.NotReady: forecaster 'arima': needs 200 rates or to be trained; has 0

    Hyndman and Khandakar, "Automatic time series forecasting", Journal of Statistical Software 27, 2008.
    """

    name = "arima"

    def _fitted(self, rates: Rates) -> ArimaFilter:
        return ArimaFilter(searched(rates, self.season))


def searched(rates: Rates, season: int = 1) -> Coefficients:
    """The coefficients that the library finds best; a constant stays, and where it finds none, the last value does."""
    if rates.min() == rates.max():
        return Coefficients(level=float(rates[0]))
    library: Any = import_module("statsforecast.arima")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on single candidates of the search
        try:
            return coefficients(library.auto_arima_f(rates, seasonal=season > 1, period=season))
        except Exception:  # the library raises nothing more special
            return Coefficients(delta=(1.0,))


def coefficients(model: dict[str, Any]) -> Coefficients:
    """Those of a model of statsforecast, its seasonal polynomials multiplied out."""
    form, found = model["model"], model["coef"]
    return Coefficients(
        phi=tuple(map(float, form["phi"])),
        theta=tuple(map(float, form["theta"])),
        delta=tuple(map(float, form["Delta"] if "Delta" in form else form["delta"])),
        level=float(found.get("intercept", 0.0)),
        drift=float(found.get("drift", 0.0)),
    )


def _state_space(given: Coefficients) -> tuple[Rates, Rates, Rates]:
    """Z, T and R·Rᵀ: first the ARMA part, then the earlier values that differencing needs."""
    size = max(len(given.phi), len(given.theta) + 1)
    past = len(given.delta)
    observe = np.concatenate(([1.0], np.zeros(size - 1), given.delta))
    move = np.zeros((size + past, size + past))
    move[: len(given.phi), 0] = given.phi
    move[range(size - 1), range(1, size)] = 1.0
    if past:
        move[size] = observe
        move[range(size + 1, size + past), range(size, size + past - 1)] = 1.0
    shock = np.concatenate(([1.0], given.theta, np.zeros(size - 1 - len(given.theta) + past)))
    return observe, move, np.outer(shock, shock)


def _start(move: Rates, noise: Rates, past: int) -> Rates:
    """The variance before the first rate: that of the ARMA part left to itself, Σ Tⁱ·N·Tⁱᵀ, and vague for the past."""
    size = len(move) - past
    power, spread = move[:size, :size], noise[:size, :size]
    for _ in range(_DOUBLINGS):
        more = power @ spread @ power.T
        spread = spread + more
        if np.abs(more).max() <= _SETTLED * np.abs(spread).max() or np.abs(spread).max() > _VAGUE:
            break
        power = power @ power
    start = np.eye(size + past) * _VAGUE
    start[:size, :size] = spread
    return start
