"""What every forecaster that is trained off line has to keep to."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecaster, NotReady, TrainedOffLine
from penstock.forecast.recurrent import RECURRENT, installed
from penstock.forecast.registry import FORECASTERS, make_forecaster

NETWORKS = [network.name for network in RECURRENT]
SMALL = {"window": 8, "horizon": 3, "units": 4, "epochs": 2, "batch": 32}
RATES = 100 + 50 * np.sin(np.arange(340) / 7) + np.random.default_rng(5).normal(0, 3, 340)
MADE = [
    name
    for name in FORECASTERS.distinct
    if (installed() or name not in NETWORKS) and "folder" not in FORECASTERS.options(name)
]
NAMES = [name for name in MADE if isinstance(make_forecaster(name), TrainedOffLine)]


def small(name):
    asked = FORECASTERS.options(name)
    return make_forecaster(name, **{option: value for option, value in SMALL.items() if option in asked})


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def pickled(name):
    model = small(name)
    model.fit(RATES[:250], RATES[250:300])
    return pickle.dumps(model)


@pytest.fixture
def model(pickled):
    return pickle.loads(pickled)


def test_it_is_not_ready_before(name):
    model = small(name)
    assert isinstance(model, Forecaster)
    assert not model.ready
    with pytest.raises(NotReady, match=f"forecaster '{name}': needs"):
        model.forecast(1)


@pytest.mark.parametrize("horizon", [1, 3, 30])
def test_it_gives_as_many_rates_as_asked_for(model, horizon):
    found = model.forecast(horizon)
    assert model.ready
    assert found.shape == (horizon,)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_asking_changes_nothing_and_pickling_neither(model, pickled):
    model.forecast(5)
    copy, untouched = pickle.loads(pickle.dumps(model)), pickle.loads(pickled)
    for one in (model, copy, untouched):
        one.learn(77.0)
    assert model.forecast(4).tolist() == copy.forecast(4).tolist() == untouched.forecast(4).tolist()


def test_memory_does_not_grow_with_time(model, pickled):
    for rate in np.tile(RATES, 3):
        model.learn(float(rate))
    assert len(pickle.dumps(model)) <= len(pickled) + 64


def test_a_gap_does_no_harm(model):
    for _ in range(40):
        model.learn(math.nan)
    assert np.isfinite(model.forecast(4)).all()
    for rate in RATES[300:]:
        model.learn(float(rate))
    assert np.isfinite(model.forecast(4)).all()


def test_silence_is_never_followed_by_less_than_nothing(model):
    for _ in range(30):
        model.learn(0.0)
    assert (model.forecast(12) >= 0).all()


@pytest.mark.parametrize("rate", [math.inf, -1.0])
def test_it_refuses_what_is_no_rate(model, rate):
    with pytest.raises(InputError, match="a rate must be a number of at least 0"):
        model.learn(rate)


@pytest.mark.parametrize("horizon", [0, -3])
def test_it_refuses_an_empty_horizon(model, horizon):
    with pytest.raises(InputError, match="the horizon must be at least 1 interval; got"):
        model.forecast(horizon)


def test_too_short_a_history_is_an_input_error(name):
    with pytest.raises(InputError, match=f"forecaster '{name}': training needs at least"):
        small(name).fit(RATES[:6], np.empty(0))
