"""What was planned ahead, beside what ran."""

from __future__ import annotations

import dataclasses
import io
import math
import re
from contextlib import closing

import pytest
from matplotlib.image import imread

from penstock.metrics.rows import ForecastRow, IntervalRecord, TimetableRow
from penstock.metrics.store import Store
from penstock.report.draw import WIDTH_IN
from penstock.report.plots import timetable_plot
from penstock.report.run import RunReport
from penstock.report.run_page import run_page
from penstock.report.series import MOST_PLANNED, run_series, timetables_of

from .pages import section, words


def planned(report, horizon=6, operators=None):
    """The run with a timetable for each decision: what was decided, then one more every other step."""
    names = operators or {row.operator for row in report.operators}
    rows = [
        TimetableRow(number=one.number, operator=one.operator, step=step, replicas=one.after + step // 2)
        for one in report.decisions
        if one.operator in names
        for step in range(1, horizon + 1)
    ]
    return dataclasses.replace(report, timetables=rows)


def longer(report, times):
    """The run again and again."""
    count = len(report.intervals)

    def again(rows, **more):
        return [
            dataclasses.replace(
                row, number=row.number + count * turn, **{key: make(row, turn) for key, make in more.items()}
            )
            for turn in range(times)
            for row in rows
        ]

    length_s = count * report.intervals[0].interval_s
    return dataclasses.replace(
        report,
        intervals=again(report.intervals, time_s=lambda row, turn: row.time_s + turn * length_s),
        operators=again(report.operators),
        decisions=again(report.decisions),
    )


def many(report):
    rows = [row for row in report.operators if row.operator == "clean"]
    names = [f"o{number:02}" for number in range(20)]
    operators = [dataclasses.replace(row, operator=name) for name in names for row in rows]
    made = [row for row in planned(report).timetables if row.operator == "clean"]
    timetables = [dataclasses.replace(row, operator=name) for name in names for row in made]
    return dataclasses.replace(report, operators=operators, timetables=timetables)


def lost(report):
    """Intervals that cannot be placed in time, plans of intervals that were not kept, operators without rows."""
    rows = list(report.intervals)
    rows[3] = dataclasses.replace(rows[3], time_s=math.nan)
    more = [
        TimetableRow(number=number, operator=name, step=1, replicas=2) for number in (4, 99) for name in ("?", "clean")
    ]
    return dataclasses.replace(planned(report), intervals=rows, timetables=[*planned(report).timetables, *more][:-60])


RUNS = {
    "short": planned,
    "long": lambda report: planned(longer(report, 4)),
    "one interval": lambda report: dataclasses.replace(planned(report), intervals=report.intervals[:1]),
    "one operator": lambda report: planned(report, operators={"store"}),
    "many operators": many,
    "lost numbers": lost,
    "very far ahead": lambda report: planned(report, horizon=200),
}


@pytest.mark.parametrize("change", RUNS.values(), ids=RUNS)
def test_the_plot_is_a_picture_of_sane_size(change, made_run):
    report = change(made_run)
    series = run_series(report)
    content = timetable_plot(series, timetables_of(report, series))
    pixels = imread(io.BytesIO(content), format="png")
    height, width, _ = pixels.shape
    assert width == WIDTH_IN * 200
    assert 400 <= height <= 4000
    assert len(content) < 800_000
    assert pixels[..., :3].min() < 0.5 < pixels[0, 0, :3].min()  # something is drawn, on white


def test_the_range_of_plans_for_an_interval(made_run):
    """Plans of intervals 1 and 2 for interval 3: the second step of the first, the first step of the second."""
    rows = [
        TimetableRow(number=number, operator="clean", step=step, replicas=replicas)
        for number, steps in ((1, (4, 7)), (2, (5, 9)))
        for step, replicas in enumerate(steps, start=1)
    ]
    report = dataclasses.replace(made_run, timetables=rows)
    series = run_series(report)
    tables = timetables_of(report, series)
    assert tables.operators == ["clean"]
    bounds = tables.bounds("clean", series.intervals.index)
    assert bounds["min"][:5].tolist() == pytest.approx([math.nan, 4, 5, 9, math.nan], nan_ok=True)
    assert bounds["max"][:5].tolist() == pytest.approx([math.nan, 4, 7, 9, math.nan], nan_ok=True)
    second = tables.plan("clean", 2)
    assert list(zip(second.start_s, second.end_s, second.replicas, strict=True)) == [(4.0, 6.0, 5), (6.0, 8.0, 9)]


def test_a_plan_beyond_the_end_of_the_run_goes_on_with_td(made_run):
    report = planned(made_run, horizon=3)
    last = timetables_of(report, run_series(report)).plan("clean", 60)
    assert [*last.start_s, last.end_s.iloc[-1]] == [120.0, 122.0, 124.0, 126.0]


def test_a_long_run_has_a_close_up_of_where_most_changed(made_run):
    short, long = planned(made_run), planned(longer(made_run, 4))
    first, last = timetables_of(short, run_series(short)).window
    assert (last - first, first < 17, last > 41) == (30, True, True)  # both spikes, at 18 and 41
    flat = [dataclasses.replace(row, replicas=2) if row.number <= 180 else row for row in long.operators]
    changed = dataclasses.replace(long, operators=flat)
    first, last = timetables_of(changed, run_series(changed)).window
    assert (last - first, first >= 150) == (30, True)
    far = planned(made_run, horizon=7)
    assert timetables_of(far, run_series(far)).window is None


@pytest.mark.usefixtures("undrawn")
def test_of_many_operators_the_largest_are_shown_and_it_is_said(made_run):
    report = many(made_run)
    assert len(timetables_of(report, run_series(report)).operators) == MOST_PLANNED
    assert "Shown are the 8 of 20 operators with most replicas." in words(run_page(report))


@pytest.mark.usefixtures("undrawn")
def test_the_section_stands_in_the_page_only_where_there_is_a_plan_ahead(made_run):
    assert section(run_page(made_run), "Timetables") is None
    assert section(run_page(planned(made_run, horizon=1)), "Timetables") is None
    page = run_page(planned(made_run))
    assert len(re.findall("base64,", page)) == 5
    assert "planned each operator's replicas for 6 intervals ahead" in words(section(page, "Timetables"))


def test_timetables_come_from_the_store(made_run, tmp_path):
    rows = tuple(planned(made_run).timetables[:12])
    with closing(Store(str(tmp_path / "metrics.sqlite"))) as store:
        store.start_run(made_run.run)
        store.write(made_run.run.run, IntervalRecord(interval=made_run.intervals[0], timetables=rows))
        assert len(RunReport.from_store(store, made_run.run.run).timetables) == 12


def test_forecasts_of_operators_are_not_added_to_what_enters(made_run):
    """A policy that plans ahead has a forecast for every operator too; once they were all added up in the plot."""
    row = ForecastRow(number=1, series="tweets", step=1, rate=10.0, forecaster="drift")
    rows = [row, dataclasses.replace(row, series="clean", rate=7.0)]
    assert run_series(dataclasses.replace(made_run, forecasts=rows)).forecast.tolist() == [10.0]
