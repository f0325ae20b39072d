"""What batches cost: the regression finds what made them, and bears whatever comes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.attached.model.cost import UNKNOWN_SPREAD, CostModel, Line
from penstock.attached.model.progress import Batch


def batch(
    number: int, rows: int, *, seconds: float, core_s: float | None, slots: float | None = 4, tasks: int = 8
) -> Batch:
    start_s = 10.0 * number
    return Batch(
        number=number,
        start_s=start_s,
        planned_s=start_s,
        seconds=seconds,
        rows=rows,
        core_s=core_s,
        slots=slots,
        tasks=tasks,
    )


def learnt(*batches: Batch) -> CostModel:
    model = CostModel()
    for one in batches:
        model.learn(one)
    return model


def test_fixed_costs_are_told_from_those_of_rows() -> None:
    """2 ms a row and 0.4 s a batch on slots, 0.7 s beside them: batches of 100 to 1500 rows, on 2 to 8 slots."""
    sizes = [(100, 2), (900, 4), (300, 8), (1500, 4), (600, 2), (1200, 8), (200, 4), (1000, 2)] * 4
    batches = []
    for number, (rows, slots) in enumerate(sizes):
        core_s = 0.4 + 0.002 * rows
        batches.append(batch(number, rows, seconds=0.7 + core_s / slots, core_s=core_s, slots=slots))
    cost = learnt(*batches).cost
    assert cost is not None
    assert cost.by_row_s == pytest.approx(0.002, rel=0.02)
    assert cost.by_batch_s == pytest.approx(0.4, abs=0.05)
    assert cost.fixed_s == pytest.approx(0.7, abs=0.02)
    assert cost.spread == pytest.approx(1.0, abs=0.02)
    assert cost.seconds(2000, 4) == pytest.approx(0.7 + 4.4 / 4, rel=0.02)


def test_batches_that_are_all_alike_say_nothing_of_the_slope_and_all_is_taken_for_rows() -> None:
    cost = learnt(*(batch(n, 500, seconds=1.5, core_s=4.0) for n in range(5))).cost
    assert cost is not None
    assert (cost.by_row_s, cost.by_batch_s) == (pytest.approx(0.008), pytest.approx(0.0, abs=1e-9))
    assert (cost.fixed_s, cost.spread) == (pytest.approx(0.5), pytest.approx(1.0))  # 4 / 4 slots, and the rest


def test_a_batch_cannot_use_more_slots_than_it_has_tasks() -> None:
    cost = learnt(batch(0, 500, seconds=2.5, core_s=4.0, slots=16, tasks=2)).cost
    assert cost is not None
    assert cost.fixed_s == pytest.approx(0.5)


def test_without_the_tasks_all_that_the_slots_had_is_work_until_tasks_are_known() -> None:
    model = learnt(batch(0, 100, seconds=2.0, core_s=None))
    assert model.cost is not None
    assert model.cost.by_row_s == pytest.approx(0.08)
    model.learn(batch(1, 100, seconds=2.0, core_s=4.0))
    assert model.cost.by_row_s == pytest.approx(0.04)
    model.learn(batch(2, 100, seconds=2.0, core_s=None))  # of another kind than the rest
    assert model.cost.by_row_s == pytest.approx(0.04)


def test_of_a_batch_whose_slots_changed_only_the_work_counts() -> None:
    model = learnt(batch(0, 500, seconds=1.5, core_s=4.0), batch(1, 100, seconds=99.0, core_s=0.8, slots=None))
    assert model.cost is not None
    assert model.cost.by_row_s == pytest.approx(0.008)
    assert model.cost.fixed_s == pytest.approx(0.5)


def test_the_first_batches_count_only_until_there_are_others() -> None:
    """Of a real query: 86 ms a row in its first batch, 6 ms from the second on."""
    model = learnt(batch(0, 650, seconds=27.0, core_s=56.2))
    assert model.cost is not None
    assert model.cost.by_row_s == pytest.approx(0.0865, rel=0.01)
    model.learn(batch(1, 1350, seconds=4.6, core_s=8.0))
    for number in range(2, 6):
        model.learn(batch(number, 500, seconds=1.5, core_s=3.0))
    assert model.cost.by_row_s == pytest.approx(0.006)


def test_costs_that_change_are_followed() -> None:
    model = learnt(*(batch(n, 500, seconds=1.5, core_s=4.0) for n in range(100)))
    for number in range(100, 250):  # 25 minutes: five half-lives
        model.learn(batch(number, 500, seconds=3.0, core_s=10.0))
    assert model.cost is not None
    assert model.cost.work_s(500) == pytest.approx(10.0, rel=0.05)


def test_the_surprise_is_the_quantile_that_was_asked_for() -> None:
    model = CostModel(late=0.1)
    assert model.cost is None
    for number in range(8):
        model.learn(batch(number, 500, seconds=1.5, core_s=4.0))
    assert model.cost is not None
    assert model.cost.surprise == UNKNOWN_SPREAD
    for number in range(8, 200):
        model.learn(batch(number, 500, seconds=3.0 if number % 5 == 0 else 1.5, core_s=4.0))
    assert 1.4 < model.cost.surprise < 2.2  # every fifth takes twice as long


@pytest.mark.parametrize("seconds", [0.0, math.nan, math.inf, -1.0])
def test_a_batch_of_no_length_or_no_rows_changes_nothing(seconds: float) -> None:
    assert learnt(batch(0, 500, seconds=seconds, core_s=4.0)).cost is None
    assert learnt(batch(0, 0, seconds=1.0, core_s=4.0)).cost is None


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=30), st.none() | st.floats(0, 1e3))
def test_a_line_never_goes_below_nothing(points: list[tuple[float, float]], prior: float | None) -> None:
    line = Line()
    for x, y in points:
        line.learn(x, y)
    intercept, slope = line.fit(prior)
    assert intercept >= 0
    assert slope >= 0
    assert math.isfinite(intercept + slope)


@given(st.floats(0.0, 100.0), st.floats(0.001, 10.0))
def test_a_line_with_spread_is_found(intercept: float, slope: float) -> None:
    line = Line()
    for x in range(1, 200):
        line.learn(x, intercept + slope * x)
    found = line.fit()
    assert found[1] * 300 + found[0] == pytest.approx(intercept + slope * 300, rel=0.05)
