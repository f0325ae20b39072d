"""What the forecasters from statistics share: a model that is fitted seldom and follows every rate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar, Protocol

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.parts.windows import filled

LEAST = 200  # rates before the first fit
MOST = 2000  # rates that a fit in a running loop looks back


class Follower(Protocol):
    """A fitted model that stands somewhere in the series."""

    def learn(self, rate: float) -> None:
        """Go on by one interval; NaN where its rate is missing."""

    def forecast(self, horizon: int) -> Rates:
        """The expected rates, negative ones included."""


class Refitting(ABC):
    """Fitted off line and then only followed; or, in a running loop, fitted after 200 rates and again every `refit`.

    `season` is the length of a season in rates; 1 is none.
    """

    name: ClassVar[str]

    def __init__(self, season: int = 1, refit: int = 1000) -> None:
        self.season = whole(f"forecaster '{self.name}'", "season", season)
        self.refit = whole(f"forecaster '{self.name}'", "refit", refit)
        self._rates: deque[float] = deque(maxlen=MOST)
        self._model: Follower | None = None
        self._off_line = False
        self._waited = 0

    @abstractmethod
    def _fitted(self, rates: Rates) -> Follower:
        """A model fitted to these rates, none of them missing; it stands before the first of them."""

    @property
    def ready(self) -> bool:
        """After `fit`, or after so many rates that it could fit itself."""
        return self._model is not None

    @property
    def _least(self) -> int:
        return min(max(LEAST, 3 * self.season), MOST)

    @property
    def _known(self) -> int:
        return int(np.count_nonzero(~np.isnan(np.array(self._rates))))

    def fit(self, rates: Rates, validation: Rates) -> None:
        """Fit to the first part, then follow both; from now on it is never refitted."""
        rates = np.asarray(rates, dtype=np.float64)
        known = int(np.count_nonzero(~np.isnan(rates)))
        if known < self._least:
            raise InputError(f"forecaster '{self.name}': training needs at least {self._least} rates; got {known}")
        self._off_line = True
        self._rates.clear()
        self._model = self._following(rates)
        for rate in np.asarray(validation, dtype=np.float64):
            self.learn(float(rate))

    def learn(self, rate: float) -> None:
        """Go on by one interval; where it was not fitted off line, refit when it is due."""
        rate = checked_rate(rate)
        if self._model is not None:
            self._model.learn(rate)
        if self._off_line:
            return
        self._rates.append(rate)
        self._waited += 1
        due = self._model is None or self._waited >= self.refit
        if due and len(self._rates) >= self._least and self._known >= self._least:
            self._model = self._following(np.array(self._rates))
            self._waited = 0

    def forecast(self, horizon: int) -> Rates:
        """What the model expects, none below 0."""
        horizon = checked_horizon(horizon)
        if self._model is None:
            raise NotReady(f"forecaster '{self.name}': needs {self._least} rates or to be trained; has {self._known}")
        return np.maximum(self._model.forecast(horizon), 0.0)

    def _following(self, rates: Rates) -> Follower:
        model = self._fitted(filled(rates))
        for rate in rates:
            model.learn(float(rate))
        return model
