"""The arena's report: the right winner in words, a table in the ranking's order, plots that stay readable."""

from __future__ import annotations

import base64
import dataclasses
import io
import itertools
import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Annotation, Text
from rich.console import Console

from penstock.apps import AppOptions
from penstock.errors import InputError
from penstock.report import arena_plots, canvas
from penstock.report.arena_data import MOST_LINES, ranking
from penstock.report.arena_labels import Point, place_labels
from penstock.report.arena_panels import time_axis
from penstock.report.arena_report import ArenaReport, arena_page, write_arena_report
from penstock.report.arena_scatter import arena_spots, scatter_plot
from penstock.report.arena_series import MOST_POINTS, arena_series, line_styles, maxima, means
from penstock.report.arena_tables import header, ranking_table
from penstock.report.arena_terminal import WIDEST, results_table
from penstock.report.arena_verdict import verdict
from penstock.simulator.arena import compete, ranked
from penstock.simulator.history import History
from penstock.simulator.options import SimulationOptions
from penstock.simulator.result import SimulationResult
from penstock.simulator.scenario import app_scenario, no_sink
from penstock.workload import constant

TD_S = 5.0
INTERVALS = 24
TRACE = constant(20.0, duration_s=INTERVALS * TD_S, name="steady")
PLOTS = [arena_plots.replicas_plot, arena_plots.latency_plot, arena_plots.backlog_plot]


def history(count=INTERVALS, *, td_s=TD_S, replicas=None, latency_s=None, backlog=None):
    """A history of two operators; the values are given for each interval, or made up."""
    made = History(("clean", "store"), SimpleNamespace(now_s=0.0, events=0, out=0, latency_total_s=0.0))
    made.times_s = [td_s * (number + 1) for number in range(count)]
    made.lengths_s = [td_s] * count
    made.entered = made.left = [round(20 * td_s)] * count
    made.replicas = [(one, 1) for one in (replicas or [1 + number % 3 for number in range(count)])]
    made.latency_s = latency_s or [0.05 * (1 + number % 5) for number in range(count)]
    made.backlog = backlog or [number % 7 for number in range(count)]
    return made


def result(policy, late=0.0, cost=300.0, **more):
    given = {
        "saved_resources": 0.56,
        "throughput_degradation": 0.18,
        "processed_ratio": 0.9987,
        "latency_ms": {"mean": 250.0, "p50": 70.0, "p99": 2100.0},
        "oracle_ratio": cost / 200.0,
        "reconfigurations": 12,
        "max_backlog": 345,
        "dropped": {},
        "events": 2400,
        "wall_s": 0.1,
        "r_over": 26,
        "backlog": 0,
        "target_ms": 2000.0,
        "history": history(),
    }
    return SimulationResult(policy=policy, late_ratio=late, replica_seconds=cost, **{**given, **more})


ORACLE = result("oracle", late=0.001, cost=200.0)
PEAK = result("static:peak", cost=600.0, reconfigurations=0)
PSPS = result("psps", late=0.005, cost=210.0)
KEDA = result("keda", late=0.2, cost=250.0)
UNKNOWN = result("lost", late=math.nan, cost=math.nan)
ALL = [KEDA, PEAK, UNKNOWN, ORACLE, PSPS]


def report(results=tuple(ALL), **more):
    given = {"app": "twitter", "trace": TRACE, "options": SimulationOptions(td_s=TD_S), "results": results}
    return ArenaReport(**{**given, **more})


