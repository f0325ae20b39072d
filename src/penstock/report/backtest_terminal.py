"""A backtest for the terminal: the ranking of a series, and the means over several."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from penstock.forecast.evaluation.contest import YARDSTICK, SeriesTest, Trial
from penstock.report.markup import ABSENT, decimal

HEAD = ("model", "sMAPE %", "×best", "×last", "RMSE", "MAE", "fit CPU s", "CPU ms")


def backtest_table(test: SeriesTest) -> Table:
    """One row a model, the least error first."""
    table = _empty(HEAD)
    for trial in test.ranked:
        table.add_row(Text(trial.score.model), *cells(test, trial))
    for model in test.failed:
        table.add_row(Text(model, style="dim"), *[ABSENT] * (len(HEAD) - 1))
    return table


def mean_table(tests: Sequence[SeriesTest]) -> Table:
    """The mean sMAPE over all series, of the models that have one on each."""
    means = mean_errors(tests)
    best, last = next(iter(means.values()), math.nan), means.get(YARDSTICK, math.nan)
    table = _empty(HEAD[:4])
    for model, error in means.items():
        table.add_row(Text(model), *(figure(value) for value in (error, over(error, best), over(error, last))))
    return table


def mean_errors(tests: Sequence[SeriesTest]) -> dict[str, float]:
    """Mean sMAPE by model, the least first."""
    by_model: dict[str, list[float]] = {}
    for test in tests:
        for trial in test.trials:
            by_model.setdefault(trial.score.model, []).append(trial.score.smape)
    means = {model: math.fsum(found) / len(found) for model, found in by_model.items() if len(found) == len(tests)}
    return dict(sorted(means.items(), key=lambda pair: (math.isnan(pair[1]), pair[1])))


def cells(test: SeriesTest, trial: Trial) -> list[str]:
    """The figures of a row."""
    score = trial.score
    return [
        figure(score.smape),
        figure(test.ratio(trial)),
        figure(test.ratio(trial, YARDSTICK)),
        figure(score.rmse),
        figure(score.mae),
        figure(score.fit_s),
        figure(score.forecast_ms),
    ]


def over(value: float, base: float) -> float:
    """The ratio; NaN where there is nothing to compare with."""
    return value / base if base else math.nan


def figure(value: float) -> str:
    """A number with about four digits.

    >>> figure(2.5412), figure(0.0831), figure(7767.47), figure(float("nan"))
    ('2.54', '0.083', '7,767', '–')
    """
    size = abs(value)
    return decimal(value, 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 0.1 or size == 0 else 3)


def _empty(head: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column(head[0], overflow="fold")
    for name in head[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table
