import pytest

from penstock.errors import InputError
from penstock.forecast.drift import Drift


def test_it_goes_on_as_the_window_went():
    forecaster = Drift(3)
    for rate in (900.0, 10.0, 12.0, 20.0):
        forecaster.learn(rate)
    assert forecaster.forecast(3).tolist() == [25.0, 30.0, 35.0]


def test_a_fall_ends_at_zero():
    forecaster = Drift(2)
    forecaster.learn(30.0)
    forecaster.learn(10.0)
    assert forecaster.forecast(2).tolist() == [0.0, 0.0]


def test_a_line_needs_two_points():
    with pytest.raises(InputError, match="window must be whole and at least 2; got 1"):
        Drift(1)


def test_a_missing_rate_leaves_the_line_and_time_goes_on():
    forecaster = Drift(4)
    for rate in (10.0, 20.0, 30.0, float("nan")):
        forecaster.learn(rate)
    assert forecaster.forecast(2).tolist() == [50.0, 60.0]


def test_one_known_rate_stays_level():
    forecaster = Drift(2)
    for rate in (10.0, 30.0, float("nan")):
        forecaster.learn(rate)
    assert forecaster.forecast(2).tolist() == [30.0, 30.0]
    forecaster.learn(float("nan"))
    assert forecaster.forecast(1).tolist() == [30.0]
