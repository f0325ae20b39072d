"""A direct regression as a forecaster of its own."""

from __future__ import annotations

import math
from typing import ClassVar

from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.direct import LEAST, Direct, Model, further
from penstock.forecast.parts.past import Past, rows_kept


class Alone:
    """Learns, fits and forecasts with one model; the forecasters `ar` and `ridge` are made of it."""

    name: ClassVar[str]

    def __init__(self, model: Model, day: int) -> None:
        self._past = Past(rows_kept(day))
        self._direct = Direct(model, day)

    @property
    def ready(self) -> bool:
        """After 40 rates."""
        return len(self._past) >= LEAST

    def learn(self, rate: float) -> None:
        """Take in a rate and refit where it is due; a missing one is filled with what was expected."""
        rate = checked_rate(rate)
        known = not math.isnan(rate)
        if known or len(self._past):
            self._past.add(rate if known else self._guess(), known)
            self._direct.learn(self._past.window)

    def forecast(self, horizon: int) -> Rates:
        """What the regressions give; beyond their steps, from their own forecast on."""
        horizon = checked_horizon(horizon)
        if not self.ready:
            raise NotReady(f"forecaster '{self.name}': needs {LEAST} rates; has {len(self._past)}")
        window = self._past.window
        return further(self._direct.expected, window, self._direct.expected(window), horizon)

    def _guess(self) -> float:
        return float(self.forecast(1)[0]) if self.ready else float(self._past.window.rates[-1])
