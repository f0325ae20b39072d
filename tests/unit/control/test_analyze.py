from __future__ import annotations

import pytest

from penstock.control.analyze import Analyzer
from penstock.errors import InputError
from penstock.forecast.drift import Drift
from penstock.testing.loads import snapshot


def test_each_source_has_a_forecaster_of_its_own():
    analyzer = Analyzer("drift", Drift, horizon=2)
    analyzer.analyze(snapshot({"x": 10, "y": 100}, []))
    forecast = analyzer.analyze(snapshot({"x": 20, "y": 90}, []))
    assert forecast.rates == {"x": (30.0, 40.0), "y": (80.0, 70.0)}
    assert forecast.rate("x", step=2) == 40.0
    assert forecast.rate("x", step=3) is None


def test_not_ready_is_said():
    forecast = Analyzer("drift", Drift).analyze(snapshot({"x": 10}, []))
    assert forecast.rates == {}
    assert forecast.waiting == {"x": "has not learnt enough"}


def test_rates_are_per_second():
    analyzer = Analyzer("drift", Drift)
    for count, interval_s in ((20, 2.0), (60, 3.0)):
        forecast = analyzer.analyze(snapshot({"x": count}, [], interval_s=interval_s))
    assert forecast.rates == {"x": (30.0,)}


def test_bad_numbers_are_not_learnt():
    analyzer = Analyzer("drift", Drift)
    for count, incomplete in ((10, {}), (9999, {"x": "went back"}), (20, {})):
        forecast = analyzer.analyze(snapshot({"x": count}, [], incomplete=incomplete))
    assert forecast.rates == {"x": (30.0,)}


def test_the_horizon_is_at_least_one():
    with pytest.raises(InputError, match="horizon must be at least 1"):
        Analyzer("drift", Drift, horizon=0)
