"""The arena's plots: lines over time, and cost against lateness, that stay readable whatever the results."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Annotation, Text

from penstock.report import arena_plots, canvas
from penstock.report.arena_data import MOST_LINES, ranking
from penstock.report.arena_labels import Point, place_labels
from penstock.report.arena_panels import time_axis
from penstock.report.arena_report import arena_page
from penstock.report.arena_scatter import arena_spots, scatter_plot
from penstock.report.arena_series import MOST_POINTS, arena_series, line_styles, maxima, means
from penstock.workload import constant

from .contests import CONTESTS, INTERVALS, ORACLE, PEAK, PSPS, TD_S, history, report, result, words

PLOTS = [arena_plots.replicas_plot, arena_plots.latency_plot, arena_plots.backlog_plot]


# Lines over time


def test_the_first_of_the_ranking_and_the_oracle_are_drawn_each_in_a_style_of_its_own():
    contest = report(CONTESTS["many"])
    assert contest.drawn == ranking(contest.results)[:MOST_LINES]
    with_oracle = report([*CONTESTS["many"], ORACLE])
    assert with_oracle.drawn == [*with_oracle.rivals[: MOST_LINES - 1], ORACLE]
    styles = [style for _, style in line_styles(contest)]
    assert len({colour for colour, _ in styles}) == len({dashes for _, dashes in styles}) == MOST_LINES


def test_groups_keep_means_and_maxima():
    latency_s = [0.1] * 2000
    latency_s[777] = 42.0
    latency_s[1000:1004] = [math.nan] * 4
    made = history(2000, replicas=[1, 2, 3, 4] * 500, latency_s=latency_s, backlog=[0] * 1999 + [9])
    trace = constant(20.0, duration_s=2000 * TD_S)
    series = arena_series(report([dataclasses.replace(PSPS, history=made)], trace=trace))
    (line,) = series.lines
    assert series.grouped == 4
    assert len(line.edges_s) == len(line.replicas) + 1 == 501
    assert set(line.replicas) == {3.5}  # of clean 2.5, and 1 of store
    assert line.latency_ms[777 // 4] == 42_000
    assert np.flatnonzero(np.isnan(line.latency_ms)).tolist() == [250]
    assert line.backlog[-1] == 9
    assert line.edges_s[[0, 1, -1]].tolist() == [0.0, 20.0, 10_000.0]


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.1, 100)), min_size=1, max_size=50),
    st.integers(1, 60),
)
def test_grouping_loses_neither_replica_seconds_nor_the_greatest(pairs, size):
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    groups = [slice(start, start + size) for start in range(0, len(pairs), size)]
    found = means(values, weights, size)
    assert found @ [weights[one].sum() for one in groups] == pytest.approx(values @ weights)
    assert maxima(values, size).tolist() == [values[one].max() for one in groups]


def test_a_very_long_trace_has_few_points():
    count = 200_000
    made = history(count, latency_s=[0.1] * count, backlog=[1] * count, replicas=[2] * count)
    trace = constant(1.0, duration_s=count * TD_S)
    series = arena_series(report([dataclasses.replace(PSPS, history=made)], trace=trace))
    assert MOST_POINTS / 2 < series.lines[0].replicas.size <= MOST_POINTS
    assert series.input_rate.size <= 1200
    assert series.input_rate == pytest.approx(1.0)


def test_time_after_the_trace_is_cut_where_it_goes_on_for_long(undrawn):
    slow = dataclasses.replace(PSPS, policy="static:1", history=history(100))
    series = arena_series(report([slow, PEAK]))
    assert series.end_s == 120.0 + 50.0  # ten intervals more than the trace
    assert series.longer_s == {"static:1": 500.0}
    assert "static:1 had events waiting until 8 min 20 s, which is not drawn." in words(arena_page(report([slow])))


def test_a_trace_shorter_than_an_interval_is_drawn():
    series = arena_series(report([dataclasses.replace(PSPS, history=history(1))], trace=constant(20.0, duration_s=1.0)))
    assert series.lines[0].replicas.size == 1
    assert series.end_s == TD_S


def test_months_are_counted_in_days():
    axes = Figure().add_subplot()
    time_axis(axes, 61 * 86400.0)
    assert axes.get_xlabel() == "time since start (days)"
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown[:3] == ["0", "7", "14"]
    time_axis(axes, 7200.0)
    assert axes.get_xlabel() == "time since start (min)"


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("name", ["whole", "empty"])
def test_a_plot_is_a_picture_of_sane_size(plot, name):
    content = plot(arena_series(report(CONTESTS[name])))
    pixels = imread(io.BytesIO(content), format="png")
    height, width, _ = pixels.shape
    assert width == canvas.WIDTH_IN * canvas.DPI
    assert 400 <= height <= 2400
    assert len(content) < 800_000
    assert pixels[..., :3].min() < 0.6 < pixels[0, 0, :3].min()  # something is drawn, on white


def test_lines_that_would_hide_each_other_get_panels():
    calm = [dataclasses.replace(PSPS, history=history(replicas=[3] * INTERVALS))] * 2
    restless = [dataclasses.replace(PSPS, history=history(500, replicas=[1, 9] * 250))] * 2
    assert not arena_plots.crowded(arena_series(report(calm)))
    assert arena_plots.crowded(arena_series(report(restless, trace=constant(20.0, duration_s=2500.0))))


# Cost against lateness


def test_a_point_for_each_policy_of_which_cost_and_lateness_are_known():
    spots = arena_spots(report())
    assert [(spot.name, spot.cost, spot.late) for spot in spots] == [
        ("oracle", 1.0, 0.001),
        ("psps", 1.05, 0.005),
        ("static:peak", 3.0, 0.0),
        ("keda", 1.25, 0.2),
    ]
    assert [spot.meets for spot in spots] == [True, True, True, False]


def test_names_for_which_there_is_no_room_are_told(undrawn):
    crowd = [result(f"policy number {n}", late=0.3 + n / 900, cost=200 + n / 4) for n in range(120)]
    spots = arena_spots(report(crowd))
    content, left_out = scatter_plot(spots)
    assert left_out
    assert content.startswith(b"\x89PNG")
    assert f"There was no room for the names of {left_out[0]}" in arena_page(report(crowd))


PLACES = st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)), min_size=1, max_size=25)


@settings(max_examples=25, deadline=None)
@given(PLACES)
def test_labels_cover_neither_each_other_nor_points(places):
    figure = Figure(figsize=(8, 4), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    points = [Point(f"policy {number}", x, y) for number, (x, y) in enumerate(places)]
    left_out = place_labels(axes, points)
    labels = [text for text in axes.texts if isinstance(text, Annotation)]
    written = [name for text in labels for name in re.split(r",\s", text.get_text())]
    assert sorted([*written, *left_out]) == sorted(point.name for point in points)
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in labels]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    marks = axes.transData.transform(places)
    assert not any(box.contains(x, y) for box in boxes for x, y in marks)
