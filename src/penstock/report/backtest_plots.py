"""The plot of a backtest: the last days of a series, and what the best models had expected of them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from penstock.forecast.evaluation.contest import SeriesTest, Trial
from penstock.report.canvas import legend, line, picture, plain
from penstock.report.palette import BLUE, FAINT, GREEN, GREY, INK, VERMILLION

SHOWN = 3  # models in a plot: more hide each other
_DAYS = 2
_DAY_S = 86_400.0
_MOST_ROWS = 600
_MOST_TICKS = 9
_TICKS_S = tuple(_DAY_S / parts for parts in (4000, 2000, 1000, 400, 200, 100, 40, 20, 10, 4, 2))
_COLOURS = (VERMILLION, BLUE, GREEN)


def forecasts_plot(test: SeriesTest) -> bytes:
    """The rates of the last days in grey, the forecasts over them; below, how far off each forecast was."""
    rows = rows_shown(test)
    times_s = np.arange(test.split.end - rows, test.split.end, dtype=np.float64) * test.series.step_s
    actual = test.series.rates[test.split.end - rows : test.split.end]
    best = test.ranked[:SHOWN]

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 1, height_ratios=[2.4, 1.0])
        above, below = (figure.add_subplot(grid[place, 0]) for place in range(2))
        handles = {"rate": line(above, times_s, actual, color=GREY, linewidth=3.0, alpha=0.55)}
        for trial, colour in zip(best, _COLOURS, strict=False):
            expected = trial.expected[-rows:]
            handles[trial.score.model] = line(above, times_s, expected, color=colour, linewidth=1.1)
            line(below, times_s, expected - actual, color=colour, linewidth=0.9)
        _finish(above, below, plain(test.series.name))
        legend(above, handles)

    return picture(draw, 4.6)


def rows_shown(test: SeriesTest) -> int:
    """The rows of the last two days of the test part; fewer where that would be too many to see."""
    return max(1, min(test.split.test, _MOST_ROWS, round(_DAYS * _DAY_S / test.series.step_s)))


def best_models(test: SeriesTest) -> list[Trial]:
    """The models in the plot."""
    return test.ranked[:SHOWN]


def _finish(above: Axes, below: Axes, title: str) -> None:
    above.set_title(title)
    above.set_ylabel("events per second")
    low, high = above.get_ylim()
    above.set_ylim(bottom=0 if low < high / 2 else low)
    above.tick_params(labelbottom=False)
    below.axhline(0, color=INK, linewidth=0.8)
    below.set_ylabel("forecast − rate")
    below.set_xlabel("time since the start of the series (days)")
    below.yaxis.set_major_locator(MaxNLocator(nbins=4))
    for axes in (above, below):
        axes.margins(x=0.005)
        axes.spines["bottom"].set_color(FAINT)
        axes.xaxis.set_major_locator(MultipleLocator(_tick_s(axes)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / _DAY_S:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}".replace("-", "−")))


def _tick_s(axes: Axes) -> float:
    """A round part of a day, so that there are about eight ticks."""
    left, right = axes.get_xlim()
    return next((part for part in _TICKS_S if (right - left) / part <= _MOST_TICKS), _DAY_S)
