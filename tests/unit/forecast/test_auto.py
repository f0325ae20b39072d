"""What `auto` reaches on made series, what it survives, and that it knows nothing of later rows."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.auto import Auto
from penstock.forecast.base import HasQuantiles, NotReady
from penstock.forecast.evaluation.backtest import Rule, backtest
from penstock.forecast.evaluation.series import Split
from penstock.forecast.registry import forecaster_for
from penstock.workload import data_file, load_trace

DAY = 24


def daily(rows, noise=0.05, seed=4):
    shape = 100 + 60 * np.sin(2 * np.pi * np.arange(rows) / DAY) + 20 * np.sin(4 * np.pi * np.arange(rows) / DAY)
    return shape * np.exp(noise * np.random.default_rng(seed).normal(size=rows))


def taught(rates, **options):
    forecaster = Auto(**{"day": DAY, **options})
    for rate in rates:
        forecaster.learn(float(rate))
    return forecaster


def one_step(rates, start):
    """Forecasts of the rows from `start` on, each made right before it."""
    forecaster, found = taught(rates[:start]), []
    for rate in rates[start:]:
        found.append(forecaster.forecast(1)[0])
        forecaster.learn(float(rate))
    return np.array(found)


@pytest.fixture(scope="module")
def pickled():
    """After 15 days, a day of which is missing."""
    rates = daily(15 * DAY)
    rates[200 : 200 + DAY] = math.nan
    return pickle.dumps(taught(rates))


@pytest.fixture
def auto(pickled):
    return pickle.loads(pickled)


class TestWhatItReaches:
    def test_a_day_ahead_after_a_fortnight(self, auto):
        true = daily(16 * DAY, noise=0.0)[15 * DAY :]
        found = auto.forecast(DAY)
        assert np.mean(np.abs(found / true - 1)) < 0.06

    def test_beyond_its_steps_it_goes_on_from_its_own_forecast(self, auto):
        found = auto.forecast(3 * DAY)
        assert found[:18].tolist() == auto.forecast(18).tolist()
        assert np.mean(np.abs(found / daily(18 * DAY, noise=0.0)[15 * DAY :] - 1)) < 0.12

    def test_on_noise_it_is_nearly_as_good_as_the_mean(self):
        rates = np.random.default_rng(1).uniform(50, 150, 250)
        found = one_step(rates, 130)
        assert np.mean(np.abs(found - rates[130:])) < 1.2 * np.mean(np.abs(100 - rates[130:]))

    def test_on_a_random_walk_it_is_nearly_as_good_as_the_last_value(self):
        rates = 100 * np.exp(np.cumsum(np.random.default_rng(2).normal(0, 0.05, 250)))
        found = one_step(rates, 130)
        assert np.mean(np.abs(found - rates[130:])) < 1.2 * np.mean(np.abs(np.diff(rates[129:])))

    def test_ten_times_the_load_is_followed_within_a_few_rows(self):
        rates = daily(320)
        rates[280:] *= 10
        found = one_step(rates, 280)
        assert np.median(np.abs(found[3:] / rates[283:] - 1)) < 0.25
        assert np.median(np.abs(found[12:] / rates[292:] - 1)) < 0.15

    def test_on_a_published_series_it_beats_the_best_published_error(self):
        series = load_trace(data_file("forecast", "IoT_1h.csv"))
        outcome = backtest(Auto(DAY), series.rates, Split(403, 0, 101), Rule(12, overlap=True))
        assert outcome.errors.smape < 2.03


class TestWhatItSurvives:
    @pytest.mark.parametrize("rates", [[5.0, 7.0], [0.0, 0.0], [math.nan, 3.0, math.nan, 4.0]])
    def test_two_rates_are_enough(self, rates):
        found = taught(rates).forecast(20)
        assert np.isfinite(found).all()
        assert found.max() <= 4 * np.nanmax(rates)

    def test_silence_and_what_comes_after(self):
        forecaster = taught([0.0] * 250)
        assert forecaster.forecast(5).tolist() == [0.0] * 5
        for _ in range(30):
            forecaster.learn(100.0)
        assert forecaster.forecast(3) == pytest.approx([100.0] * 3, rel=0.1)

    def test_zeros_at_night(self):
        rates = np.tile(np.concatenate([np.zeros(8), np.full(16, 50.0)]), 12)
        found = taught(rates[:-DAY]).forecast(DAY)
        assert found[:8].max() < 5
        assert found[10:18].min() > 40

    def test_missing_rates_are_not_learnt_from(self, auto):
        forecast = auto.forecast(5)
        for _ in range(2 * DAY):
            auto.learn(math.nan)
        assert auto.forecast(5) == pytest.approx(forecast, rel=0.2)

    def test_days_longer_than_what_it_has_seen(self):
        forecaster = taught(daily(300), day=17_280)
        assert forecaster.forecast(3) == pytest.approx(daily(303, noise=0.0)[300:], rel=0.25)


class TestWhatItKnows:
    def test_forecasts_do_not_depend_on_what_comes_later(self):
        rates = daily(250)
        other = rates.copy()
        other[230:] = np.random.default_rng(9).uniform(0, 1000, 20)
        one, two = one_step(rates, 200), one_step(other, 200)
        assert one[:31].tolist() == two[:31].tolist()  # the forecast of row 230 is the last made before it
        assert one[31:].tolist() != two[31:].tolist()

    def test_a_copy_goes_on_the_same_through_refits(self, auto, pickled):
        copy = pickle.loads(pickled)
        for number, rate in enumerate(daily(40, seed=8)):
            for one in (auto, copy):
                one.learn(float(rate))
            if number % 7 == 0:
                copy = pickle.loads(pickle.dumps(copy))
                auto.forecast(3 * DAY)
        assert auto.forecast(18).tolist() == copy.forecast(18).tolist()

    def test_a_forecast_may_be_written_to(self, auto):
        found = auto.forecast(3)
        kept = found.tolist()
        found[:] = -1
        assert auto.forecast(3).tolist() == kept


class TestHowSureItIs:
    def test_nine_of_ten_rows_are_within_the_interval(self):
        rates = daily(660, noise=0.15)
        forecaster, within = taught(rates[:340]), {1: [], 6: [], 18: []}
        for row in range(340, 642):
            low, high = forecaster.quantiles(18, [0.05, 0.95])
            for step, found in within.items():
                found.append(low[step - 1] <= rates[row + step - 1] <= high[step - 1])
            forecaster.learn(float(rates[row]))
        for found in within.values():
            assert 0.85 <= np.mean(found) <= 0.95

    def test_higher_levels_are_never_lower(self, auto):
        found = auto.quantiles(30, [0.01, 0.1, 0.5, 0.9, 0.99])
        assert isinstance(auto, HasQuantiles)
        assert found.shape == (5, 30)
        assert (np.diff(found, axis=0) >= 0).all()
        assert (found >= 0).all()
        assert (found[0] < auto.forecast(30)).all()
        assert (found[-1] > auto.forecast(30)).all()

    def test_a_level_is_what_it_forecasts(self):
        rates = daily(100, noise=0.2)
        careful = taught(rates, level=0.9)
        assert careful.forecast(4).tolist() == taught(rates).quantiles(4, [0.9])[0].tolist()

    def test_it_says_when_it_is_not_ready(self):
        with pytest.raises(NotReady, match="forecaster 'auto': needs 2 rates; has 1"):
            taught([3.0]).quantiles(1, [0.5])


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"day": 0}, "day must be whole and at least 1; got 0"),
        ({"level": 1.0}, "level must be above 0 and below 1; got 1.0"),
        ({"level": "high"}, "level must be above 0 and below 1; got 'high'"),
    ],
)
def test_wrong_options(options, rule):
    with pytest.raises(InputError, match=f"forecaster 'auto': {rule}"):
        Auto(**options)


def test_a_level_that_is_none_of_the_quantiles(auto):
    with pytest.raises(InputError, match="forecaster 'auto': level must be above 0 and below 1; got 90"):
        auto.quantiles(1, [90])


def test_the_length_of_a_day_comes_with_the_interval():
    forecaster = forecaster_for("auto:level=0.8", interval_s=600, day_s=86_400)
    assert (forecaster.day, forecaster.level) == (144, 0.8)
