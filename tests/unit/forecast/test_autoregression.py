import math

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.autoregression import Autoregression
from penstock.forecast.base import NotReady


def taught(rates, **options):
    forecaster = Autoregression(**options)
    for rate in rates:
        forecaster.learn(float(rate))
    return forecaster


def process(rows, seed=1):
    """x(t) = 0.8·x(t−1) + ε around ln 100, as rates."""
    draw, x = np.random.default_rng(seed), np.zeros(rows)
    for row in range(1, rows):
        x[row] = 0.8 * x[row - 1] + draw.normal(0, 0.1)
    return 100 * np.exp(x)


def test_it_finds_how_fast_a_process_goes_back_to_its_mean():
    rates = process(3000)
    rates[-1] = 200.0
    found = taught(rates, lags=3).forecast(5)
    expected = 100 * np.exp(np.log(2) * 0.8 ** np.arange(1, 6))
    assert found == pytest.approx(expected, rel=0.06)


def test_it_follows_a_wave_without_knowing_its_length():
    wave = 100 + 40 * np.sin(np.arange(400) / 5)
    assert taught(wave[:-10]).forecast(10) == pytest.approx(wave[-10:], rel=0.05)


def test_beyond_its_steps_it_goes_on_from_its_own_forecast():
    forecaster = taught(100 + 40 * np.sin(np.arange(400) / 5))
    assert forecaster.forecast(40)[:18].tolist() == forecaster.forecast(18).tolist()
    assert forecaster.forecast(40) == pytest.approx(100 + 40 * np.sin(np.arange(400, 440) / 5), rel=0.1)


def test_guesses_are_not_learnt_from():
    rates = process(600)
    rates[200:260] = math.nan
    assert taught(rates).forecast(3) == pytest.approx(taught(process(600)).forecast(3), rel=0.1)


def test_it_needs_forty_rates_and_a_lag():
    with pytest.raises(NotReady, match="forecaster 'ar': needs 40 rates; has 39"):
        taught(process(39)).forecast(1)
    with pytest.raises(InputError, match="forecaster 'ar': lags must be whole and at least 1; got 0"):
        Autoregression(lags=0)
