from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.simulator.plant.arrivals import Even, Poisson
from penstock.workload import Trace, constant

rates = st.lists(st.sampled_from((0.0, 0.3, 2.0, 7.5, 100.0)), min_size=1, max_size=8)
stops = st.lists(st.floats(0, 20), max_size=20)


def all_of(arrivals, stops_s=()) -> np.ndarray:
    """Everything, pulled at these times and at the end."""
    return np.concatenate([arrivals.pull(until_s) for until_s in (*sorted(stops_s), 1e9)])


@given(rates, stops)
def test_even_arrivals_are_those_of_the_trace_however_they_are_pulled(rates, stops):
    trace = Trace("t", 1.5, rates)
    expected = trace.time_of(np.arange(round(trace.events)))
    np.testing.assert_array_equal(all_of(Even(trace), stops), expected)


@given(rates, stops, st.integers(0, 99))
def test_poisson_arrivals_are_the_same_however_they_are_pulled(rates, stops, seed):
    trace = Trace("t", 1.5, rates)
    times = all_of(Poisson(trace, seed), stops)
    np.testing.assert_array_equal(times, all_of(Poisson(trace, seed)))
    assert np.all(np.diff(times) >= 0)
    assert np.all(times < trace.duration_s)


@given(rates, st.floats(0, 15), st.sampled_from((Even, Poisson)))
def test_nothing_is_handed_out_early_or_late(rates, until_s, kind):
    arrivals = kind(Trace("t", 1.5, rates))
    before, after = arrivals.pull(until_s), arrivals.pull(1e9)
    assert np.all(before <= until_s)
    assert np.all(after > until_s)
    assert len(arrivals.pull(2e9)) == 0


def test_the_time_itself_is_included():
    arrivals = Even(constant(2.0, 10.0))
    assert arrivals.pull(0.0).tolist() == [0.0]
    assert arrivals.pull(1.0).tolist() == [0.5, 1.0]


def test_poisson_has_the_rates_of_the_trace():
    trace = Trace("t", 100.0, [50.0, 0.0, 200.0])
    counts, _ = np.histogram(all_of(Poisson(trace, 3)), [0.0, 100.0, 200.0, 300.0])
    assert counts.tolist() == pytest.approx([5000, 0, 20000], abs=3 * np.sqrt(20000))
    gaps = np.diff(all_of(Poisson(constant(50.0, 1000.0), 3)))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)  # as exponential gaps have it


def test_seeds_differ():
    trace = constant(5.0, 100.0)
    assert not np.array_equal(all_of(Poisson(trace, 1))[:9], all_of(Poisson(trace, 2))[:9])


@pytest.mark.parametrize("kind", [Even, Poisson])
def test_the_horizon_is_about_so_many_events_away(kind):
    arrivals = kind(constant(100.0, 100.0))
    assert arrivals.end_s == 100.0
    horizon_s = arrivals.horizon(2500)
    assert len(arrivals.pull(horizon_s)) == pytest.approx(2500, abs=200)
    assert arrivals.horizon(2500) == pytest.approx(2 * horizon_s, rel=0.1)
    assert arrivals.horizon(10**6) == np.inf


@pytest.mark.parametrize("kind", [Even, Poisson])
def test_a_silent_trace_brings_nothing(kind):
    arrivals = kind(constant(0.0, 10.0))
    assert arrivals.horizon(100) == np.inf
    assert len(all_of(arrivals)) == 0
