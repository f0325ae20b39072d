"""ETS: our recursion goes where the library goes, one rate at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.ets import Ets, EtsState, Smoothing, state_of

DRAW = np.random.default_rng(3)
WAVE = np.sin(np.arange(300) * 2 * np.pi / 12)
SERIES = {
    "ANN": (np.abs(50 + np.cumsum(DRAW.normal(0, 2, 300))), 1),
    "MAN": (100 + np.arange(300) * 2 + DRAW.normal(0, 3, 300), 1),
    "AAA": (500 + np.arange(300) + 80 * WAVE + DRAW.normal(0, 9, 300), 12),
    "MNM": (500 * (1 + 0.4 * WAVE) * (1 + DRAW.normal(0, 0.02, 300)), 12),
}


def followed(state, rates):
    for rate in rates:
        state.learn(float(rate))
    return state


def test_a_level_by_hand():
    state = followed(EtsState(Smoothing(level=0.25), level=10.0), [14.0, 7.0])
    assert state.forecast(2).tolist() == [10.0, 10.0]  # 10 → 11 → 10


def test_a_slope_by_hand():
    # expected 12, got 16: level 14, slope 2 + (0.1 / 0.5)·(4 − 2) = 2.4
    state = followed(EtsState(Smoothing(level=0.5, slope=0.1), level=10.0, slope=2.0), [16.0])
    assert state.forecast(2).tolist() == pytest.approx([16.4, 18.8])


def test_a_damped_slope_by_hand():
    state = EtsState(Smoothing(level=0.5, slope=0.1, damping=0.5), level=10.0, slope=4.0)
    assert state.forecast(3).tolist() == [12.0, 13.0, 13.5]


def test_seasons_by_hand():
    added = EtsState(Smoothing(level=0.5, season=0.5), level=10.0, seasons=(4.0, -4.0))
    followed(added, [16.0])  # expected 14: level 11, season 4 + 0.5·(6 − 4) = 5
    assert added.forecast(3).tolist() == [7.0, 16.0, 7.0]
    multiplied = EtsState(Smoothing(level=0.5, season=0.5, multiplied=True), level=10.0, seasons=(2.0, 0.5))
    followed(multiplied, [30.0])  # expected 20: level 12.5, season 2 + 0.5·(3 − 2) = 2.5
    assert multiplied.forecast(2).tolist() == [6.25, 31.25]


@pytest.mark.parametrize("form", SERIES)
@pytest.mark.filterwarnings("ignore")
def test_it_stands_where_the_library_stands(form):
    from statsforecast.ets import ets_f, forecast_ets, forward_ets

    rates, season = SERIES[form]
    model = ets_f(rates[:250], m=season, model=form, damped=False)
    found = followed(state_of(model), rates).forecast(15)
    assert found.tolist() == pytest.approx(forecast_ets(forward_ets(model, rates), h=15)["mean"].tolist(), rel=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_damped_it_stands_where_the_library_stands():
    # only one step is compared: further ahead the library adds φ + φ + φ² …, the book φ + φ² + φ³ …
    from statsforecast.ets import ets_f, forecast_ets, forward_ets

    rates, _ = SERIES["MAN"]
    model = ets_f(rates[:250], m=1, model="AAN", damped=True)
    found = followed(state_of(model), rates).forecast(1)
    assert found.tolist() == pytest.approx(forecast_ets(forward_ets(model, rates), h=1)["mean"].tolist(), rel=1e-9)


def test_a_missing_rate_is_as_expected():
    smoothing = Smoothing(level=0.5, slope=0.2, season=0.3, damping=0.9)
    known, gap = (EtsState(smoothing, 10.0, 2.0, (1.0, -1.0)) for _ in range(2))
    ahead = known.forecast(5)
    followed(gap, [math.nan, math.nan])
    assert gap.forecast(3).tolist() == pytest.approx(ahead[2:].tolist())


def test_training_finds_the_season():
    rates, season = SERIES["AAA"]
    ets = Ets(season=season)
    ets.fit(rates[:240], rates[240:288])
    assert np.abs(ets.forecast(12) - rates[288:]).max() < 40


def test_a_multiplicative_season_of_nothing_does_not_divide_by_it():
    state = EtsState(Smoothing(level=0.5, season=0.5, multiplied=True), level=0.0, seasons=(0.0, 1.0))
    assert np.isfinite(followed(state, [0.0, 0.0, 0.0]).forecast(4)).all()


def test_zeros_and_a_constant():
    for rates in (np.zeros(200), np.full(200, 7.0)):
        ets = Ets()
        ets.fit(rates, rates[:5])
        assert ets.forecast(3).tolist() == pytest.approx([rates[0]] * 3, abs=1e-6)


def test_a_search_that_fails_leaves_the_last_value(monkeypatch):
    import statsforecast.ets

    def fails(*_, **__):
        raise Exception("no model able to be fitted")

    monkeypatch.setattr(statsforecast.ets, "ets_f", fails)
    ets = Ets()
    ets.fit(np.arange(250.0), np.array([40.0]))
    assert ets.forecast(2).tolist() == [40.0, 40.0]


def test_the_longest_season():
    with pytest.raises(InputError, match="forecaster 'ets': season must be at most 24 rates; got 288"):
        Ets(season=288)
