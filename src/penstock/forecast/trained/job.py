"""Training one model of one series: fit it, measure it on rows it has not seen, then let it have them all."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast

from penstock.errors import InputError, PenstockError
from penstock.forecast.base import Forecaster, Rates, TrainedOffLine, checked_horizon
from penstock.forecast.evaluation.backtest import Rule, backtest
from penstock.forecast.evaluation.series import Split
from penstock.forecast.registry import FORECASTERS, forecaster_for, make_forecaster
from penstock.forecast.trained.model_file import Header, packed

RELOADING = "trained"  # the forecaster that loads what was trained


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rates of one series, a row for each interval, NaN where one is missing; and where they come from."""

    series: str
    rates: Rates
    interval_s: float
    day: int  # rows in a day
    run: str | None = None
    interval: int | None = None  # the number of the last row's interval in that run


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One model to be trained: a forecaster's spec, and the series that it is for.

    The last rows, a share of `validation`, measure it, `horizon` rows ahead.
    """

    history: History
    spec: str
    horizon: int = 1
    validation: float = 0.2

    def __post_init__(self) -> None:
        checked_horizon(self.horizon)
        if not 0 < self.validation < 1:
            raise InputError(f"training: the share of validation must be between 0 and 1; got {self.validation}")

    @property
    def whose(self) -> tuple[str, str]:
        """The series and the spec."""
        return self.history.series, self.spec

    @property
    def split(self) -> Split:
        """The last rows to measure on; of those before them the last ones, the same share, to validate on."""
        rows = len(self.history.rates)
        test = max(1, round(rows * self.validation))
        validation = round((rows - test) * self.validation)
        if rows - test - validation < 1:
            raise InputError(f"series '{self.history.series}': must be long enough to train on; got {rows} rows")
        return Split(rows - test - validation, validation, test)

    def forecaster(self) -> Forecaster:
        """A new one that has learnt nothing."""
        history = self.history
        return forecaster_for(self.spec, interval_s=history.interval_s, day_s=history.day * history.interval_s)

    def header(self, errors: Mapping[str, float], trained_at: str) -> Header:
        """What the model file says of the model."""
        history = self.history
        return Header(
            series=history.series,
            spec=self.spec,
            interval_s=history.interval_s,
            day=history.day,
            rows=len(history.rates),
            trained_at=trained_at,
            errors=errors,
            run=history.run,
            interval=history.interval,
        )


@dataclass(frozen=True, slots=True)
class Fitted:
    """A packed model that has had all rows, and its errors on the last ones before it had them."""

    pickled: bytes
    errors: Mapping[str, float]


def trained_model(job: Job) -> Fitted:
    """Train the model; NotReady where the series is too short for it.

    One that is trained off line is fitted twice: to the first part alone, so that it can be measured on the second, and
    to both. The others learn row by row, and are measured as they go.

    >>> import numpy as np
    >>> history = History(series="tweets", rates=np.arange(10.0), interval_s=60, day=1440)
    >>> trained_model(Job(history=history, spec="last_value")).errors["mae"]
    1.0
    """
    model, rates, split = job.forecaster(), job.history.rates, job.split
    errors = asdict(backtest(model, rates, split, Rule(job.horizon)).errors)
    if isinstance(model, TrainedOffLine):
        model = job.forecaster()
        cast(TrainedOffLine, model).fit(rates[: split.test_start], rates[split.test_start :])
    model.forecast(job.horizon)  # one that cannot is not kept
    return Fitted(packed(model), {name: value for name, value in errors.items() if math.isfinite(value)})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: a model, or the reason why there is none; and the CPU seconds that it took."""

    job: Job
    fitted: Fitted | None = None
    failure: str | None = None
    cpu_s: float = 0.0


def train_here(job: Job) -> Outcome:
    """Train one model in this process; whatever a model raises is what came of it."""
    started_s = time.process_time()
    fitted, failure = None, None
    try:
        fitted = trained_model(job)
    except PenstockError as error:
        failure = str(error)
    except Exception as error:  # the others go on
        failure = f"{type(error).__name__}: {error}"
    return Outcome(job, fitted, failure, time.process_time() - started_s)


def models_to_train(text: str) -> list[str]:
    """Forecasters with their options, separated by commas; each is made once, to see that it can be.

    >>> models_to_train("drift:window=5,last_value,regression")
    ['drift:window=5', 'last_value', 'regression']
    """
    specs = FORECASTERS.specs(text)
    for spec in specs:
        make_forecaster(spec)
        if spec.partition(":")[0] == RELOADING:
            raise InputError(f"--models: '{RELOADING}' loads what was trained; name the forecasters to train")
    return specs
