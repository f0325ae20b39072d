"""ETS, exponential smoothing: form and parameters chosen by the library, the series followed by a recursion of ours."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.forecast.base import Rates
from penstock.forecast.parts.refitting import Refitting

_LONGEST_SEASON = 24  # the library's limit
_LEAST_FACTOR = 1e-9  # a multiplicative season divides by it


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How much of an error goes into the level, the slope and the season; `damping` is of the slope."""

    level: float
    slope: float = 0.0
    season: float = 0.0
    damping: float = 1.0
    multiplied: bool = False  # whether seasons multiply the level, or are added to it


class EtsState:
    """Level l, slope b and seasons s, corrected by every rate:

        expected = l + φ·b, with the season s(t−m) added or multiplied
        l ← (l + φ·b) + α·(y without season − (l + φ·b))     b ← φ·b + β/α·(Δl − φ·b)     s ← s + γ·(y without l − s)

    A missing rate moves all on as if it had been what was expected.

    >>> state = EtsState(Smoothing(level=0.5), level=10.0)
    >>> state.learn(20.0), state.forecast(2).tolist()
    (None, [15.0, 15.0])
    """

    def __init__(self, smoothing: Smoothing, level: float, slope: float = 0.0, seasons: tuple[float, ...] = ()) -> None:
        self.smoothing = smoothing
        self._level, self._slope = level, slope
        self._seasons = list(seasons)  # the oldest first, which is that of the next rate

    def learn(self, rate: float) -> None:
        """Go on by one interval."""
        how, season = self.smoothing, self._seasons[0] if self._seasons else 0.0
        before, slope = self._level, how.damping * self._slope
        expected = before + slope
        self._level, self._slope = expected, slope
        if not math.isnan(rate):
            self._level += how.level * (self._without(rate, season) - expected)
            self._slope += how.slope / how.level * (self._level - before - slope)
            if self._seasons:
                season += how.season * (self._without(rate, expected) - season)
        self._seasons = [*self._seasons[1:], season] if self._seasons else []

    def forecast(self, horizon: int) -> Rates:
        """The level and the damped slope, with the seasons."""
        factors = self.smoothing.damping ** np.arange(1, horizon + 1)
        expected = self._level + self._slope * np.cumsum(factors)
        if not self._seasons:
            return np.asarray(expected, dtype=np.float64)
        seasons = np.resize(self._seasons, horizon)
        return np.asarray(expected * seasons if self.smoothing.multiplied else expected + seasons, dtype=np.float64)

    def _without(self, rate: float, part: float) -> float:
        """The rate with a season, or a level, taken out of it."""
        if not (self._seasons and self.smoothing.multiplied):
            return rate - part
        return rate / (part if abs(part) > _LEAST_FACTOR else math.copysign(_LEAST_FACTOR, part))


class Ets(Refitting):
    """Exponential smoothing with a level, and a slope and seasons where they pay: ŷ(t+h) = l + (φ + … + φ^h)·b.

    The form (additive or multiplicative errors and seasons, damped slope or not) and its parameters are those of least
    AICc that statsforecast finds on the training part; afterwards nothing is refitted. Without training it fits itself
    after 200 rates and again every `refit`. `season`: rates in a season, at most 24; 1 is none.

    >>> Ets(season=96)
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster 'ets': season must be at most 24 rates; got 96

    Hyndman, Koehler, Ord and Snyder, "Forecasting with exponential smoothing", 2008.
    """

    name = "ets"

    def __init__(self, season: int = 1, refit: int = 1000) -> None:
        super().__init__(season, refit)
        if season > _LONGEST_SEASON:
            raise InputError(f"forecaster 'ets': season must be at most {_LONGEST_SEASON} rates; got {season}")

    def _fitted(self, rates: Rates) -> EtsState:
        library: Any = import_module("statsforecast.ets")

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # on single candidates of the search
            try:
                return state_of(library.ets_f(rates, m=self.season, model="ZZZ"))
            except Exception:  # the library raises nothing more special
                return EtsState(Smoothing(level=1.0), level=float(rates[0]))


def state_of(model: dict[str, Any]) -> EtsState:
    """The recursion of a model of statsforecast, before its first rate."""
    _, trend, season, damped = model["components"]
    alpha, beta, gamma, phi = (float(value) for value in model["par"][:4])
    start = [float(value) for value in model["par"][4:]]
    smoothing = Smoothing(
        level=alpha,
        slope=beta if trend != "N" else 0.0,
        season=gamma if season != "N" else 0.0,
        damping=phi if damped == "D" else 1.0,
        multiplied=season == "M",
    )
    slope = start[1] if trend != "N" else 0.0
    seasons = start[2 if trend != "N" else 1 :] if season != "N" else []
    return EtsState(smoothing, start[0], slope, tuple(reversed(seasons)))
