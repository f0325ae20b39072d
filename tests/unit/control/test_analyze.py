from __future__ import annotations

import math

import pytest

from penstock.control.analyze import Analyzer, analyzer_for
from penstock.errors import InputError
from penstock.forecast.drift import Drift
from penstock.forecast.last_value import LastValue
from penstock.forecast.seasonal_naive import SeasonalNaive
from penstock.policy.base import Plan
from penstock.policy.cba import Cba
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.loads import load, snapshot


def test_each_source_has_a_forecaster_of_its_own():
    analyzer = Analyzer("drift", lambda series: Drift(), horizon=2)
    analyzer.analyze(snapshot({"x": 10, "y": 100}, []))
    forecast = analyzer.analyze(snapshot({"x": 20, "y": 90}, []))
    assert forecast.rates == {"x": (30.0, 40.0), "y": (80.0, 70.0)}
    assert forecast.rate("x", step=2) == 40.0
    assert forecast.rate("x", step=3) is None


def test_what_came_before_is_learnt_first():
    analyzer = Analyzer("drift", lambda series: Drift())
    analyzer.recall({"x": [5.0, 10.0]})
    assert analyzer.analyze(snapshot({"x": 30}, [])).rates == {"x": (42.5,)}


def test_not_ready_is_said():
    forecast = Analyzer("drift", lambda series: Drift()).analyze(snapshot({"x": 10}, []))
    assert forecast.rates == {}
    assert forecast.waiting == {"x": "forecaster 'drift': needs 2 rates; has 1"}


def test_rates_are_per_second():
    analyzer = Analyzer("drift", lambda series: Drift())
    for count, interval_s in ((20, 2.0), (60, 3.0)):
        forecast = analyzer.analyze(snapshot({"x": count}, [], interval_s=interval_s))
    assert forecast.rates == {"x": (30.0,)}


def test_bad_numbers_are_missing_while_time_goes_on():
    analyzer = Analyzer("drift", lambda series: Drift())
    for count, incomplete in ((10, {}), (9999, {"x": "went back"}), (20, {})):
        forecast = analyzer.analyze(snapshot({"x": count}, [], incomplete=incomplete))
    assert forecast.rates == {"x": (25.0,)}


def test_operators_have_forecasters_of_their_own():
    analyzer = Analyzer("last_value", lambda series: LastValue(), operators=True)
    seen = snapshot({"x": 10}, [load("a", {"x": 10}), load("b", {"a": 4})], incomplete={"b": "stale"})
    forecast = analyzer.analyze(seen)
    assert forecast.rates == {"x": (10.0,), "a": (10.0,)}
    assert forecast.waiting == {"b": "forecaster 'last_value': needs 1 rate; has none"}


def test_intervals_that_nobody_looked_at_are_missing():
    """A driver stood still for three intervals; a forecaster by the time of day was then three rows out of step."""
    analyzer = Analyzer("seasonal_naive", lambda series: SeasonalNaive(day=4))
    for time_s, count in ((1, 10), (2, 20), (3, 30), (4, 40), (5, 11), (9, 12)):
        forecast = analyzer.analyze(snapshot({"x": count}, [], time_s=float(time_s)))
    assert forecast.rates == {"x": (20.0,)}


@pytest.mark.parametrize("time_s", [-1e9, 1e9, math.nan, math.inf])
def test_a_clock_that_jumps_is_no_day_of_missing_rates(time_s):
    analyzer = Analyzer("last_value", lambda series: LastValue())
    analyzer.analyze(snapshot({"x": 10}, [], time_s=5.0))
    assert analyzer.analyze(snapshot({"x": 20}, [], time_s=time_s)).rates == {"x": (20.0,)}


class Faulty(LastValue):
    def learn(self, rate):
        raise ZeroDivisionError("no day")


def test_a_forecaster_that_fails_is_left_out_and_the_others_go_on(caplog):
    """One that raised took the forecasts of all others with it."""
    analyzer = Analyzer("auto", lambda series: Faulty() if series == "x" else LastValue())
    for _ in range(3):
        forecast = analyzer.analyze(snapshot({"x": 10, "y": 100}, []))
    assert forecast.rates == {"y": (100.0,)}
    assert forecast.waiting == {"x": "failed: ZeroDivisionError: no day"}
    assert [record.message for record in caplog.records] == [
        "forecast of 'x' by auto failed: ZeroDivisionError: no day; planned by its last rate"
    ]


