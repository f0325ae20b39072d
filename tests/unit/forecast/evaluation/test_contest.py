import math

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.evaluation import contest as module
from penstock.forecast.evaluation.backtest import Edge, Rule
from penstock.forecast.evaluation.contest import Terms, contest, models_named
from penstock.forecast.evaluation.series import Split
from penstock.forecast.registry import FORECASTERS
from penstock.workload import Trace

RAMP = Trace("ramp", 3600.0, np.arange(60.0))
SPLIT = Split(30, 10, 20)


def test_the_nearest_comes_first_and_the_ratios_say_by_how_much():
    test = contest(RAMP, SPLIT, ["moving_average:3", "last_value", "drift"], Terms())
    assert [trial.score.model for trial in test.ranked] == ["drift", "last_value", "moving_average:3"]
    average = test.ranked[-1]
    assert average.score.mae == 2.0
    assert test.ratio(average, "last_value") == pytest.approx(2.0, rel=0.05)
    assert test.ratio(average) == math.inf  # the best makes no error at all
    assert test.ratio(test.ranked[0]) == 1.0
    assert math.isnan(test.ratio(average, "omen"))


def test_one_that_cannot_forecast_stops_no_other():
    test = contest(RAMP, SPLIT, ["arima", "last_value"], Terms())
    assert [trial.score.model for trial in test.trials] == ["last_value"]
    assert test.failed == {"arima": "forecaster 'arima': training needs at least 200 rates; got 30"}


def test_every_model_gets_its_own_edge():
    asked = []
    contest(RAMP, SPLIT, ["drift", "last_value"], Terms(), lambda spec: asked.append(spec) or Edge())
    assert asked == ["drift", "last_value"]


def test_what_a_description_leaves_open_is_told():
    terms = Terms(rule=Rule(5), seed=7)
    svr = terms.forecaster("svr:window=8", RAMP)
    assert (svr.window, svr.horizon) == (8, 5)
    assert terms.forecaster("svr:horizon=9", RAMP).horizon == 9


@pytest.mark.parametrize("spec", ["seasonal_naive:168", "holt_winters:168", "ridge:168", "ridge:lags=3,day=168"])
def test_a_day_by_position_counts_as_one_by_name(spec):
    """It was told the day of the series all the same, as the text `day=` was not there."""
    assert Terms(day=24).forecaster(spec, RAMP).day == 168


def test_all_is_every_name_but_those_that_need_a_folder():
    names, left_out = models_named("all")
    assert {"last_value", "arima", "ets", "svr", "gru"} <= set(names) <= set(FORECASTERS.distinct)
    assert not left_out
    assert not any("folder" in FORECASTERS.options(name) for name in names)


def test_networks_are_left_out_of_all_where_they_cannot_run(monkeypatch):
    monkeypatch.setattr(module, "installed", lambda: False)
    names, left_out = models_named("all")
    assert not {"lstm", "gru", "bilstm", "bigru"} & set(names)
    assert left_out == ["lstm, gru, bilstm, bigru left out: they need the extra 'deep', pip install 'penstock[deep]'"]


def test_the_yardstick_always_takes_part():
    assert models_named("drift:3,svr:window=8,horizon=2")[0] == ["drift:3", "svr:window=8,horizon=2", "last_value"]
    assert models_named("last_value")[0] == ["last_value"]


@pytest.mark.parametrize("text", ["", " , "])
def test_no_names_at_all(text):
    with pytest.raises(InputError, match="forecaster: must be names separated by commas; got"):
        models_named(text)


def test_a_day_has_rows():
    with pytest.raises(InputError, match="backtest: day must be whole and at least 1; got 0"):
        Terms(day=0)
