"""What a forecaster is, and what it gives.

A forecaster that has not learnt enough says so: `ready` is False and `forecast` raises NotReady. It never guesses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
        """Take in the rate (events per second) of the interval that just ended."""

    def forecast(self, horizon: int) -> Rates:
        """The rates of the next `horizon` intervals, none below 0; raises NotReady before `ready`."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected rates per second for the next intervals, by series (a source, or an operator's input).

    `waiting` says for which series there is none yet, and why.

    >>> Forecast("drift", {"tweets": (120.0, 140.0)}).rate("tweets")
    120.0
    >>> Forecast("drift", {}).rate("tweets") is None
    True
    """

    forecaster: str
    rates: Mapping[str, tuple[float, ...]]
    waiting: Mapping[str, str] = field(default_factory=dict)

    def rate(self, series: str, step: int = 1) -> float | None:
        """The rate expected `step` intervals ahead; None where there is no forecast."""
        rates = self.rates.get(series, ())
        return rates[step - 1] if step <= len(rates) else None


def checked_rate(rate: float) -> float:
    """The rate, or an InputError where it is negative or no number."""
    if not 0 <= rate < math.inf:
        raise InputError(f"forecaster: a rate must be a number of at least 0; got {rate}")
    return float(rate)


def checked_horizon(horizon: int) -> int:
    """The horizon, or an InputError where it is below one interval."""
    if horizon < 1:
        raise InputError(f"forecaster: the horizon must be at least 1 interval; got {horizon}")
    return horizon


def checked_window(name: str, window: int, least: int) -> int:
    """The window, or an InputError where it is too short."""
    if window < least:
        raise InputError(f"forecaster '{name}': window must be at least {least} intervals; got {window}")
    return window
