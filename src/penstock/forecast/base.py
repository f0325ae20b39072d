"""What a forecaster is, and what it gives.

A forecaster that has not learnt enough says so: `ready` is False and `forecast` raises NotReady. It never guesses.
A rate that is missing is learnt as NaN: the interval went by, what it brought is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError, PenstockError

Rates = NDArray[np.float64]


class NotReady(PenstockError):  # noqa: N818 - a state, not a fault
    """The forecaster has not learnt enough yet."""


@runtime_checkable
class Forecaster(Protocol):
    """Learns a series of rates, one an interval, and says how it goes on."""

    @property
    def ready(self) -> bool:
        """Whether it has learnt enough to forecast."""

    def learn(self, rate: float) -> None:
        """Take in the rate (events per second) of the interval that just ended; NaN where it is missing."""

    def forecast(self, horizon: int) -> Rates:
        """The rates of the next `horizon` intervals, none below 0; raises NotReady before `ready`."""


@runtime_checkable
class HasQuantiles(Protocol):
    """A forecaster that also says how sure it is."""

    def quantiles(self, horizon: int, levels: Sequence[float]) -> Rates:
        """The rates that the next intervals stay under with these probabilities: a row for each level, none below 0."""


@runtime_checkable
class TrainedOffLine(Protocol):
    """A forecaster that is fitted to a history before it is of use; afterwards it only follows the series.

    After `fit` it stands where it had learnt both parts, in this order.
    """

    def fit(self, rates: Rates, validation: Rates) -> None:
        """Fit to the first part; the second, which comes right after it, may decide when to stop or what to take."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected rates per second for the next intervals, by series (a source, or an operator's input).

    `waiting` says for which series there is none yet, and why. `high` has rates that the intervals seldom exceed, where
    the policy asks for them and the forecaster knows.

    >>> Forecast("drift", {"tweets": (120.0, 140.0)}).rate("tweets")
    120.0
    >>> Forecast("drift", {}).rate("tweets") is None
    True
    """

    forecaster: str
    rates: Mapping[str, tuple[float, ...]]
    waiting: Mapping[str, str] = field(default_factory=dict)
    high: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def rate(self, series: str, step: int = 1) -> float | None:
        """The rate expected `step` intervals ahead; None where there is no forecast."""
        rates = self.rates.get(series, ())
        return rates[step - 1] if step <= len(rates) else None


def checked_rate(rate: float) -> float:
    """The rate, NaN where it is missing; an InputError where it is negative or infinite."""
    if rate < 0 or math.isinf(rate):
        raise InputError(f"forecaster: a rate must be a number of at least 0, or NaN where it is missing; got {rate}")
    return float(rate)


def checked_horizon(horizon: int) -> int:
    """The horizon, or an InputError where it is below one interval."""
    if horizon < 1:
        raise InputError(f"forecaster: the horizon must be at least 1 interval; got {horizon}")
    return horizon
