"""The page of a backtest: the ranking of forecasters and a plot of every series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from penstock.forecast.evaluation.contest import SeriesTest, Terms
from penstock.forecast.evaluation.series import rows_per_day
from penstock.report import draw
from penstock.report.draw import BLUE, GREEN, GREY, INK, VERMILLION
from penstock.report.page import render
from penstock.report.terminal import mean_rows, score_rows

HEAD = ("model", "sMAPE", "to the best", "to last value", "RMSE", "MAE", "CPU to fit, s", "CPU per forecast, ms")
COLOURS = (VERMILLION, BLUE, GREEN)  # of the best models: more hide each other
_MOST_ROWS = 600


def backtest_page(tests: Sequence[SeriesTest], terms: Terms) -> str:
    """The report as HTML."""
    overlap = "their mean" if terms.rule.overlap else None
    return render(
        "backtest.html",
        names=tests[0].series.name if len(tests) == 1 else f"{len(tests)} series",
        facts={"rows ahead": terms.rule.horizon, "overlapping forecasts": overlap, "seed": terms.seed},
        head=HEAD,
        means=mean_rows(tests) if len(tests) > 1 else None,
        tests=[(test, terms.day or rows_per_day(test.series.step_s), score_rows(test)) for test in tests],
        best=len(COLOURS),
        forecasts_plot=forecasts_plot,
    )


@draw.plot
def forecasts_plot(test: SeriesTest) -> Figure:
    """The rates of the last days in grey, the best forecasts over them; below, how far off each forecast was."""
    shown, end = rows_shown(test), test.split.end
    times_s = np.arange(end - shown, end) * test.series.step_s
    actual = pd.Series(test.series.measured[end - shown : end], times_s)
    figure, (above, below) = draw.rows([2.9, 1.2], 0.5)
    draw.line(above, actual, color=GREY, linewidth=3.0, alpha=0.55, label="rate")
    for trial, colour in zip(test.ranked, COLOURS, strict=False):
        expected = pd.Series(trial.expected[-shown:], times_s)
        draw.line(above, expected, color=colour, linewidth=1.1, label=draw.plain(trial.score.model))
        draw.line(below, expected - actual, color=colour, linewidth=0.9)
    above.set_title(draw.plain(test.series.name))
    above.set_ylabel("events per second")
    below.axhline(0, color=INK, linewidth=0.8)
    below.set_ylabel("forecast − rate")
    draw.legend(above)
    draw.time_axis(below, times_s[-1], times_s[0])
    return figure


def rows_shown(test: SeriesTest) -> int:
    """The rows of the last two days of the test part; fewer where that would be too many to see."""
    return max(1, min(test.split.test, _MOST_ROWS, 2 * rows_per_day(test.series.step_s)))