class Ahead:
    horizon = 7

    def plan(self, snapshot, forecast=None):
        return Plan({})


class TestAnalyzerForAPolicy:
    def test_none_where_nobody_needs_one(self):
        assert analyzer_for(guarded(Psps()), None, 5.0) is None

    def test_one_that_sizes_for_the_next_interval_gets_one_step_of_the_sources(self):
        analyzer = analyzer_for(guarded(Psps(use_forecast=True)), "drift", 5.0)
        assert (analyzer.name, analyzer.horizon, analyzer.operators) == ("drift", 1, False)

    def test_one_that_plans_ahead_gets_its_horizon_of_every_operator(self):
        analyzer = analyzer_for(guarded(Ahead()), "drift", 5.0)
        assert (analyzer.name, analyzer.horizon, analyzer.operators) == ("drift", 7, True)

    def test_one_that_plans_ahead_has_a_forecaster_of_its_own_accord(self):
        assert analyzer_for(Ahead(), None, 5.0).name == "auto"

    def test_one_that_asks_for_a_quantile_gets_it_where_the_forecaster_knows(self):
        analyzer = analyzer_for(guarded(Cba(horizon=2, lateness=29_800)), None, 1.0)
        for count in (100, 130, 90, 120, 110) * 4:
            forecast = analyzer.analyze(snapshot({"x": count}, [load("a", {"x": count})]))
        assert analyzer.level == pytest.approx(0.8)
        assert forecast.high["a"] == forecast.high["x"] > forecast.rates["x"]
        assert len(forecast.high["x"]) == 2

    def test_a_forecaster_that_does_not_know_gives_none(self):
        analyzer = analyzer_for(Cba(), "last_value", 5.0)
        assert analyzer.analyze(snapshot({"x": 10}, [])).high == {}

    def test_one_that_asks_for_none_gets_none(self):
        assert analyzer_for(Ahead(), None, 5.0).level is None


def test_the_horizon_is_at_least_one():
    with pytest.raises(InputError, match="horizon must be at least 1"):
        Analyzer("drift", lambda series: Drift(), horizon=0)


def test_each_forecaster_is_made_once_and_for_its_series():
    made = []

    def make(series):
        made.append(series)
        return LastValue()

    analyzer = Analyzer("last_value", make)
    for _ in range(3):
        analyzer.analyze(snapshot({"x": 10, "y": 100}, []))
    assert made == ["x", "y"]


def test_short_intervals_and_cut_ones_are_gathered_into_equal_steps():
    learnt = []

    class Keeps(LastValue):
        def learn(self, rate):
            learnt.append(rate)
            super().learn(rate)

    analyzer = Analyzer("last_value", lambda series: Keeps(), step_s=1.0)
    time_s = 0.0
    for length_s, count in ((0.2, 10), *((0.2, 20 + n) for n in range(5)), (0.7, 70), (0.3, 90), (1.0, 100)):
        time_s += length_s
        seen = snapshot({"x": count}, [], time_s=time_s, interval_s=length_s, td_s=0.2)
        forecast = analyzer.analyze(seen)
    assert learnt == pytest.approx([50.0, 86 / 0.8, (24 + 70) / 0.9, (90 + 100) / 1.3])
    assert forecast.rates == {"x": (pytest.approx(190 / 1.3),)}


def test_a_part_that_cannot_be_trusted_makes_the_step_missing():
    analyzer = Analyzer("drift", lambda series: Drift(), step_s=1.0)
    for number, incomplete in enumerate(({}, {}, {}, {"x": "stale"}, {}, {}, {}, {}, {})):
        seen = snapshot({"x": 10}, [], time_s=0.5 * number, interval_s=0.5, td_s=0.5, incomplete=incomplete)
        forecast = analyzer.analyze(seen)
    assert forecast.rates == {"x": (20.0,)}


@pytest.mark.parametrize(("td_s", "step_s"), [(0.2, 1.0), (1.0, 1.0), (5.0, 5.0)])
def test_forecasters_are_asked_once_a_second_at_most(td_s, step_s):
    assert analyzer_for(Psps(), "last_value", td_s).step_s == step_s
