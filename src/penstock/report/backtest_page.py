"""The page of a backtest: the ranking of forecasters and a plot of every series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.forecast.evaluation.contest import SeriesTest, Terms
from penstock.forecast.evaluation.series import rows_per_day
from penstock.report.page import render, write_page
from penstock.report.plots import MODELS_SHOWN, forecasts_plot
from penstock.report.terminal import FORECASTERS, mean_cells, score_cells
from penstock.report.text import ABSENT

HEAD = ("model", "sMAPE", "to the best", "to last value", "RMSE", "MAE", "CPU to fit, s", "CPU per forecast, ms")


def write_backtest_report(path: Path, tests: Sequence[SeriesTest], terms: Terms) -> None:
    """Write the report to a file; folders above it are made."""
    write_page(path, backtest_page(tests, terms))


def backtest_page(tests: Sequence[SeriesTest], terms: Terms) -> str:
    """The report as HTML."""
    rule = terms.rule
    facts = {
        "rows ahead": rule.horizon,
        "overlapping forecasts": "their mean" if rule.overlap else None,
        "seed": terms.seed,
    }
    return render(
        "backtest.html",
        names=tests[0].series.name if len(tests) == 1 else f"{len(tests)} series",
        facts=facts,
        head=HEAD,
        means=mean_cells(tests) if len(tests) > 1 else None,
        tests=[_series(test, terms) for test in tests],
    )


def _series(test: SeriesTest, terms: Terms) -> dict[str, object]:
    scores = {trial.score.model: score_cells(test, trial) for trial in test.ranked}
    return {
        "series": test.series,
        "split": test.split,
        "day": terms.day or rows_per_day(test.series.step_s),
        "rows": {**scores, **{model: [ABSENT] * len(FORECASTERS) for model in test.failed}},
        "failed": test.failed,
        "best": list(scores)[:MODELS_SHOWN],
        "png": forecasts_plot(test) if scores else None,
    }
