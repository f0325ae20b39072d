"""Forecasters by name."""

from __future__ import annotations

from penstock.common.named import Named
from penstock.errors import InputError
from penstock.forecast.arima import Arima
from penstock.forecast.auto import Auto
from penstock.forecast.autoregression import Autoregression
from penstock.forecast.base import Forecaster, TrainedOffLine
from penstock.forecast.drift import Drift
from penstock.forecast.ets import Ets
from penstock.forecast.holt_winters import HoltWinters
from penstock.forecast.last_value import LastValue
from penstock.forecast.moving_average import MovingAverage
from penstock.forecast.parts.refitting import Refitting
from penstock.forecast.recurrent import RECURRENT
from penstock.forecast.regression import Regression
from penstock.forecast.ridge import Ridge
from penstock.forecast.seasonal_naive import SeasonalNaive
from penstock.forecast.svr import Svr
from penstock.forecast.trained.reloading import trained

FORECASTERS: Named[Forecaster] = Named("forecaster")
FORECASTERS.register("last_value", LastValue)
FORECASTERS.register("moving_average", MovingAverage, first="window")
FORECASTERS.register("drift", Drift, first="window")
FORECASTERS.register("regression", Regression, first="window")
FORECASTERS.register("seasonal_naive", SeasonalNaive, first="day")
FORECASTERS.register("holt_winters", HoltWinters, first="day")
FORECASTERS.register("ar", Autoregression, first="lags")
FORECASTERS.register("ridge", Ridge, first="day")
FORECASTERS.register("auto", Auto)
FORECASTERS.register("arima", Arima, first="season")
FORECASTERS.register("ets", Ets, first="season")
FORECASTERS.register("svr", Svr, first="window")
for network in RECURRENT:
    FORECASTERS.register(network.name, network, first="window")
FORECASTERS.register("trained", trained, first="folder")


def make_forecaster(spec: str, **options: object) -> Forecaster:
    """A forecaster from its name and options: `drift`, `drift:5`, `moving_average:window=10`.

    >>> make_forecaster("moving_average:10").window
    10
    >>> make_forecaster("omen")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster: no such name 'omen'; known: ...drift, ...last_value...
    """
    return FORECASTERS.make(spec, **options)


def forecaster_for(
    spec: str, *, interval_s: float, day_s: float, series: str | None = None, run: str | None = None
) -> Forecaster:
    """A forecaster of rates, one every `interval_s`; one that knows of days is told how many of them make one.

    One that asks for the series that it is to follow, or for the run that the series is of, is told these as well.

    >>> forecaster_for("drift", interval_s=300, day_s=86_400).window
    3
    """
    known = {"day": max(1, round(day_s / interval_s)), "series": series, "run": run}
    return FORECASTERS.make(spec, {name: value for name, value in known.items() if value is not None})


def check_for_loop(spec: str) -> None:
    """An InputError where a loop could not use such a forecaster: nothing there trains one that does not fit itself.

    >>> check_for_loop("arima")
    """
    forecaster, name = make_forecaster(spec), spec.partition(":")[0]
    if isinstance(forecaster, TrainedOffLine) and not isinstance(forecaster, Refitting):
        raise InputError(
            f"forecaster '{name}': must be trained before a loop can use it; train it with "
            f"'penstock train --models {name} --out models', and then give 'trained:folder=models'"
        )
