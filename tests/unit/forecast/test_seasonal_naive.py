import math

import pytest

from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.seasonal_naive import SeasonalNaive


def taught(forecaster, rates):
    for rate in rates:
        forecaster.learn(rate)
    return forecaster


def test_it_gives_the_last_season_from_where_it_stands():
    forecaster = taught(SeasonalNaive(day=4), [1, 2, 3, 4, 10, 20])
    assert forecaster.forecast(9).tolist() == [3, 4, 10, 20, 3, 4, 10, 20, 3]


def test_a_week_is_seven_days():
    forecaster = taught(SeasonalNaive(day=2, week=True), range(16))
    assert forecaster.season == 14
    assert forecaster.forecast(2).tolist() == [2, 3]


def test_a_missing_rate_is_that_of_the_season_before():
    forecaster = taught(SeasonalNaive(day=3), [1, 2, 3, 11, math.nan, 13])
    assert forecaster.forecast(3).tolist() == [11, 2, 13]


def test_in_the_first_season_it_is_the_rate_before():
    assert taught(SeasonalNaive(day=3), [math.nan, 1, math.nan, 3]).forecast(3).tolist() == [1, 1, 3]


def test_it_needs_one_season():
    with pytest.raises(NotReady, match="'seasonal_naive': needs 3 rates, one season; has 2"):
        taught(SeasonalNaive(day=3), [1, 2]).forecast(1)


@pytest.mark.parametrize("day", [0, -1, 2.5, True])
def test_a_day_has_rows(day):
    with pytest.raises(InputError, match="'seasonal_naive': day must be whole and at least 1; got"):
        SeasonalNaive(day=day)
