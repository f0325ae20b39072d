from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workload import (
    MADE_TRACES,
    erratic,
    fluctuating,
    made_trace,
    periodic,
    progressive,
    ramp,
    stable,
)

BETWEEN = (erratic, periodic, progressive)


@given(
    st.sampled_from(MADE_TRACES),
    st.floats(1e-2, 1e5),
    st.floats(1.0, 5000.0),
    st.floats(0.3, 100.0),
    st.integers(0, 2**40),
)
def test_made_traces_have_the_mean_the_length_and_the_seed_asked_for(name, mean, duration_s, step_s, seed):
    trace = made_trace(name, mean_rate=mean, duration_s=duration_s, step_s=step_s, seed=seed)
    assert trace.name == name
    assert trace.mean == pytest.approx(mean, rel=1e-12)
    assert trace.duration_s == pytest.approx(duration_s)
    assert np.isfinite(trace.rates).all()
    assert (trace.rates >= 0).all()
    assert trace == made_trace(name, mean_rate=mean, duration_s=duration_s, step_s=step_s, seed=seed)


@pytest.mark.parametrize("name", sorted(set(MADE_TRACES) - {"ramp"}))
def test_seeds_differ(name):
    one, other = (made_trace(name, mean_rate=10.0, duration_s=600.0, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.rates, other.rates)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(InputError) as caught:
        made_trace("wavy", mean_rate=1.0, duration_s=60.0, seed=0)
    assert str(caught.value) == (
        "made trace: no such name 'wavy'; known: erratic, fluctuating, periodic, progressive, ramp, spikes, stable"
    )


@pytest.mark.parametrize("name", MADE_TRACES)
@pytest.mark.parametrize("wrong", [{"mean_rate": 0.0}, {"duration_s": -1.0}, {"step_s": 0.0}])
def test_made_traces_check_what_they_are_given(name, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be a number above 0; got"):
        made_trace(name, **{"mean_rate": 1.0, "duration_s": 60.0, "seed": 0, **wrong})


def test_ramp_goes_up_and_down_in_straight_lines():
    trace = ramp(low=5, high=550, duration_s=1000)
    assert np.allclose(trace.rates, trace.rates[::-1])
    assert np.allclose(np.diff(trace.rates[:500]), 545 / 500)
    assert (trace.rates[0], trace.peak) == pytest.approx((5, 550), abs=0.6)


def test_progressive_rises_stays_and_falls():
    trace = progressive(low=10, high=100, duration_s=600, plateau=0.5)
    assert (trace.rates[150:450] == 100).all()
    assert (np.diff(trace.rates[:150]) > 0).all()
    assert (np.diff(trace.rates[450:]) < 0).all()


@pytest.mark.parametrize("plateau", [0.0, 1.0])
def test_progressive_with_no_plateau_or_nothing_else(plateau):
    trace = progressive(low=10, high=100, duration_s=600, plateau=plateau)
    assert trace.mean == pytest.approx(100 if plateau else 55)


def test_erratic_jumps_between_its_base_and_its_peaks():
    trace = erratic(low=10, high=100, duration_s=3600, peaks=5, noise=0.0, seed=4)
    base = trace.rates == 10
    assert trace.peak == pytest.approx(100)
    assert (trace.rates[~base] >= 10 + 0.4 * 90 - 1e-9).all()
    assert np.count_nonzero(np.diff(base.astype(int)) == -1) in (4, 5)  # one may begin at the very start
    assert 0.6 <= base.mean() <= 0.95


def test_periodic_repeats_itself():
    trace = periodic(low=20, high=100, duration_s=4000, periods=4, noise=0.0)
    days = trace.rates.reshape(4, 1000)
    assert np.allclose(days, days[0])
    assert (trace.rates.min(), trace.peak) == pytest.approx((20, 100), rel=0.001)
    assert np.argmax(days[0]) - np.argmin(days[0]) < 500  # the morning is quicker than the evening


def test_stable_is_flat_but_for_the_bursts_asked_for():
    assert stable(mean=50, duration_s=600, seed=1).describe().cv == pytest.approx(0.05, abs=0.01)
    bursty = stable(mean=50, duration_s=600, noise=0.0, bursts=7, burst_factor=4.0, seed=1)
    assert bursty.mean == pytest.approx(50)
    assert np.count_nonzero(bursty.rates > 2 * np.median(bursty.rates)) == 7


def test_fluctuating_is_variable_and_remembers():
    about = fluctuating(mean=50, duration_s=20_000, step_s=10.0, memory_s=50.0, seed=3).describe()
    assert 0.7 < about.cv < 1.5
    assert 0.6 < about.autocorrelation < 0.95
    assert about.peak_to_mean > 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ramp(low=9, high=3, duration_s=60), "ramp: low must not exceed high; got low 9 and high 3"),
        (lambda: ramp(low=-1, high=3, duration_s=60), "ramp: low must be a number of at least 0; got -1"),
        (
            lambda: progressive(low=1, high=3, duration_s=60, plateau=1.5),
            "progressive: plateau must be from 0 to 1; got 1.5",
        ),
        (
            lambda: erratic(low=1, high=3, duration_s=60, peaks=0),
            "erratic: peaks must be whole and at least 1; got 0",
        ),
        (
            lambda: periodic(low=1, high=3, duration_s=60, noise=-0.1),
            "periodic: noise must be a number of at least 0; got -0.1",
        ),
        (lambda: stable(mean=1, duration_s=3, bursts=4), "stable: bursts must be at most the 3 steps; got 4"),
        (
            lambda: stable(mean=1, duration_s=3, burst_factor=0.5),
            "stable: burst_factor must be a number of at least 1; got 0.5",
        ),
        (
            lambda: fluctuating(mean=1, duration_s=60, memory_s=0),
            "fluctuating: memory_s must be a number above 0; got 0",
        ),
        (lambda: fluctuating(mean=math.nan, duration_s=60), "fluctuating: mean must be a number above 0; got nan"),
    ],
)
def test_a_parameter_that_breaks_a_rule(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


@given(st.floats(0, 100), st.floats(0.1, 100), st.floats(0, 3), st.integers(0, 1000))
def test_rates_are_never_negative_however_loud_the_noise(low, more, noise, seed):
    for shape in BETWEEN:
        rates = shape(low=low, high=low + more, duration_s=50.0, noise=noise, seed=seed).rates
        assert np.isfinite(rates).all()
        assert (rates >= 0).all()


@given(st.floats(0, 8), st.floats(0.01, 1e5), st.integers(0, 1000))
def test_fluctuating_stands_any_spread_and_memory(spread, memory_s, seed):
    trace = fluctuating(mean=10.0, duration_s=100.0, spread=spread, memory_s=memory_s, seed=seed)
    assert trace.mean == pytest.approx(10.0)
