import math

import numpy as np
import pytest

from penstock.forecast.base import NotReady
from penstock.forecast.holt_winters import HoltWinters

DAY = 12
NOISE = np.random.default_rng(3)


def taught(rates, day=DAY):
    forecaster = HoltWinters(day)
    for rate in rates:
        forecaster.learn(float(rate))
    return forecaster


def daily(rows):
    return 100 * np.exp(0.5 * np.sin(2 * np.pi * np.arange(rows) / DAY))


def test_what_repeats_is_repeated():
    rates = daily(10 * DAY)
    assert taught(rates[: -2 * DAY]).forecast(2 * DAY) == pytest.approx(rates[-2 * DAY :], rel=1e-3)


def test_the_drop_into_days_of_rest_is_foreseen():
    rest = np.repeat([1, 1, 1, 1, 1, 0.4, 0.4], DAY)
    rates = daily(21 * 7 * DAY) * np.tile(rest, 21) * np.exp(NOISE.normal(0, 0.02, 21 * 7 * DAY))
    forecaster = taught(rates[: -2 * DAY])
    assert forecaster.forecast(1)[0] == pytest.approx(rates[-2 * DAY], rel=0.3)


def test_it_follows_a_new_level():
    rates = daily(20 * DAY) * np.exp(NOISE.normal(0, 0.05, 20 * DAY))
    rates[10 * DAY :] *= 10
    found = taught(rates[:-DAY]).forecast(DAY)
    assert np.mean(np.abs(found / rates[-DAY:] - 1)) < 0.15


def test_a_gap_moves_nothing_and_time_goes_on():
    rates = daily(12 * DAY)
    holed = rates.copy()
    holed[6 * DAY : 7 * DAY + 5] = math.nan
    assert taught(holed[:-5]).forecast(5) == pytest.approx(rates[-5:], rel=1e-3)


def test_it_needs_two_days():
    with pytest.raises(NotReady, match="'holt_winters': needs 24 rates, two days; has 23"):
        taught(daily(23)).forecast(1)


def test_zeros_are_rates():
    rates = np.tile([0.0, 0.0, 50.0, 100.0], 30)
    assert taught(rates, day=4).forecast(4) == pytest.approx([0.0, 0.0, 50.0, 100.0], abs=0.5)
