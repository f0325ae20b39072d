"""How sure `trained` is: as sure as its model.

It had no quantiles at all: a policy that asks for them planned otherwise than with the same model untrained.
"""

from __future__ import annotations

import pytest

from penstock.control.analyze import analyzer_for
from penstock.errors import InputError
from penstock.forecast.auto import Auto
from penstock.forecast.base import HasQuantiles, NotReady
from penstock.forecast.drift import Drift
from penstock.forecast.trained.model_file import Header, packed
from penstock.forecast.trained.model_folder import ModelFolder
from penstock.forecast.trained.reloading import Followed, Reloading
from penstock.policy.cba import Cba
from penstock.testing.loads import snapshot

RATES = (10.0, 30.0, 20.0, 40.0)
LEVELS = [0.1, 0.9]


@pytest.fixture
def folder(tmp_path):
    return ModelFolder(tmp_path)


def put(folder, model, trained_at="2026-01-01"):
    name = type(model).__name__.lower()
    header = Header(series="in", spec=name, interval_s=300, day=12, rows=1, trained_at=trained_at)
    folder.write((header, packed(model)))


def following(folder, fallback=None):
    return Reloading(folder, Followed("in", day=12), every=1, fallback=fallback)


def taught(forecaster):
    for rate in RATES:
        forecaster.learn(rate)
    return forecaster


def test_those_of_the_model(folder):
    put(folder, Auto(day=12))
    found = taught(following(folder))
    assert isinstance(found, HasQuantiles)
    assert found.quantiles(3, LEVELS).tolist() == taught(Auto(day=12)).quantiles(3, LEVELS).tolist()


def test_before_there_is_one_those_of_the_fallback(folder):
    found = taught(following(folder, fallback=Auto(day=12)))
    assert found.quantiles(3, LEVELS).tolist() == taught(Auto(day=12)).quantiles(3, LEVELS).tolist()


def test_without_a_model_there_are_none(folder):
    with pytest.raises(NotReady, match="forecaster 'trained': needs a model of series 'in'; has none yet"):
        following(folder).quantiles(1, LEVELS)


def test_a_model_without_them_has_none_until_one_with_them_comes(folder):
    put(folder, Drift())
    forecaster = taught(following(folder))
    with pytest.raises(NotReady) as caught:
        forecaster.quantiles(1, LEVELS)
    assert str(caught.value) == (
        "forecaster 'trained': needs a model with quantiles; model 'drift' of 2026-01-01 has none"
    )
    put(folder, Auto(day=12), trained_at="2026-01-02")
    forecaster.learn(50.0)
    assert forecaster.quantiles(1, LEVELS).shape == (2, 1)


def test_an_empty_horizon_is_refused(folder):
    with pytest.raises(InputError, match="the horizon must be at least 1 interval; got 0"):
        taught(following(folder, fallback=Auto(day=12))).quantiles(0, LEVELS)


def test_a_policy_gets_those_that_it_gets_from_the_same_model_untrained(folder):
    put(folder, Auto(day=12))
    analyzers = [analyzer_for(Cba(), spec, 300.0, 3600.0) for spec in (f"trained:{folder.path},every=1", "auto")]
    for number, rate in enumerate(RATES, start=1):
        seen = snapshot({"in": int(300 * rate)}, [], time_s=300.0 * number, interval_s=300.0, td_s=300.0)
        one, two = (analyzer.analyze(seen) for analyzer in analyzers)
        assert (one.rates, one.high) == (two.rates, two.high)
    assert one.high["in"] > one.rates["in"]
