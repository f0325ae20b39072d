"""A regression for each step ahead, refitted now and then to the last rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.forecast.base import Rates
from penstock.forecast.parts.features import STEPS, Features
from penstock.forecast.parts.huber import Layer, Standard, huber_ridge
from penstock.forecast.parts.past import Window
from penstock.forecast.parts.scale import Scale

LEAST = 40  # rows before the first fit
TRAINED = 12_000  # rows that a fit looks back at most
_BETWEEN = (12, 72)  # rows between two fits, at least and at most
_GROWN = 1.2  # a window that has grown so much is fitted anew at once
_HIGHEST = 4.0  # times the highest rate in the window: no forecast goes further


@dataclass(frozen=True, slots=True)
class Model:
    """What is regressed on what: target x(t+k) − x(t), k = 1…18, on the features of row t.

    `bends`: so many random bends of the features, drawn by `seed`, are features too. `penalty` is that of the ridge;
    `robust` has outliers clipped.
    """

    features: Features
    log: bool = True
    penalty: float = 10.0
    robust: bool = True
    bends: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Fit:
    """A model with its coefficients."""

    features: Features
    scale: Scale
    standard: Standard
    bends: tuple[Layer, Standard] | None
    slopes: Rates
    constants: Rates

    def expected(self, window: Window) -> Rates:
        """The rates of the next steps."""
        values = self.scale.inward(window.rates)
        rows = range(len(values) - 1, len(values))
        columns = self.standard(self.features.matrix(values, window.first, rows))
        if self.bends:
            layer, standard = self.bends
            columns = np.concatenate([columns, standard(layer(columns))], axis=1)
        change: Rates = (columns @ self.slopes + self.constants)[0]
        return self.scale.outward(values[-1] + change, _HIGHEST * float(window.rates.max()))


def _fitted(model: Model, window: Window) -> _Fit:
    features = model.features.within(len(window))
    scale = Scale.of(window.rates, model.log)
    values = scale.inward(window.rates)
    rows = range(max(features.reach, len(values) - TRAINED), len(values) - 1)
    columns = features.matrix(values, window.first, rows)
    standard = Standard.of(columns)
    columns, bends = standard(columns), None
    if model.bends:
        layer = Layer.drawn(columns.shape[1] - features.far, model.bends, model.seed)
        bent = layer(columns)
        bends = (layer, Standard.of(bent))
        columns = np.concatenate([columns, bends[1](bent)], axis=1)
    at = np.arange(rows.start, rows.stop)[:, None]
    ahead = at + np.arange(1, STEPS + 1)
    there = np.minimum(ahead, len(values) - 1)
    known = (ahead < len(values)) & window.known[there] & window.known[at]
    slopes, constants = huber_ridge(columns, values[there] - values[at], known, model.penalty, model.robust)
    return _Fit(features, scale, standard, bends, slopes, constants)


class Direct:
    """Fits the model anew four times a day, but every 12 to 72 rows; more often while the window is young.

    `turn` sets apart the rows at which several of them are fitted. Before its first fit it expects nothing: NaN.
    """

    def __init__(self, model: Model, day: int, turn: int = 0) -> None:
        self.model = model
        self.every = min(max(day // 4, _BETWEEN[0]), _BETWEEN[1])
        self.turn = turn
        self.least = max(LEAST, model.bends)
        self._fit: _Fit | None = None
        self._fitted_at = 0

    def learn(self, window: Window) -> None:
        """Fit where it is due; the window ends with the latest rate."""
        young = self._fit is None or window.count >= _GROWN * self._fitted_at
        due = young or (window.count + self.turn) % self.every == 0
        if len(window) >= self.least and due:
            self._fit = _fitted(self.model, window)
            self._fitted_at = window.count

    def expected(self, window: Window) -> Rates:
        """The rates of the next 18 rows."""
        return np.full(STEPS, np.nan) if self._fit is None else self._fit.expected(window)


def further(expected: Callable[[Window], Rates], window: Window, start: Rates, horizon: int) -> Rates:
    """The forecast `start`, carried on to `horizon` as if what is expected had come."""
    rates = start
    while len(rates) < horizon:
        rates = np.concatenate([rates, expected(window.extended(rates))])
    return rates[:horizon].copy()
