from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from penstock.forecast.evaluation.backtest import Rule
from penstock.forecast.evaluation.contest import SeriesTest, Terms, contest
from penstock.forecast.evaluation.series import Split
from penstock.report.backtest_page import backtest_page, forecasts_plot, rows_shown
from penstock.report.terminal import forecasters_table, mean_errors, mean_rows, score_rows
from penstock.report.text import figure
from penstock.workload import Trace

from .pages import words

MODELS = ["moving_average:3", "last_value", "drift", "arima"]


def made(name: str = "ramp", slope: float = 1.0) -> SeriesTest:
    series = Trace(name, 3600.0, 10 + slope * np.arange(60.0))
    return contest(series, Split(30, 10, 20), MODELS, Terms())


def printed(table) -> list[list[str]]:
    console = Console(width=110, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(table)
    lines = [line.split() for line in console.export_text().splitlines() if line.strip() and "─" not in line]
    console.file.close()
    return lines


def test_the_table_has_the_nearest_first_and_those_without_figures_last() -> None:
    head, *rows = printed(forecasters_table(score_rows(made())))
    assert head[0] == "model"
    assert [row[0] for row in rows] == ["drift", "last_value", "moving_average:3", "arima"]
    assert rows[1][1:4] == [figure(made().ranked[1].score.smape), "–", "1.00"]  # the best has no error to compare with
    assert set(rows[-1][1:]) == {"–"}


def test_means_are_over_models_with_figures_everywhere() -> None:
    tests = [made("a"), made("b", slope=2.0)]
    errors = mean_errors(tests)
    assert list(errors) == ["drift", "last_value", "moving_average:3"]
    expected = np.mean(
        [trial.score.smape for test in tests for trial in test.trials if trial.score.model == "last_value"]
    )
    assert errors["last_value"] == pytest.approx(expected)
    assert printed(forecasters_table(mean_rows(tests)))[2][0] == "last_value"


def test_the_page_escapes_what_it_shows_and_says_why_a_figure_is_missing() -> None:
    page = backtest_page([made("<b>$x$")], Terms(rule=Rule(1)))
    assert "&lt;b&gt;$x$" in page
    assert "<b>$x$" not in page
    assert "arima has no figures: forecaster 'arima': training needs at least 200 rates; got 30" in words(page)
    assert page.count("<img") == 1


def test_a_series_on_which_no_model_has_figures_has_no_plot() -> None:
    test = contest(Trace("s", 3600.0, np.ones(60)), Split(30, 10, 20), ["arima"], Terms())
    assert "<img" not in backtest_page([test], Terms())


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize(("step_s", "rows"), [(3600.0, 20), (86_400.0, 2), (1.0, 20)])
def test_the_plot_shows_the_end_of_the_test_part(step_s: float, rows: int) -> None:
    series = Trace("s", step_s, np.arange(60.0))
    test = contest(series, Split(30, 10, 20), ["drift"], Terms())
    assert rows_shown(test) == rows
    assert forecasts_plot(test).startswith(b"\x89PNG")
