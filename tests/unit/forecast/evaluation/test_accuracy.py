import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.evaluation.accuracy import Errors, mae, rmse, smape

RATES = st.lists(st.floats(0, 1e9), min_size=1, max_size=20)


def test_errors_worked_out_by_hand():
    y, p = np.array([100.0, 50.0, 0.0, 0.0]), np.array([50.0, 50.0, 0.0, 10.0])
    assert smape(y, p) == pytest.approx((200 * 50 / 150 + 0 + 0 + 200) / 4)
    assert rmse(y, p) == pytest.approx(math.sqrt((2500 + 100) / 4))
    assert mae(y, p) == 15.0


def test_missing_rates_are_not_compared():
    found = Errors.of(np.array([np.nan, 10.0]), np.array([500.0, 12.0]))
    assert (found.rmse, found.mae) == (2.0, 2.0)


def test_without_a_known_rate_there_is_no_error():
    assert math.isnan(Errors.of(np.array([np.nan]), np.array([1.0])).smape)


def test_a_missing_forecast_is_not_hidden():
    assert math.isnan(smape(np.array([1.0, 2.0]), np.array([1.0, np.nan])))


def test_both_must_be_as_many():
    with pytest.raises(InputError, match="rates and forecasts must be as many; got 2 and 3"):
        mae(np.ones(2), np.ones(3))


@given(RATES)
def test_bounds(rates):
    y = np.array(rates)
    p = y[::-1]
    assert Errors.of(y, y) == Errors(0.0, 0.0, 0.0)
    assert 0 <= smape(y, p) <= 200.0000001
    assert smape(y, p) == pytest.approx(smape(p, y))
    assert mae(y, p) <= rmse(y, p) * (1 + 1e-9) + 1e-100  # squares of less are 0
