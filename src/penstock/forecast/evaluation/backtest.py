"""How well a forecaster would have done on a series: train, then forecast, compare and learn, row by row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from penstock.errors import InputError
from penstock.forecast.base import Forecaster, Rates, TrainedOffLine, checked_horizon
from penstock.forecast.evaluation.accuracy import Errors
from penstock.forecast.evaluation.series import Split

_SHOWN = 100  # how often the progress is told


@dataclass(frozen=True, slots=True)
class Rule:
    """Which forecasts are compared with a row.

    As it is: the one made `horizon` rows before. With `overlap`: the mean of those made for it in the last `horizon`
    rows, by forecasts from the last row before the test part on; the published errors of load series are of that kind.
    """

    horizon: int = 1
    overlap: bool = False

    def __post_init__(self) -> None:
        checked_horizon(self.horizon)

    @property
    def ahead(self) -> int:
        """How many rows before the test part the first forecast is made."""
        return 1 if self.overlap else self.horizon


def _no_clock() -> float:
    return math.nan


@dataclass(frozen=True, slots=True)
class Edge:
    """What a backtest takes from outside: a clock of CPU seconds, and whom to tell how many rows of all are done."""

    clock: Callable[[], float] = _no_clock
    progress: Callable[[int, int], None] = lambda _done, _all: None


ONE_STEP = Rule()
ALONE = Edge()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The forecast of every test row, its errors, and the CPU time it took; NaN without a clock."""

    expected: Rates
    errors: Errors
    fit_s: float
    forecast_ms: float


@dataclass(frozen=True, slots=True)
class Score:
    """What one model reached on one series, as it goes into JSON."""

    series: str
    model: str
    horizon: int
    smape: float
    rmse: float
    mae: float
    fit_s: float
    forecast_ms: float

    @classmethod
    def of(cls, series: str, model: str, horizon: int, outcome: Outcome) -> Score:
        """The figures of an outcome."""
        return cls(
            series, model, horizon, **asdict(outcome.errors), fit_s=outcome.fit_s, forecast_ms=outcome.forecast_ms
        )

    def as_json(self) -> dict[str, object]:
        """Plain values, None for what is not known."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def backtest(
    forecaster: Forecaster,
    rates: Rates,
    split: Split,
    rule: Rule = ONE_STEP,
    edge: Edge = ALONE,
) -> Outcome:
    """Try a forecaster on a series: nothing it forecasts from is later than the forecast.

    One that is trained off line is fitted to the first part, with the second to validate; all others learn both row by
    row. Then, for every row: forecast, compare, learn. A rate that is NaN is missing: learnt as such, not compared.

    >>> from penstock.forecast.last_value import LastValue
    >>> outcome = backtest(LastValue(), np.array([1.0, 1.0, 2.0, 4.0, 4.0]), Split(2, 0, 3))
    >>> outcome.expected.tolist(), outcome.errors.mae
    ([1.0, 2.0, 4.0], 1.0)
    """
    rates = np.asarray(rates, dtype=np.float64)[: split.end]
    if len(rates) < split.end or split.test < 1:
        raise InputError(f"backtest: the series must have {split.end} rows and a test part; got {len(rates)} rows")
    learnt = max(0, split.test_start - rule.ahead + 1)
    started_s = edge.clock()
    _teach(forecaster, rates[:learnt], split.train)
    taught_s = edge.clock()
    made = walked(forecaster, rates[learnt:], rule.horizon, edge.progress)
    ended_s = edge.clock()
    expected = _for_rows(made, learnt, split, rule)
    errors = Errors.of(rates[split.test_start :], expected)
    return Outcome(expected, errors, taught_s - started_s, (ended_s - taught_s) / len(made) * 1000)


def walked(
    forecaster: Forecaster, rates: Rates, horizon: int, progress: Callable[[int, int], None] = ALONE.progress
) -> Rates:
    """The forecasts made before each of these rates is learnt, a row each; the first column is for that rate."""
    made = np.empty((len(rates), horizon))
    every = max(1, len(rates) // _SHOWN)
    for number, rate in enumerate(rates):
        made[number] = forecaster.forecast(horizon)
        forecaster.learn(float(rate))
        if (number + 1) % every == 0 or number + 1 == len(rates):
            progress(number + 1, len(rates))
    return made


def _teach(forecaster: Forecaster, rates: Rates, train: int) -> None:
    if isinstance(forecaster, TrainedOffLine):
        forecaster.fit(rates[:train], rates[train:])
        return
    for rate in rates:
        forecaster.learn(float(rate))


def _for_rows(made: Rates, first: int, split: Split, rule: Rule) -> Rates:
    """The forecast of each test row: `made[n, k]` was made for row `first` + n + k."""
    rows = np.arange(split.test_start, split.end) - first
    if not rule.overlap:
        before = rows - rule.horizon + 1
        return np.where(before >= 0, made[np.maximum(before, 0), rule.horizon - 1], np.nan)
    ahead = np.arange(rule.horizon)
    origins = rows[:, None] - ahead
    there = origins >= 0
    found = np.where(there, made[np.maximum(origins, 0), ahead], 0.0)
    return np.asarray(found.sum(axis=1) / there.sum(axis=1), dtype=np.float64)
