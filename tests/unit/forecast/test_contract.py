"""What every registered forecaster has to keep to."""

from __future__ import annotations

import math
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.base import Forecaster, NotReady, TrainedOffLine
from penstock.forecast.registry import FORECASTERS, make_forecaster

ON_LINE = [  # those that are trained have tests of their own, and `trained` needs a folder
    name
    for name in FORECASTERS.names
    if name not in ("lstm", "gru", "bilstm", "bigru", "trained")
    and not isinstance(make_forecaster(name), TrainedOffLine)
]
KNOW_DAYS = [name for name in ON_LINE if "day" in FORECASTERS.options(name)]
RATES = [100 + 50 * math.sin(n / 7) for n in range(200)]


def made(name):
    """With short days, so that 200 rates are many."""
    return make_forecaster(name, **({"day": 12} if "day" in FORECASTERS.options(name) else {}))


def taught(name, rates):
    forecaster = made(name)
    for rate in rates:
        forecaster.learn(rate)
    return forecaster


@cache
def _pickled(name):
    return pickle.dumps(taught(name, RATES))


def ready(name):
    """One that has learnt the rates; it did so once."""
    return pickle.loads(_pickled(name))


@pytest.mark.parametrize("name", ON_LINE)
class TestEveryForecaster:
    def test_says_that_it_is_not_ready(self, name):
        forecaster = made(name)
        assert isinstance(forecaster, Forecaster)
        assert not forecaster.ready
        with pytest.raises(NotReady, match=f"forecaster '{name}': needs"):
            forecaster.forecast(1)

    @pytest.mark.parametrize("horizon", [1, 2, 30])
    def test_gives_as_many_rates_as_asked_for(self, name, horizon):
        forecaster = ready(name)
        assert forecaster.ready
        rates = forecaster.forecast(horizon)
        assert rates.shape == (horizon,)
        assert rates.dtype == np.float64
        assert np.isfinite(rates).all()

    @given(rates=st.lists(st.floats(0, 1e6), min_size=2, max_size=30), horizon=st.integers(1, 10))
    @settings(max_examples=30, deadline=None)
    def test_never_goes_below_zero(self, name, rates, horizon):
        forecaster = taught(name, rates)
        if forecaster.ready:
            assert (forecaster.forecast(horizon) >= 0).all()

    def test_same_input_same_forecast_and_asking_changes_nothing(self, name):
        one, two = taught(name, RATES), ready(name)
        two.forecast(5)
        assert one.forecast(5).tolist() == two.forecast(5).tolist()

    def test_goes_on_the_same_after_pickling(self, name):
        forecaster = ready(name)
        copy = pickle.loads(pickle.dumps(forecaster))
        for one in (forecaster, copy):
            one.learn(77.0)
        assert copy.forecast(3).tolist() == forecaster.forecast(3).tolist()

    def test_memory_does_not_grow_with_time(self, name):
        forecaster = ready(name)
        for rate in RATES:
            forecaster.learn(rate)
        before = len(pickle.dumps(forecaster))
        for rate in RATES:
            forecaster.learn(rate)
        assert len(pickle.dumps(forecaster)) <= before + 64  # counters take more digits

    def test_a_constant_rate_stays(self, name):
        assert taught(name, [80.0] * 100).forecast(4).tolist() == pytest.approx([80.0] * 4)

    @given(
        rates=st.lists(st.one_of(st.just(math.nan), st.floats(0, 1e6)), min_size=2, max_size=40),
        horizon=st.integers(1, 10),
    )
    @settings(max_examples=30, deadline=None)
    def test_missing_rates_do_no_harm(self, name, rates, horizon):
        forecaster = taught(name, rates)
        if forecaster.ready:
            assert np.isfinite(forecaster.forecast(horizon)).all()

    def test_nothing_but_missing_rates_is_nothing(self, name):
        assert not taught(name, [math.nan] * 50).ready

    def test_a_long_gap_is_survived(self, name):
        forecaster = ready(name)
        for _ in range(60):
            forecaster.learn(math.nan)
        assert np.isfinite(forecaster.forecast(5)).all()
        for rate in RATES[:40]:
            forecaster.learn(rate)
        rates = forecaster.forecast(5)
        assert np.isfinite(rates).all()
        assert 0 <= rates.min() <= rates.max() <= 4 * max(RATES)

    @pytest.mark.parametrize("rate", [math.inf, -1.0, -math.inf])
    def test_refuses_what_is_no_rate(self, name, rate):
        with pytest.raises(InputError, match="a rate must be a number of at least 0, or NaN where it is missing; got"):
            made(name).learn(rate)

    @pytest.mark.parametrize("horizon", [0, -3])
    def test_refuses_an_empty_horizon(self, name, horizon):
        with pytest.raises(InputError, match="the horizon must be at least 1 interval; got"):
            ready(name).forecast(horizon)


@pytest.mark.parametrize("day", range(1, 31))
@pytest.mark.parametrize("name", KNOW_DAYS)
def test_a_day_may_have_any_length(name, day):
    """`auto` and `ridge` looked beyond the end of what they had built for days of 2, 8, 10, 11, 13, … 20 rows."""
    forecaster = make_forecaster(name, day=day)
    for rate in RATES[:76]:  # more than the two days, and the 18 rows, after which the past days are looked at
        forecaster.learn(rate)
    found = forecaster.forecast(20)
    assert np.isfinite(found).all()
    assert 0 <= found.min() <= found.max() <= 4 * max(RATES)
