"""A forecast is moved towards the level where its own errors ask for that, and else left alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.forecast.parts.reversion import Reversion

STEPS = 3


def followed(rates, made, levels, steps=1):
    """What became of one-step forecasts, each moved right before its rate came."""
    reversion, found = Reversion(steps), []
    for rate, one, level in zip(rates, made, levels, strict=True):
        forecast = np.full(steps, one)
        found.append(float(reversion.moved(forecast, level)[0]))
        reversion.keep(forecast, level)
        reversion.learn(rate)
    return np.array(found)


def test_a_constant_error_is_made_up_for_as_rows_go_by():
    """After n rows of 10 too low, the constant is 10·n / (n + 1000)."""
    reversion = Reversion(1)
    found = {}
    for row in range(1, 3001):
        reversion.keep(np.array([90.0]), 90.0)
        reversion.learn(100.0)
        if row in (1000, 3000):
            found[row] = reversion.moved(np.array([90.0]), 90.0)[0]
    assert found == {1000: pytest.approx(95.0), 3000: pytest.approx(97.5)}


def test_the_line_is_that_of_least_squares_with_the_prior():
    draw = np.random.default_rng(3)
    made, level = draw.uniform(50, 150, 40), draw.uniform(90, 110, 40)
    rates = 20 + 0.3 * made + 0.7 * level
    reversion = Reversion(1)
    for rate, one, at in zip(rates, made, level, strict=True):
        reversion.keep(np.array([one]), at)
        reversion.learn(rate)
    columns = np.column_stack([np.ones(40), level - made])
    squares = columns.T @ columns
    raised = squares + 1000 / 40 * np.diag(np.diag(squares))
    constant, slope = np.linalg.solve(raised, columns.T @ (rates - made))
    assert reversion.moved(np.array([60.0]), 100.0)[0] == pytest.approx(60 + constant + slope * 40)


def test_a_forecast_that_swings_too_far_is_taken_back():
    draw = np.random.default_rng(0)
    levels, swing = np.full(4000, 100.0), draw.normal(0, 30, 4000)
    rates = np.clip(100 + 0.2 * swing + draw.normal(0, 5, 4000), 0, None)
    made = np.clip(100 + swing, 0, None)
    found = followed(rates, made, levels)
    late = slice(3000, None)
    assert np.sqrt(np.mean((found - rates)[late] ** 2)) < 0.4 * np.sqrt(np.mean((made - rates)[late] ** 2))


def test_a_right_forecast_is_left_alone():
    draw = np.random.default_rng(1)
    made = draw.uniform(50, 150, 2000)
    rates = made + draw.normal(0, 5, 2000)
    found = followed(rates, made, np.full(2000, 100.0))
    assert np.sqrt(np.mean((found - rates) ** 2)) < 1.002 * np.sqrt(np.mean((made - rates) ** 2))


def test_it_stops_where_it_has_done_harm():
    """The error turns its sign: what was learnt is wrong from then on, and soon nothing is moved any more."""
    rates = np.concatenate([np.full(300, 110.0), np.full(300, 80.0)])
    found = followed(rates, np.full(600, 100.0), np.full(600, 100.0))
    assert found[299] > 102
    assert found[-1] <= 100.0


def test_each_step_has_errors_of_its_own():
    reversion = Reversion(2)
    for _ in range(800):
        reversion.keep(np.array([100.0, 60.0]), 100.0)
        reversion.learn(100.0)
    near, far = reversion.moved(np.array([100.0, 60.0]), 100.0)
    assert near == 100.0
    assert far > 80


def test_without_a_level_nothing_is_moved_and_nothing_learnt():
    reversion = Reversion(STEPS)
    for _ in range(50):
        reversion.keep(np.full(STEPS, 5.0), math.nan)
        reversion.learn(9.0)
    assert reversion.moved(np.full(STEPS, 5.0), math.nan).tolist() == [5.0] * STEPS
    assert reversion.moved(np.full(STEPS, 5.0), 7.0).tolist() == [5.0] * STEPS


@settings(max_examples=60)
@given(
    rates=st.lists(st.floats(0, 1e9), min_size=1, max_size=30),
    made=st.floats(0, 1e9),
    level=st.one_of(st.just(math.nan), st.floats(0, 1e9)),
)
def test_it_is_finite_and_never_below_0(rates, made, level):
    reversion = Reversion(STEPS)
    for rate in rates:
        reversion.keep(np.full(STEPS, made), level)
        reversion.learn(rate)
        found = reversion.moved(np.full(STEPS, made), level)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
