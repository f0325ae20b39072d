"""A forecaster that was trained elsewhere, and is replaced by a newer one while the loop runs."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.errors import InputError
from penstock.forecast.base import Forecaster, NotReady, Rates, checked_horizon, checked_rate
from penstock.forecast.model_file import Header, Trained
from penstock.forecast.models import Mark, ModelFolder

KEPT = 4096  # rates that a new model can catch up with
AT_ONCE = 256  # of those in one interval, so that the loop is not held up
FALLBACK = "auto"

log = logging.getLogger(__name__)


class Models(Protocol):
    """Where trained models are found: a ModelFolder, or what a test puts in its place."""

    def changed_since(self, series: str, mark: Mark | None) -> Mark | None:
        """The mark of the series' best model where it is another than this; an InputError where there is none."""

    def read(self, series: str) -> Trained:
        """The best model of the series."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The series that is followed, the run it is of, and how many of its intervals make a day."""

    series: str
    run: str | None = None
    day: int = 288


class Reloading:
    """The best trained model of a series forecasts: ŷ = that of the model, which has learnt every rate since.

    On the first rate, and then on every `every`-th, it looks for a newer model. A new one first learns the rates that
    it has not seen: of the same run, those of later intervals than it was trained up to; otherwise all that are kept,
    4,096 at most. Only then does it take over. A model that cannot be read leaves the old one in its place, and is said
    once in the log. Before there is one, `fallback` forecasts.

    >>> import tempfile
    >>> from penstock.forecast.drift import Drift
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     forecaster = Reloading(ModelFolder(empty), Followed("tweets"), fallback=Drift())
    ...     for rate in (10, 20):
    ...         forecaster.learn(rate)
    >>> forecaster.forecast(1).tolist()
    [30.0]

    Hu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network",
    NPC 2019: models are trained off line and rebuilt periodically.
    """

    def __init__(
        self, models: Models, followed: Followed, *, every: int = 60, fallback: Forecaster | None = None
    ) -> None:
        if every < 1:
            raise InputError(f"forecaster 'trained': every must be at least 1 rate; got {every}")
        self.every = every
        self.followed = followed
        self._models = models
        self._current = fallback
        self._header: Header | None = None  # of the current model; None while it is the fallback
        self._mark: Mark | None = None
        self._coming: _Coming | None = None
        self._learnt = _Recent(KEPT)
        self._said = ""

    @property
    def ready(self) -> bool:
        """As soon as the model is, or the fallback."""
        return self._current is not None and self._current.ready

    @property
    def header(self) -> Header | None:
        """What the model that forecasts is; None before there is one."""
        return self._header

    def learn(self, rate: float) -> None:
        """Follow the series; look for a newer model if it is time to."""
        rate = checked_rate(rate)
        self._learnt.append(rate)
        if self._current is not None:
            self._current.learn(rate)
        if self._coming is not None:
            self._coming.behind.append(rate)
        if (self._learnt.count - 1) % self.every == 0:
            self._try(self._look)
        if self._coming is not None:
            self._try(self._catch_up)

    def forecast(self, horizon: int) -> Rates:
        """What the model forecasts, or the fallback."""
        horizon = checked_horizon(horizon)
        if self._current is None or not self._current.ready:
            raise NotReady(f"forecaster 'trained': needs a model of series '{self.followed.series}'; has {self._why()}")
        return self._current.forecast(horizon)

    def _why(self) -> str:
        state = "none" if self._header is None else "one that needs more rates"
        return f"{state} ({self._said})" if self._said else state

    def _try(self, work: object) -> None:
        raise NotImplementedError
