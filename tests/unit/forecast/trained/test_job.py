"""Training one model of one series, without Spark."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.forecast.base import NotReady
from penstock.forecast.evaluation.series import Split
from penstock.forecast.registry import FORECASTERS
from penstock.forecast.trained.job import History, Job, trained_model


class Fake:
    """Trained off line: forecasts the mean of what it was fitted to, and remembers how it was used."""

    def __init__(self, day: int = 288) -> None:
        self.day, self.fits, self.learnt, self.mean = day, [], 0, None

    @property
    def ready(self) -> bool:
        return self.mean is not None

    def fit(self, rates, validation) -> None:
        self.fits.append((len(rates), len(validation)))
        self.mean = float(np.mean(rates))

    def learn(self, rate: float) -> None:
        self.learnt += 1

    def forecast(self, horizon: int):
        return np.full(horizon, self.mean)


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setitem(FORECASTERS._makers, "fake", (Fake, None))


def job(rates, spec="last_value", **options):
    history = History(series="s", rates=np.array(rates, dtype=float), interval_s=300.0, day=288)
    return Job(history=history, spec=spec, **options)


def test_the_last_fifth_measures():
    assert job(range(100)).split == Split(64, 16, 20)
    assert trained_model(job([5.0] * 80 + [6.0] + [5.0] * 19)).errors["mae"] == 2 / 20


def test_the_errors_are_those_of_the_horizon():
    for horizon in (1, 3):
        assert trained_model(job(range(100), horizon=horizon)).errors["mae"] == horizon


def test_the_model_that_is_kept_has_learnt_everything():
    model = pickle.loads(trained_model(job(range(100), "drift")).pickled)
    assert model.forecast(2).tolist() == [100.0, 101.0]


def test_one_trained_off_line_is_measured_on_rows_that_it_was_not_fitted_to_and_then_fitted_to_all():
    fitted = trained_model(job([10.0] * 80 + [30.0] * 20, "fake"))
    assert fitted.errors["mae"] == 20.0
    model = pickle.loads(fitted.pickled)
    assert model.fits == [(80, 20)]
    assert model.learnt == 0
    assert model.day == 288  # as the series has it


def test_missing_rates_do_not_count():
    fitted = trained_model(job([5.0] * 90 + [np.nan] * 5 + [5.0] * 5, "fake"))
    assert fitted.errors == {"smape": 0.0, "rmse": 0.0, "mae": 0.0}


def test_errors_that_are_not_known_are_left_out():
    fitted = trained_model(job([5.0] * 80 + [np.nan] * 20, "fake"))
    assert fitted.errors == {}


def test_a_series_that_is_too_short():
    with pytest.raises(NotReady, match="forecaster 'drift': needs 2 rates"):
        trained_model(job([1.0, 2.0], "drift"))
    with pytest.raises(InputError, match="series 's': must be long enough to train on; got 1 rows"):
        trained_model(job([1.0]))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, float("nan")])
def test_a_share_is_a_part_and_not_all(share):
    with pytest.raises(InputError, match="the share of validation must be between 0 and 1; got"):
        job([1.0, 2.0], validation=share)


def test_the_header_says_where_it_comes_from():
    history = History(series="s", rates=np.ones(7), interval_s=5.0, day=17280, run="r", interval=9)
    header = Job(history=history, spec="drift").header({"mae": 1.0}, "2026-01-01")
    assert (header.series, header.spec, header.rows, header.day, header.run, header.interval) == (
        *("s", "drift", 7, 17280, "r", 9),
    )
