from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workload import HotSet, Spike, draw_spikes, spiky, zipf_shares

SPIKE = Spike(start_s=10, onset_s=10, plateau_s=20, decay_s=20, magnitude=3)


def test_the_volume_of_a_spike_is_piecewise_linear():
    assert SPIKE.end_s == 60
    assert SPIKE.factor([0, 10, 15, 20, 40, 50, 60, 99]).tolist() == [1, 1, 2, 3, 3, 2, 1, 1]


def test_a_spike_may_be_sudden():
    sudden = Spike(start_s=10, onset_s=0, plateau_s=5, decay_s=0, magnitude=3)
    assert sudden.factor([9.999, 10, 14.999, 15, 16]).tolist() == [1, 3, 3, 1, 1]


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.7, 1.0])
def test_hot_keys_are_as_many_as_asked_for(spread):
    hot = HotSet(SPIKE, n_keys=50, n_hot=20, spread=spread, seed=5).hot_keys
    assert len(set(hot.tolist())) == 20
    assert hot.min() >= 1
    assert hot.max() <= 50
    assert (np.diff(hot) > 0).all()


def test_spread_parts_the_hot_keys():
    def runs(spread: float) -> int:
        hot = HotSet(SPIKE, n_keys=1_000_000, n_hot=50, spread=spread, seed=1).hot_keys
        return 1 + np.count_nonzero(np.diff(hot) > 1)

    assert runs(0.0) == 1
    assert 1 < runs(0.5) < 50
    assert runs(1.0) == 50


def test_all_keys_may_be_hot():
    assert HotSet(SPIKE, n_keys=5, n_hot=5, spread=1.0).hot_keys.tolist() == [1, 2, 3, 4, 5]


def test_shares_have_the_variance_of_their_concentration():
    n, alpha = 10, 0.5
    shares = np.array([HotSet(SPIKE, 100, n, concentration=alpha, seed=seed).shares for seed in range(400)])
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert shares.var() == pytest.approx((n - 1) / (n**2 * (n * alpha + 1)), rel=0.15)


def test_the_hot_set_matters_as_much_as_the_extra_volume():
    hot = HotSet(SPIKE, n_keys=100, n_hot=4, seed=1)
    calm = zipf_shares(100, 1.0)
    assert np.allclose(hot.distribution(0.0), calm)
    at_peak = hot.distribution(30.0)
    extra = at_peak - calm / 3
    assert np.allclose(extra[hot.hot_keys - 1], hot.shares * 2 / 3)
    assert np.allclose(np.delete(extra, hot.hot_keys - 1), 0.0)


@given(st.integers(1, 30), st.floats(1e-3, 100), st.floats(0, 1), st.floats(0, 3), st.integers(0, 10**6))
def test_distributions_add_up_to_1(n_hot, concentration, spread, exponent, seed):
    hot = HotSet(SPIKE, 40, n_hot, concentration, spread, exponent, seed)
    for t in (0.0, 13.0, 30.0, 100.0):
        likely = hot.distribution(t)
        assert likely.shape == (40,)
        assert (likely >= 0).all()
        assert likely.sum() == pytest.approx(1.0)
    again = HotSet(SPIKE, 40, n_hot, concentration, spread, exponent, seed)
    assert np.array_equal(hot.distribution(30.0), again.distribution(30.0))


@pytest.mark.parametrize("t", [0.0, 15.0, 30.0])
def test_keys_are_as_frequent_as_the_distribution_says(t):
    hot = HotSet(SPIKE, n_keys=30, n_hot=5, seed=2)
    size = 100_000
    keys = hot.keys(np.full(size, t))
    assert np.array_equal(keys, hot.keys(np.full(size, t)))
    seen = np.bincount(keys, minlength=31)[1:] / size
    np.testing.assert_allclose(seen, hot.distribution(t), atol=4 * 0.5 / np.sqrt(size))


@given(st.integers(1, 12), st.floats(1.0, 1e5), st.floats(1.0, 50.0), st.integers(0, 10**6))
def test_drawn_spikes_follow_each_other(count, duration_s, magnitude, seed):
    spikes = draw_spikes(count, duration_s=duration_s, magnitude=magnitude, seed=seed)
    assert len(spikes) == count
    assert spikes == draw_spikes(count, duration_s=duration_s, magnitude=magnitude, seed=seed)
    assert max(spike.magnitude for spike in spikes) == pytest.approx(magnitude)
    starts = [spike.start_s for spike in spikes[1:]] + [duration_s]
    assert all(spike.end_s <= start * (1 + 1e-9) for spike, start in zip(spikes, starts, strict=True))


def test_spiky_multiplies_its_base():
    trace = spiky([SPIKE], low=100.0, duration_s=80.0, noise=0.0)
    assert trace.rates[:10].tolist() == [100.0] * 10
    assert trace.rates[20:40].tolist() == [300.0] * 20
    assert trace.rates[60:].tolist() == [100.0] * 20
    assert trace.events == pytest.approx(100 * (80 + 2 * (10 / 2 + 20 + 20 / 2)))


def test_spikes_that_overlap_add_up():
    trace = spiky([SPIKE, SPIKE], low=100.0, duration_s=80.0, noise=0.0)
    assert trace.peak == 500.0


def test_spiky_without_spikes_is_its_base():
    trace = spiky([], low=100.0, duration_s=80.0, noise=0.1, seed=1)
    assert trace.mean == pytest.approx(100.0, rel=0.05)
    assert trace == spiky([], low=100.0, duration_s=80.0, noise=0.1, seed=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Spike(0, -1, 1, 1, 2), "spike: onset_s must be a number of at least 0; got -1"),
        (lambda: Spike(0, 1, 1, 1, 0.5), "spike: magnitude must be a number of at least 1; got 0.5"),
        (lambda: Spike("0", 1, 1, 1, 2), "spike: start_s must be a finite number; got '0'"),
        (lambda: HotSet(SPIKE, 5, 6), "hot set: n_hot must be at most n_keys = 5; got 6"),
        (lambda: HotSet(SPIKE, 5, 0), "hot set: n_hot must be whole and at least 1; got 0"),
        (lambda: HotSet(SPIKE, 5, 1, concentration=0), "hot set: concentration must be a number above 0; got 0"),
        (lambda: HotSet(SPIKE, 5, 1, spread=1.1), "hot set: spread must be from 0 to 1; got 1.1"),
        (lambda: draw_spikes(0, duration_s=1), "spikes: count must be whole and at least 1; got 0"),
        (lambda: spiky([], low=0, duration_s=1), "spiky: low must be a number above 0; got 0"),
    ],
)
def test_a_parameter_that_breaks_a_rule(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
