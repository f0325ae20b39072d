from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workload import uniform_keys, value_times, zipf_keys, zipf_shares
from penstock.workload.keys import drawn

seeds = st.integers(0, 2**32)


@given(st.integers(1, 1000), st.integers(0, 200), seeds)
def test_uniform_keys_are_in_range_and_repeat_by_seed(n_values, size, seed):
    keys = uniform_keys(n_values, size, seed=seed)
    assert keys.shape == (size,)
    assert ((keys >= 1) & (keys <= n_values)).all()
    assert np.array_equal(keys, uniform_keys(n_values, size, seed=seed))


@given(st.integers(1, 1000), st.integers(0, 200), st.floats(0, 5), seeds)
def test_zipf_keys_are_in_range_and_repeat_by_seed(n_values, size, exponent, seed):
    keys = zipf_keys(n_values, size, exponent=exponent, seed=seed)
    assert keys.shape == (size,)
    assert ((keys >= 1) & (keys <= n_values)).all()
    assert np.array_equal(keys, zipf_keys(n_values, size, exponent=exponent, seed=seed))


def test_zipf_keys_are_as_frequent_as_their_law_says():
    size = 200_000
    seen = np.bincount(zipf_keys(64, size, exponent=1.5, seed=1), minlength=65)[1:] / size
    np.testing.assert_allclose(seen, zipf_shares(64, 1.5), atol=4 * 0.5 / np.sqrt(size))


def test_uniform_keys_are_equally_frequent():
    size = 200_000
    seen = np.bincount(uniform_keys(64, size, seed=1), minlength=65)[1:] / size
    np.testing.assert_allclose(seen, 1 / 64, rtol=0.1)


def test_seeds_differ():
    assert not np.array_equal(zipf_keys(64, 50, seed=1), zipf_keys(64, 50, seed=2))
    assert not np.array_equal(uniform_keys(64, 50, seed=1), uniform_keys(64, 50, seed=2))
    assert value_times(seed=1) != value_times(seed=2)


def test_zipf_with_exponent_0_is_uniform():
    assert zipf_shares(4, 0.0).tolist() == [0.25] * 4


def test_drawn_never_passes_the_end():
    shares = np.array([0.1] * 10)
    assert drawn(shares, np.array([0.0, 0.05, 0.15, 1.0])).tolist() == [0, 0, 1, 9]


def test_value_times_gives_each_of_64_times_once():
    times = value_times(seed=7)
    assert list(times) == list(range(1, 65))
    assert sorted(times.values()) == [float(ms) for ms in range(1, 65)]
    assert list(times.values()) != sorted(times.values())
    assert times == value_times(seed=7)


@pytest.mark.parametrize(("values", "least", "most"), [(4096, 64, 64), (100, 1, 2), (10, 0, 1)])
def test_value_times_spreads_the_times_evenly_over_the_values(values, least, most):
    counts = Counter(value_times(values, seed=3).values())
    assert len(value_times(values, seed=3)) == values
    assert set(counts) <= set(map(float, range(1, 65)))
    assert all(least <= counts[float(ms)] <= most for ms in range(1, 65))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: uniform_keys(0, 5), "uniform_keys: n_values must be whole and at least 1; got 0"),
        (lambda: uniform_keys(5, -1), "uniform_keys: size must be whole and at least 0; got -1"),
        (lambda: uniform_keys(5, 5, seed=-1), "uniform_keys: seed must be whole and at least 0; got -1"),
        (lambda: zipf_keys(2.5, 5), "zipf: n_values must be whole and at least 1; got 2.5"),
        (lambda: zipf_keys(5, 5, exponent=-1), "zipf: exponent must be a number of at least 0; got -1"),
        (lambda: value_times(low_ms=0), "value_times: low_ms must be a number above 0; got 0"),
        (lambda: value_times(low_ms=9, high_ms=3), "value_times: low_ms must not exceed high_ms; got 9 and 3"),
    ],
)
def test_a_parameter_that_breaks_a_rule(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
