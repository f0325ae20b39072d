import pytest

from penstock.errors import InputError
from penstock.forecast.moving_average import MovingAverage


def test_the_window_moves():
    forecaster = MovingAverage(3)
    for rate in (1000.0, 10.0, 20.0, 60.0):
        forecaster.learn(rate)
    assert forecaster.forecast(1).tolist() == [30.0]


def test_a_window_that_is_not_full_yet():
    forecaster = MovingAverage(10)
    forecaster.learn(10.0)
    forecaster.learn(20.0)
    assert forecaster.forecast(1).tolist() == [15.0]


def test_an_empty_window():
    with pytest.raises(InputError, match="forecaster 'moving_average': window must be whole and at least 1; got 0"):
        MovingAverage(0)


def test_missing_rates_take_place_and_do_not_count():
    forecaster = MovingAverage(3)
    for rate in (1000.0, 10.0, float("nan"), 20.0):
        forecaster.learn(rate)
    assert forecaster.forecast(1).tolist() == [15.0]


def test_where_all_is_missing_the_last_known_rate_stays():
    forecaster = MovingAverage(2)
    for rate in (10.0, 30.0, float("nan"), float("nan"), float("nan")):
        forecaster.learn(rate)
    assert forecaster.forecast(1).tolist() == [30.0]
