from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.metrics.execution_time import ExecutionTimes
from penstock.testing.loads import load, snapshot


def test_nothing_is_known_before_the_first_event():
    assert ExecutionTimes().learn("a", 0.0, 0) is None


def test_the_first_events_are_the_benchmark():
    times = ExecutionTimes(half_life_s=1e9)
    times.learn("a", 1.0, 100)
    assert times.learn("a", 3.0, 100) == pytest.approx(0.02)


def test_a_declared_time_holds_at_first_and_gives_way_to_measurements():
    times = ExecutionTimes({"a": 0.1}, half_life_s=1)
    assert times.estimate_s("a") == pytest.approx(0.1)
    for _ in range(10):
        times.learn("a", 1.0, 100)
    assert times.estimate_s("a") == pytest.approx(0.01, rel=0.01)


def test_it_follows_a_change_with_the_half_life():
    times = ExecutionTimes(half_life_s=2)
    for _ in range(50):
        times.learn("a", 1.0, 100)
    for _ in range(2):
        times.learn("a", 3.0, 100)
    assert times.estimate_s("a") == pytest.approx(0.02)


def test_an_interval_with_many_events_weighs_more():
    times = ExecutionTimes(half_life_s=1e9)
    times.learn("a", 9.0, 900)
    assert times.learn("a", 10.0, 100) == pytest.approx(0.019)


@pytest.mark.parametrize("busy_s", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("processed", [0, -1, 10, math.nan])
def test_nonsense_changes_nothing(busy_s, processed):
    times = ExecutionTimes()
    times.learn("a", 1.0, 100)
    assert times.learn("a", busy_s, processed) == pytest.approx(0.01)


def test_idle_intervals_do_not_wear_it_out():
    times = ExecutionTimes(half_life_s=1)
    times.learn("a", 1.0, 100)
    for _ in range(10_000):
        times.learn("a", 0.0, 0)
    assert times.estimate_s("a") == pytest.approx(0.01)


def test_a_snapshot_gets_the_estimates_and_bad_operators_teach_nothing():
    times = ExecutionTimes({"b": 0.05})
    loads = [load("a", {"in": 10}, execution_time_s=0.02), load("b", {"a": 10}, execution_time_s=9.0), load("c", {})]
    seen = times.update(snapshot({"in": 10}, loads, incomplete={"b": "stale"}))
    assert [one.execution_time_s for one in seen.operators.values()] == [
        pytest.approx(0.02),
        pytest.approx(0.05),
        None,
    ]


@pytest.mark.parametrize("time_s", [0, -0.1, math.nan])
def test_a_declared_time_is_above_zero(time_s):
    with pytest.raises(InputError, match="operator 'a': execution time must be above 0 s"):
        ExecutionTimes({"a": time_s})


def test_half_life_is_above_zero():
    with pytest.raises(InputError, match="half_life_s must be above 0"):
        ExecutionTimes(half_life_s=0)
