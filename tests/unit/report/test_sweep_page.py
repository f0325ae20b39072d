"""A sweep on a page and in the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock.report.sweep import cost_table, promise
from penstock.report.sweep_page import sweep_page
from penstock.simulator.curves import Point, SweepResult

from .pages import Elements, words

SETTINGS = {
    "app": "row",
    "policies": ["a", "b"],
    "factors": [1.0, 2.0],
    "seeds": [0],
    "arrivals": "even",
    "contest": {"target_ms": "2000.0", "td_s": "5.0"},
    "traces": {name: {"duration_s": 600.0, "mean": 50.0, "peak": 90.0} for name in ("calm", "wild")},
}
POINTS = [
    Point(trace, 0, policy, factor, late, cost)
    for trace, policy, factor, late, cost in (
        ("calm", "a", 1.0, 0.0, 120.0),
        ("calm", "a", 2.0, 0.0, 240.0),
        ("wild", "a", 1.0, 0.2, 130.0),
        ("wild", "a", 2.0, 0.01, 200.0),
        ("calm", "b<i>", 1.0, 0.3, 100.0),
        ("wild", "b<i>", 1.0, 0.4, 100.0),
        ("calm", "oracle", 1.0, 0.0, 110.0),
        ("wild", "oracle", 1.0, 0.0, 110.0),
    )
]


def result(points=POINTS, traces=("calm", "wild"), late=0.01):
    shown = {**SETTINGS, "traces": {name: SETTINGS["traces"][name] for name in traces}}
    return SweepResult(shown, late, dict.fromkeys(traces, 100.0), [one for one in points if one.trace in traces])


def test_the_page_has_the_frontier_what_the_promise_costs_and_a_picture_of_each_trace():
    page = sweep_page(result())
    images = [attributes for tag, attributes in Elements(page).found if tag == "img"]
    assert len(images) == 2
    said = words(page)
    assert "a keeps the promise (at most 1 % late) on 2 of 2 traces" in said
    assert "b<i> (1.00×, 35.0 % late), a (1.25×, 10.0 % late), a with 2 × its replicas (2.19×, 0.50 % late)." in said
    assert "<i>" not in page.replace('<i style="', "")


def test_one_trace_needs_no_small_pictures():
    page = sweep_page(result(traces=("wild",)))
    assert [tag for tag, _ in Elements(page).found].count("img") == 1
    assert "Trace by trace" not in page


def test_the_terminal_has_the_same():
    screen = io.StringIO()
    Console(file=screen, width=110).print(cost_table(result(), 110))
    rows = [line.split() for line in screen.getvalue().splitlines() if "of" in line]
    assert rows[0] == ["oracle", "2", "of", "2", "1.10×", "1.10×", "0", "%", "1.10×", "1.10×"]
    assert rows[1] == ["a", "2", "of", "2", "1.55×", "1.25×", "10.0", "%", "1.20×", "2.00×"]
    assert rows[2] == ["b<i>", "0", "of", "2", "–", "1.00×", "35.0", "%", "–", "–"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_any_terminal_will_do(width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(cost_table(result(), width))
    assert "oracle" in screen.getvalue()


def test_where_nobody_keeps_the_promise_it_says_so():
    late = [one for one in POINTS if one.late > 0.01]
    assert promise(result(late, ("wild",))).startswith("No policy keeps the promise (at most 1 % late)")
