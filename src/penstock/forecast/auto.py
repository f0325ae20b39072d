"""Several cheap models at once, each trusted as far as it was right of late."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.correction import Correction
from penstock.forecast.parts.direct import Direct, Model, further
from penstock.forecast.parts.features import STEPS, Features
from penstock.forecast.parts.past import Past, Window, rows_kept
from penstock.forecast.parts.pending import Pending
from penstock.forecast.parts.plain import PLAIN, SLOW, day_in_means, plain
from penstock.forecast.parts.reversion import Reversion
from penstock.forecast.parts.spread import Spread
from penstock.forecast.parts.weights import Weights


def _models(day: int) -> tuple[Model, ...]:
    """The regressions, simple ones first; those with bends are corrected by their last errors."""
    week = (day, 7 * day)
    wide = Features(36, (6, 24, 96), week, harmonics=6)
    return (
        Model(Features(12, (), week, harmonics=4)),
        Model(wide),
        Model(Features(12, (24, 96, 288), (day,)), log=False, robust=False),
        Model(wide, log=False, penalty=30.0, bends=300),
        Model(wide, log=True, penalty=30.0, bends=200, seed=1),
        Model(Features(1, (6, 24, day_in_means(day))), log=False, robust=False),
    )


def _checked_level(level: object) -> float | None:
    if level is None or (isinstance(level, float) and 0 < level < 1):
        return level
    raise InputError(f"forecaster 'auto': level must be above 0 and below 1; got {level!r}")


class Auto:
    """A weighted mean of cheap models, for each step ahead by their own recent errors: ŷ(t+k) = Σ w_m(k)·ŷ_m(t+k).

    The members: the last value, means of the last rows and days, the rate a day ago; and, as soon as there is enough
    history, regressions of the next 18 rows on lags, past days and weeks, on the rates and on their logarithm, two of
    them with random bends and corrected by their last errors, one on means alone. Where that has helped, what they
    come to is moved towards the mean of the last days. See `parts` for each. It is ready after two rates. Beyond 18
    rows it goes on from its own forecast. A missing rate is filled with what was expected, and not learnt from.

    `day`: rows that make a day. `level`: the quantile that `forecast` gives; None for the mean.

    >>> auto = Auto(day=4)
    >>> for rate in (10, 20, 30, 20) * 30:
    ...     auto.learn(rate)
    >>> auto.forecast(3).round().tolist()
    [10.0, 20.0, 30.0]

    Bates and Granger, "The combination of forecasts", Operational Research Quarterly 20, 1969.
    """

    def __init__(self, day: int = 288, level: float | None = None) -> None:
        self.day = whole("forecaster 'auto'", "day", day)
        self.level = _checked_level(level)
        self._past = Past(rows_kept(day))
        self._models = [Direct(model, day, turn) for turn, model in enumerate(_models(day))]
        self._corrections = {place: Correction(STEPS) for place, one in enumerate(self._models) if one.model.bends}
        self._weights = Weights(PLAIN + len(self._models), STEPS)
        self._pending = Pending(PLAIN + len(self._models), STEPS)
        self._reversion = Reversion(STEPS)
        self._spread = Spread(STEPS)
        self._next = np.full(STEPS, np.nan)
        self._known = 0

    @property
    def ready(self) -> bool:
        """After the second rate."""
        return self._known >= 2

    def learn(self, rate: float) -> None:
        """Compare the rate with what was said of it, take it in, refit what is due and look ahead."""
        rate = checked_rate(rate)
        missing = math.isnan(rate)
        if missing and not len(self._past):
            return
        for correction in self._corrections.values():
            correction.learn(rate)
        if not missing:
            self._known += 1
            self._weights.learn(self._pending.due, rate)
            self._reversion.learn(rate)
            self._spread.learn(rate)
        self._past.add(float(self._next[0]) if missing else rate, not missing)
        self._look_ahead(self._past.window)

    def forecast(self, horizon: int) -> Rates:
        """The members' weighted mean, or the quantile of `level`; none below 0."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady(f"forecaster 'auto': needs 2 rates; has {self._known or 'none'}")
        mean = self._mean(horizon)
        return mean if self.level is None else self._spread.around(mean, [self.level]).ravel()

    def quantiles(self, horizon: int, levels: Sequence[float]) -> Rates:
        """The mean moved by the quantiles of its own last errors, step by step; a row for each level."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady(f"forecaster 'auto': needs 2 rates; has {self._known or 'none'}")
        for level in levels:
            _checked_level(level)
        return self._spread.around(self._mean(horizon), levels)

    def _look_ahead(self, window: Window) -> None:
        for model in self._models:
            model.learn(window)
        made = self._made(window)
        for place, correction in self._corrections.items():
            made[PLAIN + place] = correction.corrected(made[PLAIN + place])
        self._pending.keep(made)
        mixed, level = self._weights.mixed(made), float(made[SLOW, 0])
        self._reversion.keep(mixed, level)
        self._next = self._reversion.moved(mixed, level)
        self._spread.keep(self._next)

    def _made(self, window: Window) -> Rates:
        """What each member expects, a line each."""
        return np.vstack([plain(window, self.day), *(model.expected(window) for model in self._models)])

    def _mixed(self, made: Rates) -> Rates:
        """The members' forecasts as one, moved towards the mean of the last days where that has helped."""
        return self._reversion.moved(self._weights.mixed(made), float(made[SLOW, 0]))

    def _mean(self, horizon: int) -> Rates:
        return further(lambda window: self._mixed(self._made(window)), self._past.window, self._next, horizon)
