"""The networks, as small as they can be: each is trained for a few epochs on a short wave."""

from __future__ import annotations

import math
import pickle
import pickletools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecaster, NotReady, TrainedOffLine
from penstock.forecast.parts.windows import windows
from penstock.forecast.recurrent import RECURRENT, BiGru, Gru, network
from penstock.forecast.recurrent.fitting import Schedule, _batches, train
from penstock.forecast.recurrent.scaling import MinMax

pytestmark = pytest.mark.skipif(not network.installed(), reason="needs the extra 'deep'")

WAVE = 100 + 50 * np.sin(np.arange(320) / 4)
SMALL = {"window": 8, "horizon": 3, "units": 4, "epochs": 3, "batch": 32}


def trained(kind, **options):
    model = kind(**{**SMALL, **options})
    model.fit(WAVE[:250], WAVE[250:300])
    return model


@pytest.fixture(scope="module")
def gru():
    return pickle.dumps(trained(Gru, epochs=120))


@pytest.mark.parametrize("kind", RECURRENT)
def test_every_kind_is_trained_off_line_and_then_forecasts(kind):
    model = kind(**SMALL)
    assert isinstance(model, Forecaster)
    assert isinstance(model, TrainedOffLine)
    assert not model.ready
    with pytest.raises(NotReady, match=f"forecaster '{kind.name}': needs to be trained before use; has no weights yet"):
        model.forecast(1)
    model.fit(WAVE[:250], WAVE[250:300])
    assert model.ready
    found = model.forecast(5)
    assert found.shape == (5,)
    assert found.dtype == np.float64
    assert (found >= 0).all()


def test_it_learns_a_wave(gru):
    model = pickle.loads(gru)
    off = []
    for rate in WAVE[300:316]:
        off.append(abs(model.forecast(1)[0] - rate))
        model.learn(rate)
    step = np.abs(np.diff(WAVE[299:316])).mean()
    assert np.mean(off) < 0.8 * step  # nearer than the last value


def test_the_same_seed_gives_the_same_network_and_another_seed_another():
    one, two, other = (trained(Gru, seed=seed).forecast(3).tolist() for seed in (1, 1, 2))
    assert one == two != other


def test_layers_and_directions_have_draws_of_their_own():
    shape = network.Shape("GRU", True, window=8, horizon=3, units=4, layers=2)
    weights = network.initial_weights(shape, seed=0)
    kernels = [
        tuple(one.ravel()) for one in weights if one.ndim == 2 and np.abs(one).max() > 0 and one.shape != (2, 12)
    ]
    assert len(kernels) == len(set(kernels)) == 9  # two layers, two ways, two kernels each; and the dense layer


def test_a_pickle_has_arrays_only_and_goes_on_the_same(gru):
    names = {argument for _, argument, _ in pickletools.genops(gru) if isinstance(argument, str)}
    assert not any(name.startswith(("keras", "jax")) for name in names)
    one, two = pickle.loads(gru), pickle.loads(gru)
    one.forecast(2)
    again = pickle.loads(pickle.dumps(one))
    for model in (one, two, again):
        model.learn(77.0)
    assert one.forecast(4).tolist() == two.forecast(4).tolist() == again.forecast(4).tolist()
    assert len(pickle.dumps(again)) <= len(gru) + 16


def test_beyond_its_horizon_it_reads_its_own_forecasts(gru):
    model, copy = pickle.loads(gru), pickle.loads(gru)
    ahead = model.forecast(6)
    assert ahead[:3].tolist() == model.forecast(3).tolist()
    for rate in ahead[:3]:
        copy.learn(float(rate))
    assert ahead[3:].tolist() == pytest.approx(copy.forecast(3).tolist(), rel=1e-4)


def test_a_missing_rate_is_taken_as_the_last_known(gru):
    model, copy = pickle.loads(gru), pickle.loads(gru)
    model.learn(math.nan)
    copy.learn(WAVE[299])
    assert model.forecast(2).tolist() == copy.forecast(2).tolist()