class Elements(HTMLParser):
    """Collects the elements of a page, and fails where they are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.found, self.open = [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def words(page):
    found = re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*</style>", "", page, flags=re.DOTALL))
    return re.sub(r"\s+([,.:])", r"\1", re.sub(r"\s+", " ", found.replace("&shy;", "")))


def said_of(*results):
    return re.sub(r"<[^>]+>", "", verdict(report(results)))


@pytest.fixture
def undrawn(monkeypatch):
    """No plots over time, where only words count: they take a second."""
    monkeypatch.setattr(arena_plots, "picture", lambda draw, height_in: b"")


# The verdict


def test_the_cheapest_that_meets_the_target_wins_and_is_compared_with_oracle_and_peak():
    assert said_of(KEDA, PEAK, ORACLE, PSPS) == (
        "psps is the cheapest policy that meets the target (99 % of events within 2 s): 0.50 % of its events are late. "
        "It takes 210 replica-seconds, 5.0 % more than the oracle and 65.0 % fewer than static:peak. "
        "Next is static:peak, which meets it too: it takes 600 replica-seconds, 2.9 times as many as psps."
    )


def test_the_oracle_never_wins():
    assert said_of(ORACLE, PEAK, KEDA).startswith("static:peak is the cheapest policy that meets the target")
    assert "3.0 times as many as the oracle. Next is keda, which misses it: 20.0 %" in said_of(ORACLE, PEAK, KEDA)


def test_where_only_the_oracle_meets_the_target_the_nearest_is_named():
    nearer = result("ds2", late=0.0101, cost=200.0)
    assert said_of(KEDA, ORACLE, nearer) == (
        "Only the oracle, which knows the next interval, meets the target (99 % of events within 2 s). "
        "ds2 comes nearest: 1.01 % of its events are late. It takes 200 replica-seconds, as many as the oracle."
    )


def test_where_nobody_meets_the_target_it_says_so_plainly():
    assert said_of(KEDA).startswith(
        "No policy meets the target (99 % of events within 2 s). keda comes nearest: 20.0 %"
    )
    assert ", not even the oracle. keda comes" in said_of(KEDA, dataclasses.replace(ORACLE, late_ratio=0.5))


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([], "No policies were compared."),
        ([PSPS], "psps meets the target (99 % of events within 2 s): 0.50 % of its events are late."),
        ([ORACLE], "Of the oracle alone there are results: it meets the target (99 % of events within 2 s)."),
        ([dataclasses.replace(UNKNOWN, events=0)], "No events entered: nothing to compare."),
        ([UNKNOWN], "Of no policy it is known how late it was."),
    ],
)
def test_few_or_empty_results_have_a_verdict_of_their_own(results, said):
    assert said_of(*results).startswith(said)


# The ranking


def test_the_ranking_is_the_arenas_and_what_is_not_known_comes_last():
    known = [one for one in ALL if one is not UNKNOWN]
    assert ranking(ALL) == [*ranked(known), UNKNOWN]
    for order in itertools.permutations(ALL):
        assert [one.policy for one in ranking(order)] == ["oracle", "psps", "static:peak", "keda", "lost"]


def test_the_table_has_every_figure_of_a_policy():
    dropping = dataclasses.replace(PSPS, dropped={"t_out": 1200, "q_size": 0, "error": 3}, replica_seconds=78230.4)
    shown = words(ranking_table(report([dropping])))
    assert (
        "psps ✓ yes 78,230 1.05× 56.0 % 18.0 % 99.87 % 250 ms 70.0 ms 2.10 s 0.50 % 12 345 1,200 t_out, 3 error"
    ) in shown
    assert "reconfigurations" in shown


def test_the_header_says_what_was_played():
    options = SimulationOptions(td_s=30, t_out_s=30, q_size=100_000, actuation="restart", restart_s=20, seed=7)
    chosen = {"grouping": "shuffle", "forecaster": None, "slots": [1, 2.5]}
    shown = words(header(report(options=options, settings=chosen)))
    for chip in ("trace steady", "length 2 min 00 s", "mean 20.0 events/s", "peak 20.0 events/s", "events 2,400"):
        assert chip in shown
    for chip in ("td 30 s", "t_out 30 s", "q_size 100,000", "actuation restart restart 20 s", "seed 7"):
        assert chip in shown
    assert "grouping shuffle slots 1, 2.5" in shown
    assert "activation delay" not in shown
    assert "forecaster" not in shown


# The page


@pytest.fixture(scope="module")
def made_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("reports") / "new" / "arena.html"
    write_arena_report(path, report())
    return path.read_text(encoding="utf-8")


def test_the_file_needs_nothing_else(made_page):
    found = Elements(made_page).found
    assert {tag for tag, _ in found}.isdisjoint({"script", "link", "iframe", "object", "a", "base"})
    pictures = [base64.b64decode(attrs["src"].partition("base64,")[2]) for tag, attrs in found if tag == "img"]
    assert len(set(pictures)) == 4
    assert all(one.startswith(b"\x89PNG\r\n\x1a\n") for one in pictures)
    assert not re.search(r"https?:|url\(|@import|href=|srcset=|\son\w+=", made_page)
    assert len(made_page) < 2_000_000


def test_odd_names_are_escaped_and_drawn():
    evil = "<script>alert('1')</script>&\n$x_1$[bold]\N{ROCKET}"
    odd = [dataclasses.replace(one, policy=evil) for one in (PSPS, PEAK)]
    page = arena_page(report([*odd, ORACLE], app=evil, settings={evil: evil}))
    found = Elements(page).found
    assert "script" not in {tag for tag, _ in found}
    assert "&lt;script&gt;" in page
    assert len([tag for tag, _ in found if tag == "img"]) == 4


def nothing_known(one):
    gone = dict.fromkeys(
        ("saved_resources", "throughput_degradation", "processed_ratio", "late_ratio", "oracle_ratio", "max_backlog")
    )
    return dataclasses.replace(one, **gone, latency_ms={"mean": None}, replica_seconds=math.inf, dropped=None)


CONTESTS = {
    "whole": ALL,
    "empty": [],
    "one": [PSPS],
    "oracle alone": [ORACLE],
    "nothing known": [nothing_known(PSPS), nothing_known(ORACLE)],
    "the same policy twice": [PSPS, PSPS, dataclasses.replace(PSPS, late_ratio=0.9)],
    "no intervals": [dataclasses.replace(PSPS, history=history(0)), ORACLE],
    "one interval": [dataclasses.replace(PSPS, history=history(1))],
    "nothing ever left": [dataclasses.replace(PSPS, history=history(latency_s=[math.nan] * INTERVALS))],
    "extreme costs": [PSPS, result("static:64", cost=1e6), result("tiny", cost=0.0)],
    "many": [result(f"static:{number}", late=0.5 / number, cost=100.0 * number) for number in range(1, 40)],
}


@pytest.mark.parametrize("results", CONTESTS.values(), ids=CONTESTS)
def test_whatever_the_results_there_is_a_page(results):
    page = arena_page(report(results))
    Elements(page)
    assert not re.search(r"\b(nan|inf|None)\b", words(page))


def test_a_trace_without_events_has_a_page(undrawn):
    silent = dataclasses.replace(UNKNOWN, events=0, replica_seconds=30.0, history=history(latency_s=[math.nan] * 24))
    page = arena_page(report([silent], trace=constant(0.0, duration_s=120.0)))
    assert "No events entered" in page
    assert page.count("<img") == 3  # nothing to draw cost against


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be written; Is a directory"):
        write_arena_report(tmp_path, report([]))


def test_it_takes_what_the_simulator_gives(tmp_path):
    options = SimulationOptions(td_s=TD_S)
    setup = app_scenario("dns", TRACE, options=options, tuning=AppOptions(sink=no_sink)).setup()
    found = compete(setup, ["static:mean", "psps", "oracle"])
    write_arena_report(tmp_path / "arena.html", report(found, app="dns", options=options))
    shown = words((tmp_path / "arena.html").read_text(encoding="utf-8"))
    assert f"events {found[0].events:,}" in shown
    assert all(one.policy in shown for one in found)


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


# The terminal


def printed(results, width=200):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(results_table(results))
    return console.file.getvalue().splitlines()


def test_the_terminal_has_the_same_ranking_with_marks():
    head, _, *rows = printed(ALL)
    assert head.split() == [
        *("policy", "ok", "replica-s", "×oracle", "saved", "proc."),
        *("mean", "p99", "late", "changes", "backlog", "dropped"),
    ]
    assert [row.split()[:2] for row in rows] == [
        ["oracle", "✓"],
        ["psps", "✓"],
        ["static:peak", "✓"],
        ["keda", "–"],
        ["lost", "–"],
    ]
    shown = "psps ✓ 210 1.05 56.0 % 99.87 % 250 ms 2.10 s 0.50 % 12 345 0"
    assert " ".join(rows[1].split()) == shown


def test_the_terminals_table_is_never_wider_than_promised():
    huge = {"saved_resources": -12.345, "reconfigurations": 123_456, "max_backlog": 98_765_432, "oracle_ratio": 1234.5}
    latency = {"latency_ms": {"mean": 5e7, "p99": 5e7}, "dropped": {"t_out": 98_765_432}}
    name = "psps:predecessor_backlog,use_forecast"
    lines = printed([result(name, cost=9.8e7, late=0.00001, **huge, **latency), nothing_known(ORACLE)])
    assert max(map(len, lines)) <= WIDEST
    assert "…" not in "".join(lines)  # all numbers are there in full
    assert "".join(line.split(" ")[0] for line in lines[2:]).startswith(name)


def test_the_terminal_shows_odd_names_as_they_are():
    lines = printed([result("[bold]x[/bold]:smile:\n")])
    assert lines[2].startswith("[bold]x[/bold]:smile:□")


def test_an_empty_contest_has_an_empty_table():
    assert len(printed([])) == 2
