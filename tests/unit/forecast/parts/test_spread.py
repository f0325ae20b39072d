import numpy as np
import pytest

from penstock.forecast.parts.spread import Spread


def followed(rates, made, steps=2):
    spread = Spread(steps)
    for rate in rates:
        spread.learn(rate)
        spread.keep(np.full(steps, made))
    return spread


def test_before_any_error_it_is_sure():
    assert followed([100.0], 100.0).around(np.array([80.0, 90.0]), [0.1, 0.9]).tolist() == [[80.0, 90.0]] * 2


def test_quantiles_are_those_of_the_errors_by_ratio():
    rates = 100 * np.exp(np.random.default_rng(1).normal(0, 0.3, 3000))
    low, high = followed(rates, 100.0).around(np.full(2, 200.0), [0.1, 0.9])
    assert low == pytest.approx(200 * np.exp(-1.2816 * 0.3), rel=0.08)
    assert high == pytest.approx(200 * np.exp(1.2816 * 0.3), rel=0.08)


def test_few_errors_give_their_largest():
    spread = followed([100.0, 100.0, 150.0, 100.0], 100.0)
    assert spread.around(np.array([100.0]), [0.95]).ravel() == pytest.approx([150.0], rel=0.01)


def test_only_the_last_errors_count():
    spread = followed([10.0] * 300 + [100.0] * 600, 100.0)
    assert spread.around(np.array([100.0]), [0.01]).ravel() == pytest.approx([100.0])


def test_steps_beyond_the_last_are_as_unsure_as_it_is():
    spread = followed(np.random.default_rng(2).uniform(50, 150, 100), 100.0)
    found = spread.around(np.full(5, 100.0), [0.9])[0]
    assert found[2:].tolist() == [found[1]] * 3


def test_silence_is_certain():
    assert followed([0.0] * 10, 0.0).around(np.zeros(2), [0.1, 0.9]).tolist() == [[0.0, 0.0]] * 2
