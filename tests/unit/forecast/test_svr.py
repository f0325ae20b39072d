from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.svr import Machine, Svr, fitted

WAVE = 100 + 50 * np.sin(np.arange(400) / 6) + np.random.default_rng(1).normal(0, 2, 400)


def trained(**options):
    svr = Svr(**{"window": 8, "horizon": 3, **options})
    svr.fit(WAVE[:300], WAVE[300:380])
    return svr


def test_a_machine_by_hand():
    machine = Machine(np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]]), np.array([0.5]), 1.0, middle=10.0, spread=2.0)
    assert machine.rates(np.array([10.0])).tolist() == pytest.approx([(2 + 4 * math.exp(-1) + 0.5) * 2 + 10])


def test_it_says_what_the_library_says():
    from sklearn.svm import SVR

    from penstock.forecast.parts.windows import windows

    seen, after = windows(WAVE[:300], 8, 3)
    middle, spread = seen.mean(), seen.std()
    machine = fitted(seen, after)
    for step in range(3):
        theirs = SVR(C=1.0, epsilon=0.05, gamma="scale").fit(
            (seen - middle) / spread, (after[:, step] - middle) / spread
        )
        expected = theirs.predict((WAVE[None, 380:388] - middle) / spread) * spread + middle
        assert machine.rates(WAVE[380:388])[step] == pytest.approx(expected[0], rel=1e-9)


def test_it_follows_a_wave():
    assert np.abs(trained().forecast(3) - WAVE[380:383]).max() < 10


def test_beyond_its_horizon_it_reads_its_own_forecasts():
    svr, copy = trained(), trained()
    for rate in svr.forecast(3):
        copy.learn(float(rate))
    assert svr.forecast(6)[3:].tolist() == pytest.approx(copy.forecast(3).tolist())


def test_only_so_many_windows_are_used():
    assert len(trained(rows=20)._machine.windows) <= 20


def test_a_missing_rate_is_taken_as_the_last_known():
    svr, copy = trained(), trained()
    svr.learn(math.nan)
    copy.learn(WAVE[379])
    assert svr.forecast(2).tolist() == copy.forecast(2).tolist()


def test_gaps_in_the_training_part():
    rates = WAVE.copy()
    rates[[0, 50, 51, 200]] = np.nan
    svr = Svr(window=8, horizon=3)
    svr.fit(rates[:300], rates[300:380])
    assert np.abs(svr.forecast(3) - WAVE[380:383]).max() < 10


def test_a_constant_stays():
    svr = Svr(window=4, horizon=2)
    svr.fit(np.full(60, 9.0), np.full(5, 9.0))
    assert svr.forecast(4).tolist() == pytest.approx([9.0] * 4)


def test_untrained_and_untrainable():
    with pytest.raises(NotReady, match="forecaster 'svr': needs to be trained before use; has no support vectors yet"):
        Svr().forecast(1)
    for rates in (np.ones(10), np.full(300, np.nan)):
        with pytest.raises(InputError, match="forecaster 'svr': training needs at least 49 rates in a row; got"):
            Svr().fit(rates, np.empty(0))


@pytest.mark.parametrize(("option", "least"), [("window", 1), ("horizon", 1), ("rows", 10)])
@pytest.mark.parametrize("value", [0, 2.5, True])
def test_options_are_whole(option, least, value):
    with pytest.raises(InputError, match=f"forecaster 'svr': {option} must be whole and at least {least}; got {value}"):
        Svr(**{option: value})
