"""Every plot gives a valid PNG of sane size, whatever the run was."""

from __future__ import annotations

import dataclasses
import math

import matplotlib
import pytest

from penstock.metrics.rows import ForecastRow
from penstock.report import run_page as plots
from penstock.report.run import RunReport, operators_in_order
from penstock.report.run_page import MOST_OPERATORS, largest, styles_of

from .pages import drawn

pytestmark = pytest.mark.usefixtures("rendered")
PLOTS = [plots.rates_plot, plots.replicas_plot, plots.backlog_plot, plots.latency_plot]


def renamed(report, names):
    """The run with its operators' rows repeated under other names."""
    rows = [row for row in report.operators if row.operator == "clean"]
    return dataclasses.replace(report, operators=[dataclasses.replace(row, operator=n) for n in names for row in rows])


def cut(report, intervals):
    return dataclasses.replace(report, intervals=report.intervals[:intervals])


def unknown(report):
    gone = {"latency_mean_ms": None, "latency_p50_ms": math.nan, "latency_p99_ms": math.inf, "source_output": math.nan}
    rows = [dataclasses.replace(row, **gone) for row in report.intervals]
    rows[3] = dataclasses.replace(rows[3], time_s=math.nan)
    return dataclasses.replace(report, intervals=rows, summary={"r_over": math.nan})


RUNS = {
    "whole": lambda report: report,
    "one interval": lambda report: cut(report, 1),
    "no operators": lambda report: dataclasses.replace(report, operators=[]),
    "unknown numbers": unknown,
    "odd names": lambda report: renamed(report, ["a$x_1$", "_hidden", "\N{ROCKET}\n", "x" * 300, "<b>&", "$"]),
    "many operators": lambda report: renamed(report, [f"operator {number}" for number in range(40)]),
    "operators of other intervals": lambda report: dataclasses.replace(cut(report, 5), operators=report.operators[-8:]),
}


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("change", RUNS.values(), ids=RUNS)
def test_a_plot_is_a_picture_of_sane_size(plot, change, made_run):
    assert 400 <= drawn(plot(change(made_run))) <= 4000


def test_plots_leave_matplotlib_as_it_was(made_run):
    before = dict(matplotlib.rcParams)
    plots.rates_plot(made_run)
    assert dict(matplotlib.rcParams) == before


def test_series_count_from_the_start_of_the_first_interval(made_run):
    assert made_run.over.start_s[:3].tolist() == [0.0, 2.0, 4.0]
    assert made_run.over.end_s[:3].tolist() == [2.0, 4.0, 6.0]
    assert made_run.over.input_rate.iloc[0] == made_run.intervals[0].entered / 2.0


def test_a_run_without_intervals_has_series_without_rows(made_run):
    report = RunReport(run=made_run.run)
    assert (len(report.over), len(report.forecast), report.planned) == (0, 0, {})


def test_a_forecast_stands_at_the_interval_it_was_made_for(made_run):
    rows = [
        ForecastRow(number=number, series=source, step=step, rate=10.0 * step, forecaster="last")
        for number in (1, 60, 99)  # the last is of an interval that was not kept
        for source in ("tweets", "news")
        for step in (1, 2)
    ]
    assert dataclasses.replace(made_run, forecasts=rows).forecast.to_dict() == {4.0: 20.0, 122.0: 20.0}


def test_operators_stand_in_the_order_of_the_stream(made_run):
    rows = sorted(made_run.operators, key=lambda row: row.operator)
    assert operators_in_order(rows) == ["clean", "classify_content", "classify_author", "store"]


def test_an_operator_keeps_its_colour_where_others_are_left_out(made_run):
    report = renamed(made_run, [f"operator {number:02}" for number in range(40)])
    backlog, styles = report.by_operator["backlog"], styles_of(report)
    shown = largest(backlog + [1000 * (place > 25) for place in range(40)])
    assert list(shown) == [f"operator {number}" for number in range(26, 26 + MOST_OPERATORS)]
    assert [styles[f"operator {number:02}"]["linestyle"] for number in (0, 7, 14, 21)] == ["-", "--", ":", "-."]
    assert len({tuple(styles[name].values()) for name in backlog.columns[:28]}) == 28
