from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.figures import METRICS, Measured, cost, figures_of, measured

ROWS = {
    "times_s": [10.0, 20.0, 30.0, 40.0],
    "lengths_s": [10.0] * 4,
    "left": [60, 20, 10, 10],
    "latency_s": [0.1, 0.4, math.nan, 9.0],
    "replicas": [(1, 1), (2, 1), (2, 1), (1, 1)],
}


def result(**history: Any) -> Any:
    return SimpleNamespace(
        history=SimpleNamespace(**{**ROWS, **history}),
        saved_resources=0.25,
        workers_saved=None,
        throughput_degradation=0.1,
        late_ratio=0.2,
        reconfigurations=2,
        r_over=4,
        events=100,
        dropped={"t_out": 3, "q_size": 2},
    )


def test_what_leaves_after_the_input_is_not_processed() -> None:
    figures = figures_of(result(left=[60, 20, 0, 20]), input_s=20.0, r_over=None)
    assert figures["processed"] == 0.8
    assert figures["latency_ms"] == pytest.approx(1000 * (60 * 0.1 + 20 * 0.4) / 80)
    assert figures["replicas"] == 2.5
    assert (figures["saved"], figures["r_over"], figures["dropped"]) == (0.25, 4.0, 5.0)


def test_an_interval_that_the_input_ends_in_counts() -> None:
    assert figures_of(result(), input_s=20.5, r_over=None)["processed"] == 0.9


def test_the_papers_r_over_goes_before_ours() -> None:
    assert figures_of(result(), input_s=20.0, r_over=10)["saved"] == 0.75


def test_cost_adds_up_over_operators() -> None:
    # 8000 · (1 + 2) for the first and 8000 · 2 for the second; one start and one re-routing
    assert figures_of(result(), input_s=20.0, r_over=None)["cost"] == 5 * 8000 + 5000 + 100


def test_cost_of_a_timetable() -> None:
    assert cost([2, 2, 2]) == 48_000
    assert cost([1, 3, 2]) == 48_000 + 2 * 5000 + 5000 + 2 * 100


def test_latency_counts_only_two_minutes_after_a_change() -> None:
    history = {
        "times_s": [60.0, 120.0, 180.0, 240.0],
        "lengths_s": [60.0] * 4,
        "left": [1, 1, 1, 1],
        "latency_s": [1.0, 5.0, 5.0, 2.0],
        "replicas": [(1,), (2,), (2,), (2,)],
    }
    figures = figures_of(result(**history), input_s=240.0, r_over=None)
    assert figures["settled_ms"] == 1500.0  # the first, before any change, and the last


def test_nothing_left_is_not_a_number() -> None:
    assert math.isnan(figures_of(result(left=[0] * 4), input_s=20.0, r_over=None)["latency_ms"])


def test_means_over_seeds() -> None:
    found = measured([{"saved": 0.5}, {"saved": 0.7}])
    assert found["saved"].mean == pytest.approx(0.6)
    assert found["saved"].spread == pytest.approx(math.sqrt(0.02))
    assert measured([]) == {}
    assert Measured((3.0,)).spread == 0.0
    assert Measured((3.0, math.nan)).spread == 0.0
    assert math.isnan(Measured(()).mean)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("latency_ms", 2098.91, "2,099"),
        ("latency_ms", math.nan, "–"),
        ("saved", -0.25, "−0.2500"),
        ("late", 0.048, "4.8 %"),
        ("replicas", 16.94, "16.9"),
    ],
)
def test_figures_read_well(name: str, value: float, shown: str) -> None:
    assert METRICS[name].shown(value) == shown
