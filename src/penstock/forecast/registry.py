"""Forecasters by name."""

from __future__ import annotations

from penstock.forecast.base import Forecaster
from penstock.forecast.drift import Drift
from penstock.forecast.last_value import LastValue
from penstock.forecast.moving_average import MovingAverage
from penstock.forecast.named import Named
from penstock.forecast.regression import Regression

FORECASTERS: Named[Forecaster] = Named("forecaster")
FORECASTERS.register("last_value", LastValue)
FORECASTERS.register("moving_average", MovingAverage, first="window")
FORECASTERS.register("drift", Drift, first="window")
FORECASTERS.register("regression", Regression, first="window")


def make_forecaster(spec: str, **options: object) -> Forecaster:
    """A forecaster from its name and options: `drift`, `drift:5`, `moving_average:window=10`.

    >>> make_forecaster("moving_average:10").window
    10
    >>> make_forecaster("omen")
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster: no such name 'omen'; known: drift, last_value, moving_average, regression
    """
    return FORECASTERS.make(spec, **options)


def forecaster_for(spec: str, *, interval_s: float, day_s: float) -> Forecaster:
    """A forecaster of rates, one every `interval_s`; one that knows of days is told how many of them make one.

    >>> forecaster_for("drift", interval_s=300, day_s=86_400).window
    3
    """
    name = spec.partition(":")[0]
    seasonal = "day" in FORECASTERS.options(name) and "day=" not in spec
    return make_forecaster(spec, **({"day": max(1, round(day_s / interval_s))} if seasonal else {}))
