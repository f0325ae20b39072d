"""ARIMA: our filter goes where the library goes, one rate at a time."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.arima import Arima, ArimaFilter, Coefficients, coefficients, searched
from penstock.forecast.base import NotReady, TrainedOffLine
from penstock.forecast.parts import refitting

DRAW = np.random.default_rng(7)
NOISE = DRAW.normal(0, 1, 400)
SERIES = {
    "level": np.abs(50 + np.convolve(NOISE, [1.0, 0.8, 0.4], "same") * 4),
    "walk": 300 + np.cumsum(NOISE) * 3,
    "drift": 100 + np.arange(400) * 2.0 + np.cumsum(NOISE),
}
SEASONAL = 200 + 60 * np.sin(np.arange(160) * 2 * np.pi / 6) + DRAW.normal(0, 5, 160)


def followed(given_coefficients, rates):
    found = ArimaFilter(given_coefficients)
    for rate in rates:
        found.learn(float(rate))
    return found


def library(rates, fitted_to, season=1):
    """What the library itself forecasts when it goes forward over all rates with the coefficients of the first."""
    from statsforecast.arima import auto_arima_f, forecast_arima, forward_arima

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = auto_arima_f(rates[:fitted_to], seasonal=season > 1, period=season, max_p=3, max_q=2)
        found = coefficients(model)
        return found, forecast_arima(forward_arima(model, rates), h=6)["mean"]


def test_an_autoregression_by_hand():
    # y − 10 halves from step to step: 4, 2, 1
    found = followed(Coefficients(phi=(0.5,), level=10.0), [14.0])
    assert found.forecast(3).tolist() == pytest.approx([12.0, 11.0, 10.5])


def test_a_moving_average_by_hand():
    # ε(t) is not seen alone: of y − level = 3, with variance 1 + 0.5², it is expected to be 3 / 1.25
    found = followed(Coefficients(theta=(0.5,), level=7.0), [10.0])
    assert found.forecast(2).tolist() == pytest.approx([7 + 0.5 * 3 / 1.25, 7.0])


def test_a_drift_by_hand():
    found = followed(Coefficients(delta=(1.0,), drift=2.0), [5.0, 8.0])
    assert found.forecast(3).tolist() == pytest.approx([10.0, 12.0, 14.0], abs=1e-4)


def test_a_second_difference_goes_on_along_the_line():
    found = followed(Coefficients(delta=(2.0, -1.0)), [5.0, 8.0])
    assert found.forecast(2).tolist() == pytest.approx([11.0, 14.0], abs=1e-3)


@pytest.mark.parametrize("name", SERIES)
def test_it_stands_where_the_library_stands(name):
    found, expected = library(SERIES[name], fitted_to=300)
    assert followed(found, SERIES[name]).forecast(6).tolist() == pytest.approx(expected.tolist(), rel=1e-6)


def test_it_stands_where_the_library_stands_with_a_season():
    found, expected = library(SEASONAL, fitted_to=120, season=6)
    assert len(found.delta) + len(found.phi) >= 6
    assert followed(found, SEASONAL).forecast(6).tolist() == pytest.approx(expected.tolist(), rel=1e-6)


def test_a_missing_rate_moves_on_and_corrects_nothing():
    known = followed(Coefficients(phi=(0.5,), level=10.0), [14.0])
    gap = followed(Coefficients(phi=(0.5,), level=10.0), [14.0, math.nan, math.nan])
    assert gap.forecast(2).tolist() == known.forecast(4)[2:].tolist()


@given(st.lists(st.one_of(st.floats(0, 1e6), st.just(math.nan)), min_size=1, max_size=30))
@settings(max_examples=50)
def test_the_filter_stays_finite(rates):
    for form in (Coefficients(phi=(0.9,), theta=(0.3, 0.2), level=5.0), Coefficients(theta=(-0.5,), delta=(1.0,))):
        assert np.isfinite(followed(form, rates).forecast(5)).all()


def test_training_fits_the_first_part_and_follows_the_second():
    rates = SERIES["level"]
    assert isinstance(Arima(), TrainedOffLine)
    arima = Arima()
    arima.fit(rates[:300], rates[300:])
    expected = followed(searched(rates[:300]), rates).forecast(4)
    assert arima.forecast(4).tolist() == np.maximum(expected, 0).tolist()


def test_trained_it_is_never_refitted(monkeypatch):
    arima = Arima(refit=1)
    arima.fit(SERIES["level"][:250], np.empty(0))
    monkeypatch.setattr(Arima, "_fitted", lambda *_: pytest.fail("refitted"))
    for rate in SERIES["level"][250:]:
        arima.learn(rate)


def test_in_a_running_loop_it_fits_itself_and_again_when_due(monkeypatch):
    fits = []
    monkeypatch.setattr(
        Arima, "_fitted", lambda self, rates: fits.append(len(rates)) or ArimaFilter(Coefficients(delta=(1.0,)))
    )
    arima = Arima(refit=150)
    for number in range(520):
        assert arima.ready == (number >= 200)
        arima.learn(float(number))
    assert fits == [200, 350, 500]
    assert arima.forecast(1).tolist() == pytest.approx([519.0])


def test_what_it_looks_back_is_bounded(monkeypatch):
    monkeypatch.setattr(refitting, "MOST", 250)
    fits = []
    monkeypatch.setattr(
        Arima, "_fitted", lambda self, rates: fits.append(len(rates)) or ArimaFilter(Coefficients(delta=(1.0,)))
    )
    arima = Arima(refit=200)
    for number in range(620):
        arima.learn(float(number))
    assert fits == [200, 250, 250]


def test_missing_rates_do_not_count():
    arima = Arima()
    for rate in [*[5.0] * 150, *[math.nan] * 100]:
        arima.learn(rate)
    with pytest.raises(NotReady, match="forecaster 'arima': needs 200 rates or to be trained; has 150"):
        arima.forecast(1)


@pytest.mark.filterwarnings("error")
def test_a_search_that_fails_leaves_the_last_value(monkeypatch):
    import statsforecast.arima

    def fails(*_, **__):
        raise Exception("no suitable model")

    monkeypatch.setattr(statsforecast.arima, "auto_arima_f", fails)
    assert searched(np.array([1.0, 2.0])) == Coefficients(delta=(1.0,))


def test_a_constant_stays():
    arima = Arima()
    arima.fit(np.full(200, 80.0), np.full(10, 80.0))
    assert arima.forecast(3).tolist() == [80.0] * 3


def test_too_few_rates_to_train():
    with pytest.raises(InputError, match="forecaster 'arima': training needs at least 200 rates; got 3"):
        Arima().fit(np.array([1.0, 2.0, 3.0, np.nan]), np.empty(0))


@pytest.mark.parametrize("option", ["season", "refit"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_options_are_whole(option, value):
    with pytest.raises(InputError, match=f"forecaster 'arima': {option} must be whole and at least 1; got"):
        Arima(**{option: value})