def test_it_stands_where_it_had_learnt_both_parts(gru):
    model, copy = pickle.loads(gru), pickle.loads(gru)
    for rate in WAVE[292:300]:  # the whole window once more
        copy.learn(rate)
    assert model.forecast(3).tolist() == copy.forecast(3).tolist()


def test_the_best_epoch_is_kept():
    """The validation part says the opposite of the training part: later epochs make it worse, and are not taken."""
    shape = network.Shape("GRU", False, window=8, horizon=3, units=4, layers=1)
    training = windows(WAVE[:250] / 150, 8, 3)
    other = (training[0], -training[1])
    errors = []
    for epochs in range(1, 6):
        weights = train(shape, training, other, Schedule(epochs, batch=32, seed=0))
        errors.append(np.mean((network.Network(shape, weights).outputs(other[0]) - other[1]) ** 2))
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) < len(errors)  # some epochs were worse


def examples(rates, validation):
    """The windows that a network would be trained on, and those that would stop it, without training it."""
    model = Gru(**SMALL)
    model._scale = MinMax.fitted(rates)
    return model._examples(rates, validation)


def test_without_a_validation_part_the_end_of_the_training_part_is_one():
    (x, y), (held_x, held_y) = examples(WAVE[:110], np.empty(0))
    assert (len(x), len(held_x)) == (80, 20)
    assert (len(y), len(held_y)) == (80, 20)


def test_the_validation_part_is_all_that_stops_it():
    (x, _), (held_x, held_y) = examples(WAVE[:110], WAVE[110:130])
    assert (len(x), len(held_x)) == (100, 18)
    scaled = MinMax.fitted(WAVE[:110]).down(WAVE)
    assert held_x[0].tolist() == scaled[102:110].tolist()
    assert held_y[0].tolist() == scaled[110:113].tolist()


def test_gaps_are_filled_in_windows_and_left_out_of_targets():
    rates = WAVE.copy()
    rates[[0, 40, 41, 120]] = np.nan
    for part in examples(rates[:110], rates[110:150]):
        assert np.isfinite(part[0]).all()
        assert np.isfinite(part[1]).all()


def test_a_constant_stays():
    model = Gru(**SMALL)
    model.fit(np.full(250, 5.0), np.full(50, 5.0))
    assert model.forecast(3).tolist() == pytest.approx([5.0] * 3, abs=0.5)


@pytest.mark.parametrize("rates", [np.ones(11), np.full(50, np.nan), np.empty(0)])
def test_too_few_rates_to_train(rates):
    match = r"forecaster 'gru': training needs at least 12 rates in a row \(window 8, horizon 3\); got"
    with pytest.raises(InputError, match=match):
        Gru(**SMALL).fit(rates, np.empty(0))


@pytest.mark.parametrize("option", ["window", "horizon", "units", "layers", "epochs", "batch"])
@pytest.mark.parametrize("value", [0, 1.5, True])
def test_options_are_whole(option, value):
    with pytest.raises(InputError, match=f"forecaster 'bigru': {option} must be whole and at least 1; got {value}"):
        BiGru(**{option: value})


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(network, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"forecaster 'gru': needs the extra 'deep' .* pip install 'penstock\[deep\]'"):
        Gru()


def test_keras_on_something_else_is_said(monkeypatch):
    other = SimpleNamespace(backend=SimpleNamespace(backend=lambda: "torch"))
    monkeypatch.setitem(sys.modules, "keras", other)
    with pytest.raises(InputError, match="need Keras on jax; it is loaded already on torch: set KERAS_BACKEND=jax"):
        network.load_keras()


def test_an_epoch_sees_every_window_at_most_once():
    rows = _batches(70, 32, np.random.default_rng(0))
    assert rows.shape == (2, 32)
    assert len(set(rows.ravel().tolist())) == 64
    assert _batches(5, 32, np.random.default_rng(0)).shape == (1, 5)
