"""The arena's plots: lines over time, and cost against lateness, that stay readable whatever the results."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.report import arena_page
from penstock.report.arena import MOST_LINES
from penstock.report.arena_page import arena_spots, place_labels, scatter_plot
from penstock.report.draw import GREY, MOST_POINTS, POLICIES, thinned, time_axis
from penstock.workload import constant

from .contests import CONTESTS, ORACLE, PEAK, PSPS, TD_S, history, report, result
from .pages import drawn

pytestmark = pytest.mark.usefixtures("rendered")
PLOTS = [arena_page.replicas_plot, arena_page.latency_plot]


# Lines over time


def test_the_first_of_the_ranking_and_the_oracle_are_drawn_each_in_a_colour_of_its_own():
    contest = report(CONTESTS["many"])
    assert list(contest.drawn) == list(contest.named)[:MOST_LINES]
    rivals = [name for name in contest.named if name != "oracle"]
    with_oracle = report([*CONTESTS["many"], ORACLE]).drawn
    assert list(with_oracle) == [*rivals[: MOST_LINES - 1], "oracle"]
    assert with_oracle["oracle"] == GREY
    assert len(set(contest.drawn.values())) == len(set(POLICIES)) == MOST_LINES


def test_a_policy_that_comes_again_is_numbered():
    assert list(report(CONTESTS["the same policy twice"]).named) == ["psps", "psps (2)", "psps (3)"]


def test_groups_keep_means_and_maxima():
    latency_s = [0.1] * 2000
    latency_s[777] = 42.0
    latency_s[1000:1004] = [math.nan] * 4
    made = history(2000, replicas=[1, 2, 3, 4] * 500, latency_s=latency_s)
    trace = constant(20.0, duration_s=2000 * TD_S)
    levels = report([dataclasses.replace(PSPS, history=made)], trace=trace).levels["psps"]
    assert len(levels) == 500
    assert set(levels.replicas) == {3.5}  # of clean 2.5, and 1 of store
    assert levels.latency_ms[777 // 4] == 42_000
    assert np.flatnonzero(levels.latency_ms.isna()).tolist() == [250]
    assert (*levels.start_s[:2], levels.end_s.iloc[-1]) == (0.0, 20.0, 10_000.0)
    assert levels.start_s[1:].tolist() == levels.end_s[:-1].tolist()


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.1, 100)), min_size=1, max_size=50),
    st.integers(1, 60),
)
def test_grouping_loses_neither_replica_seconds_nor_the_greatest(pairs, most):
    values, lengths_s = (np.array(column) for column in zip(*pairs, strict=True))
    edges_s = np.append(0.0, np.cumsum(lengths_s))
    rows = pd.DataFrame({"start_s": edges_s[:-1], "end_s": edges_s[1:], "replicas": values, "backlog": values})
    found = thinned(rows, most, greatest=["backlog"])
    size = math.ceil(len(pairs) / most)
    assert (found.replicas * (found.end_s - found.start_s)).sum() == pytest.approx(values @ lengths_s)
    assert found.backlog.tolist() == [values[start : start + size].max() for start in range(0, len(pairs), size)]
    assert (found.start_s.iloc[0], found.end_s.iloc[-1]) == (edges_s[0], edges_s[-1])


def test_a_very_long_trace_has_few_points():
    count = 200_000
    made = history(count, latency_s=[0.1] * count, backlog=[1] * count, replicas=[2] * count)
    trace = constant(1.0, duration_s=count * TD_S)
    contest = report([dataclasses.replace(PSPS, history=made)], trace=trace)
    assert MOST_POINTS / 2 < len(contest.levels["psps"]) <= MOST_POINTS
    assert len(contest.input) <= MOST_POINTS
    assert contest.input.rate.to_numpy() == pytest.approx(1.0)


def test_time_after_the_trace_is_cut_where_it_goes_on_for_long():
    slow = dataclasses.replace(PSPS, policy="static:1", history=history(100))
    contest = report([slow, PEAK])
    assert contest.end_s == 120.0 + 50.0  # ten intervals more than the trace
    assert contest.levels["static:1"].end_s.iloc[-1] == 170.0
    assert contest.levels["static:peak"].end_s.iloc[-1] == 120.0


def test_a_trace_shorter_than_an_interval_is_drawn():
    contest = report([dataclasses.replace(PSPS, history=history(1))], trace=constant(20.0, duration_s=1.0))
    assert len(contest.levels["psps"]) == 1
    assert contest.end_s == TD_S


def test_months_are_counted_in_days():
    axes = Figure().add_subplot()
    time_axis(axes, 61 * 86400.0)
    assert axes.get_xlabel() == "time since start (days)"
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown[:3] == ["0", "7", "14"]
    time_axis(axes, 7200.0)
    assert axes.get_xlabel() == "time since start (min)"


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("name", ["whole", "oracle alone"])
def test_a_plot_is_a_picture_of_sane_size(plot, name):
    assert 400 <= drawn(plot(report(CONTESTS[name]))) <= 2400


# Cost against lateness


def test_a_point_for_each_policy_of_which_cost_and_lateness_are_known():
    spots = arena_spots(report())
    assert [(spot.Index, spot.cost, spot.late, spot.kind) for spot in spots.itertuples()] == [
        ("oracle", 1.0, 0.001, "oracle"),
        ("psps", 1.05, 0.005, "meets the target"),
        ("static:peak", 3.0, 0.0, "meets the target"),
        ("keda", 1.25, 0.2, "misses it"),
    ]


def test_names_for_which_there_is_no_room_are_left_out():
    crowd = [result(f"policy number {n}", late=0.3 + n / 900, cost=200 + n / 4) for n in range(120)]
    axes = Figure(figsize=(8, 4)).add_subplot()
    place_labels(axes, arena_spots(report(crowd)))
    assert 0 < len(axes.texts) < 120
    assert drawn(scatter_plot(arena_spots(report(crowd)), 0.01))


PLACES = st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)), min_size=1, max_size=25)


@settings(max_examples=25, deadline=None)
@given(PLACES)
def test_labels_cover_neither_each_other_nor_points(places):
    figure = Figure(figsize=(8, 4), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    spots = pd.DataFrame(places, columns=["cost", "late"], index=[f"policy {number}" for number in range(len(places))])
    place_labels(axes, spots.assign(kind="misses it"))
    written = [name for text in axes.texts for name in text.get_text().splitlines()]
    assert 1 <= len(set(written)) == len(written)
    assert set(written) <= set(spots.index)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    marks = axes.transData.transform(places)
    assert not any(box.contains(x, y) for box in boxes for x, y in marks)
