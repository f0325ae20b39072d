import math

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.ridge import Ridge

DAY = 24


def taught(forecaster, rates):
    for rate in rates:
        forecaster.learn(float(rate))
    return forecaster


def daily(rows, noise=0.0, seed=2):
    """Days with a peak of one row."""
    shape = 100 + 300 * (np.arange(rows) % DAY == 15) + 30 * np.sin(2 * np.pi * np.arange(rows) / DAY)
    return shape * np.exp(noise * np.random.default_rng(seed).normal(size=rows))


def test_it_sees_a_daily_peak_coming_from_afar():
    rates = daily(20 * DAY, noise=0.03)
    stands = 19 * DAY + 3  # twelve rows before the peak
    found = taught(Ridge(DAY), rates[:stands]).forecast(13)
    assert found[:12] == pytest.approx(rates[stands : stands + 12], rel=0.15)
    assert found[12] > 280


def test_wild_rates_do_not_bend_it():
    rates = daily(20 * DAY, noise=0.03)
    wild = rates.copy()
    wild[37 : 15 * DAY : 29] *= 20
    true = rates[19 * DAY :]
    found = taught(Ridge(DAY), wild[: 19 * DAY]).forecast(12)
    assert np.mean(np.abs(found / true[:12] - 1)) < 0.15


def test_a_day_that_is_missing():
    rates = daily(16 * DAY, noise=0.03)
    holed = rates.copy()
    holed[10 * DAY : 11 * DAY] = math.nan
    found = taught(Ridge(DAY), holed[: 15 * DAY]).forecast(18)
    assert np.mean(np.abs(found / rates[15 * DAY : 15 * DAY + 18] - 1)) < 0.1


def test_its_options():
    with pytest.raises(InputError, match="forecaster 'ridge': day must be whole and at least 1; got 0"):
        Ridge(day=0)
    assert Ridge(12, lags=3).lags == 3
