"""The part of a run's page that says how its decisions turned out."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from penstock.metrics.store import Store
from penstock.report.run import RunReport
from penstock.report.run_page import run_page
from penstock.report.scores import by_policy, scores_of, scores_plot
from penstock.simulator import Scenario, simulate
from penstock.workload import Trace

from .pages import words


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("scores") / "metrics.db")
    trace = Trace("made", 1.0, np.array([60.0] * 20 + [300.0] * 20))
    scenario = Scenario("dns", trace).changed(forecaster="drift", shadow="static:1")
    simulate(scenario, "psps", store=place)
    with closing(Store(place, must_exist=True)) as store:
        return RunReport.from_store(store, None)


def test_every_decision_but_the_last_has_a_score(report):
    scores = scores_of(report)
    assert scores.too_many.notna().sum() == len(report.intervals) - 1
    assert scores.index.equals(report.over.index)


def test_policies_are_put_beside_each_other(report):
    found = by_policy(report)
    assert list(found.index) == [("decides", "psps"), ("shadow", "static:1")]
    psps, static = found.loc["decides", "psps"], found.loc["shadow", "static:1"]
    assert psps.late <= psps.nothing_late
    assert static.too_few > psps.too_few
    assert psps.forecast_error == static.forecast_error > 0


def test_the_page_has_them(report):
    page = words(run_page(report))
    assert "How decisions turned out" in page
    assert "begins; static:1 decides in its shadow, and is never carried out" in page


def test_a_run_without_scores_has_no_such_part(report):
    bare = RunReport(run=report.run, intervals=report.intervals, operators=report.operators)
    assert "How decisions turned out" not in words(run_page(bare))


def test_late_events_that_decisions_avoided_are_drawn(report):
    """The load jumps fivefold: had nothing been changed, far more would have been late."""
    scores = scores_of(report)
    avoided = (scores.nothing_late.astype(float) - scores.late.astype(float)).max()
    assert avoided > 10
    figure = scores_plot.__wrapped__(report)
    (axes,) = [one for one in figure.axes if one.get_title().startswith("Late events by what was decided")]
    assert axes.get_ylim()[1] == pytest.approx(1.12 * avoided)
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["avoided", "caused"]
