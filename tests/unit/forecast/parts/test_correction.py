import math

import numpy as np
import pytest

from penstock.forecast.parts.correction import Correction


def followed(rates, made):
    """Corrected one-step forecasts of all rates but the first."""
    correction, found = Correction(3), []
    for rate in rates:
        correction.learn(rate)
        found.append(correction.corrected(np.full(3, made))[0])
    return np.array(found[:-1])


def test_a_cycle_that_the_model_does_not_know_is_followed():
    rates = 100 + 20 * np.cos(2 * np.pi * np.arange(400) / 3)
    found = followed(rates, 100.0)
    assert np.abs(found[200:] - rates[201:]).mean() < 3


def test_noise_is_hardly_made_worse():
    rates = np.random.default_rng(0).normal(100, 10, 600)
    found = followed(rates, 100.0)
    assert np.abs(found - rates[1:]).mean() < 1.06 * np.abs(100 - rates[1:]).mean()


def test_missing_rates_and_missing_forecasts():
    correction = Correction(3)
    correction.learn(5.0)
    assert np.isnan(correction.corrected(np.full(3, math.nan))).all()
    for rate in (math.nan, 7.0, math.nan, 0.0):
        correction.learn(rate)
        assert (correction.corrected(np.full(3, 1.0)) >= 0).all()


def test_a_right_model_is_left_alone():
    assert followed([50.0] * 20, 50.0).tolist() == pytest.approx([50.0] * 19)
