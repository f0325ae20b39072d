"""Whoever follows is told the same as without sharing, whatever the others learn and ask."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.base import HasQuantiles, NotReady
from penstock.forecast.registry import forecaster_for
from penstock.forecast.shared import SharedForecasts

SPECS = ("last_value", "drift:3", "moving_average:2")
RATES = st.lists(st.sampled_from([0.0, 10.0, 20.0, math.nan]), max_size=8)


def made(spec):
    return forecaster_for(spec, interval_s=1.0, day_s=86_400.0)


def told(forecaster, rates, horizon):
    """All that it says on the way."""
    found = []
    for rate in rates:
        forecaster.learn(rate)
        try:
            found.append((forecaster.ready, forecaster.forecast(horizon).tolist()))
        except NotReady as why:
            found.append((forecaster.ready, str(why)))
    return found


@given(
    spec=st.sampled_from(SPECS),
    several=st.lists(st.tuples(RATES, st.integers(1, 3)), min_size=1, max_size=5),
    expected=st.sets(st.tuples(st.integers(1, 3), st.none())),
)
def test_everybody_is_told_what_their_own_would_say(spec, several, expected):
    shared = SharedForecasts(expected)
    for rates, horizon in several:
        assert told(shared.follow(spec, lambda: made(spec)), rates, horizon) == told(made(spec), rates, horizon)


def counting(spec, made_so_far):
    def make():
        made_so_far.append(made(spec))
        return made_so_far[-1]

    return make


def test_who_learns_the_same_and_asks_what_is_expected_needs_no_forecaster():
    ones = []
    shared = SharedForecasts([(1, None), (3, None)])
    for horizon in (3, 1, 3):
        told(shared.follow("in", counting("drift:3", ones)), [10.0, math.nan, 30.0], horizon)
    assert len(ones) == 1
    told(shared.follow("in", counting("drift:3", ones)), [10.0, math.nan, 30.0], 2)  # nobody expected that
    assert len(ones) == 2
    told(shared.follow("other", counting("drift:3", ones)), [10.0], 1)
    assert len(ones) == 3


def test_two_may_go_side_by_side():
    ones = []
    shared = SharedForecasts()
    first, second = (shared.follow("in", counting("last_value", ones)) for _ in range(2))
    for rate in (10.0, 20.0):
        first.learn(rate)
        second.learn(rate)
        assert first.forecast(1).tolist() == second.forecast(1).tolist() == [rate]
    assert len(ones) == 1


@pytest.mark.parametrize("spec", ["auto", "last_value"])
def test_quantiles_where_the_forecaster_has_them(spec):
    ones, rates = [], np.random.default_rng(3).uniform(50, 60, 60)
    shared = SharedForecasts([(2, 0.9)])
    plain, found = made(spec), []
    told(plain, rates, 2)
    for _ in range(2):
        one = shared.follow("in", counting(spec, ones))
        told(one, rates, 2)
        assert isinstance(one, HasQuantiles) == isinstance(plain, HasQuantiles)
        found += [one.quantiles(2, [0.9]).tolist()] if isinstance(one, HasQuantiles) else []
    assert len(ones) == 1
    assert all(one == plain.quantiles(2, [0.9]).tolist() for one in found)
