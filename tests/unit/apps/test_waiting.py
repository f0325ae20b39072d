"""Service time: waited, not burnt; fixed or by value."""

from __future__ import annotations

import time
from statistics import mean

import cloudpickle
import pytest

from penstock.apps.waiting import TimeByValue, Waiting, times_of_values, wait


def double(event: int) -> int:
    return 2 * event


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were slept, without sleeping them."""
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    return naps


def test_time_passes_and_no_processor_is_used() -> None:
    began, busy = time.perf_counter(), time.thread_time()
    assert Waiting(double, 80.0)(4) == 8
    assert time.perf_counter() - began >= 0.08
    assert time.thread_time() - busy < 0.04


def test_the_declared_time_is_slept(slept: list[float]) -> None:
    Waiting(double, 12.5)(1)
    assert slept == [0.0125]


def test_nothing_is_slept_for_0_ms(slept: list[float]) -> None:
    assert Waiting(double, 0.0)(4) == 8
    wait(0.0)
    assert slept == []


def test_the_time_may_depend_on_the_event(slept: list[float]) -> None:
    work = Waiting(lambda event: event, TimeByValue("value", (5.0, 7.0)))
    for value in (0, 1, 0, 3):
        work({"value": value})
    assert slept == [0.005, 0.007, 0.005, 0.007]


def test_a_copy_does_the_same(slept: list[float]) -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(Waiting(double, TimeByValue("value", (5.0,)))))
    assert copy == Waiting(double, TimeByValue("value", (5.0,)))


def test_64_distinct_times_from_1_to_64_ms() -> None:
    assert sorted(times_of_values(seed=3)) == list(range(1, 65))


def test_times_are_given_at_random_by_seed() -> None:
    assert times_of_values(seed=3) == times_of_values(seed=3) != times_of_values(seed=4)
    assert times_of_values(seed=3) != tuple(range(1, 65))


def test_times_scale_to_another_mean() -> None:
    assert mean(times_of_values(seed=3, mean_ms=6.5)) == pytest.approx(6.5)
    assert times_of_values(seed=3, mean_ms=65.0)[0] == 2 * times_of_values(seed=3)[0]
    assert set(times_of_values(seed=3, mean_ms=0.0)) == {0.0}
