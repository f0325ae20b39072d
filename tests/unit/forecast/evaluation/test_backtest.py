"""What a backtest compares with what, and that no forecast knows of later rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.evaluation.accuracy import Errors
from penstock.forecast.evaluation.backtest import Edge, Outcome, Rule, Score, backtest, walked
from penstock.forecast.evaluation.series import Split, split_at
from penstock.forecast.last_value import LastValue
from penstock.forecast.moving_average import MovingAverage
from penstock.workload import data_file, load_trace

PUBLISHED = [  # series, steps ahead, first test row, sMAPE of the last value
    *(("IoT_5min", 1, 4838, 0.43), ("IoT_15min", 4, 1612, 2.54), ("IoT_1h", 12, 403, 8.42)),
    *(("avazu_5min", 1, 2524, 2.24), ("avazu_15min", 4, 841, 2.21), ("avazu_1h", 12, 210, 7.06)),
    *(("google_5min", 1, 4839, 5.82), ("google_15min", 4, 1613, 6.02), ("google_1h", 12, 404, 10.88)),
    *(("retailrocket_5min", 1, 4838, 3.29), ("retailrocket_15min", 4, 1612, 2.78), ("retailrocket_1h", 12, 403, 11.59)),
    *(("wiki_en_5min", 1, 4838, 2.38), ("wiki_en_15min", 4, 1612, 2.16), ("wiki_en_1h", 12, 403, 9.72)),
]


class Counting:
    """Forecasts how many rates it has learnt, plus a hundredth for each step ahead; remembers what it was fitted to."""

    def __init__(self):
        self.learnt = 0

    @property
    def ready(self):
        return True

    def learn(self, rate):
        self.learnt += 1

    def forecast(self, horizon):
        return self.learnt + np.arange(1, horizon + 1) / 100


class Fitted(Counting):
    def fit(self, rates, validation):
        self.parts = (len(rates), len(validation))
        self.learnt = len(rates) + len(validation)


RATES = np.arange(20.0)
SPLIT = Split(8, 4, 8)


def test_one_step_ahead_every_row_is_compared_with_the_forecast_of_the_row_before():
    outcome = backtest(Counting(), RATES, SPLIT)
    assert outcome.expected.tolist() == [n + 0.01 for n in range(12, 20)]


def test_three_steps_ahead_it_is_the_forecast_made_three_rows_before():
    outcome = backtest(Counting(), RATES, SPLIT, Rule(3))
    assert outcome.expected.tolist() == [n - 2 + 0.03 for n in range(12, 20)]


def test_overlapping_forecasts_are_averaged_from_the_last_row_before_the_test_part_on():
    outcome = backtest(Counting(), RATES, SPLIT, Rule(3, overlap=True))
    assert outcome.expected[0] == 12.01  # only one was made for it
    assert outcome.expected[1] == pytest.approx((13.01 + 12.02) / 2)
    assert outcome.expected[2:] == pytest.approx([n - 1 + 0.02 for n in range(14, 20)])


@pytest.mark.parametrize(("rule", "parts"), [(Rule(1), (8, 4)), (Rule(3), (8, 2)), (Rule(7), (6, 0))])
def test_what_is_trained_off_line_is_fitted_up_to_the_first_forecast(rule, parts):
    model = Fitted()
    backtest(model, RATES, SPLIT, rule)
    assert model.parts == parts
    assert model.learnt == 20  # and goes on learning


@pytest.mark.parametrize(("name", "horizon", "test_start", "smape"), PUBLISHED, ids=lambda value: str(value))
def test_the_published_errors_of_the_last_value(name, horizon, test_start, smape):
    series = load_trace(data_file("forecast", f"{name}.csv"))
    outcome = backtest(LastValue(), series.rates, split_at(series, test_start), Rule(horizon, overlap=True))
    assert round(outcome.errors.smape, 2) == smape


@given(
    st.lists(st.floats(0, 1e6), min_size=12, max_size=12),
    st.lists(st.floats(0, 1e6), min_size=8, max_size=8),
    st.integers(1, 4),
    st.booleans(),
)
@settings(max_examples=40)
def test_later_rows_change_no_earlier_forecast(rates, others, horizon, overlap):
    rule, split = Rule(horizon, overlap=overlap), Split(4, 2, 6)
    one = backtest(MovingAverage(3), np.array(rates), split, rule).expected
    for row in range(6):
        changed = np.array([*rates[: 6 + row], *others[: 6 - row]])
        assert backtest(MovingAverage(3), changed, split, rule).expected[: row + 1].tolist() == one[: row + 1].tolist()


def test_missing_rates_are_learnt_and_not_compared():
    rates = RATES.copy()
    rates[[3, 14]] = np.nan
    outcome = backtest(Counting(), rates, SPLIT)
    assert outcome.expected.shape == (8,)
    assert outcome.errors.mae == pytest.approx(0.01)


def test_rows_after_the_test_part_are_not_touched():
    model = Counting()
    backtest(model, RATES, Split(4, 2, 6))
    assert model.learnt == 12


def test_time_is_what_the_clock_says():
    seconds = iter([10.0, 13.0, 13.5])
    told = []
    outcome = backtest(Counting(), RATES, SPLIT, edge=Edge(lambda: next(seconds), lambda *done: told.append(done)))
    assert (outcome.fit_s, outcome.forecast_ms) == (3.0, 0.5 / 8 * 1000)
    assert told[-1] == (8, 8)


def test_without_a_clock_there_are_no_times():
    outcome = backtest(Counting(), RATES, SPLIT)
    assert math.isnan(outcome.fit_s)
    assert math.isnan(outcome.forecast_ms)


def test_a_forecaster_that_is_not_ready_says_so():
    with pytest.raises(NotReady, match="forecaster 'last_value': needs 1 rate; has none"):
        backtest(LastValue(), RATES[:3], Split(1, 0, 2), Rule(2))


def test_a_series_shorter_than_its_split():
    with pytest.raises(InputError, match="the series must have 20 rows and a test part; got 19 rows"):
        backtest(LastValue(), RATES[:19], SPLIT)


def test_an_empty_horizon():
    with pytest.raises(InputError, match="the horizon must be at least 1 interval; got 0"):
        Rule(0)


def test_walking_gives_the_forecast_made_before_each_rate():
    assert walked(LastValueFrom(5.0), np.array([6.0, 7.0]), 2).tolist() == [[5.0, 5.0], [6.0, 6.0]]


def LastValueFrom(rate):  # noqa: N802
    model = LastValue()
    model.learn(rate)
    return model


def test_json_has_nothing_that_json_cannot_hold():
    outcome = Outcome(np.zeros(1), Errors(1.0, math.inf, math.nan), 0.5, math.nan)
    found = Score.of("s", "drift:3", 2, outcome).as_json()
    assert found == {
        "series": "s",
        "model": "drift:3",
        "horizon": 2,
        "smape": 1.0,
        "rmse": None,
        "mae": None,
        "fit_s": 0.5,
        "forecast_ms": None,
    }
