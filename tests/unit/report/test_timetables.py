"""What was planned ahead, beside what ran."""

from __future__ import annotations

import dataclasses
import math
from contextlib import closing

import pytest

from penstock.metrics.rows import ForecastRow, IntervalRecord, TimetableRow
from penstock.metrics.store import Store
from penstock.report.run import RunReport
from penstock.report.run_page import replicas_plot, run_page

from .pages import drawn, words


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
@pytest.mark.usefixtures("rendered")
def test_the_plot_is_a_picture_of_sane_size(change, made_run):
    assert 400 <= drawn(replicas_plot(change(made_run))) <= 4000


def test_the_range_of_plans_for_an_interval(made_run):
    """Plans of intervals 1 and 2 for interval 3: the second step of the first, the first step of the second."""
    rows = [
        TimetableRow(number=number, operator="clean", step=step, replicas=replicas)
        for number, steps in ((1, (4, 7)), (2, (5, 9)))
        for step, replicas in enumerate(steps, start=1)
    ]
    report = dataclasses.replace(made_run, timetables=rows)
    assert list(report.planned) == ["clean"]
    bounds = report.planned["clean"]
    assert bounds["min"][:5].tolist() == pytest.approx([math.nan, 4, 5, 9, math.nan], nan_ok=True)
    assert bounds["max"][:5].tolist() == pytest.approx([math.nan, 4, 7, 9, math.nan], nan_ok=True)


def test_the_page_speaks_of_plans_only_where_there_is_one_ahead(made_run):
    assert "planned" not in words(run_page(made_run))
    assert planned(made_run, horizon=1).planned == {}
    assert "planned" not in words(run_page(planned(made_run, horizon=1)))
    assert "The policy planned 6 intervals ahead" in words(run_page(planned(made_run)))


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
    assert dataclasses.replace(made_run, forecasts=rows).forecast.tolist() == [10.0]
