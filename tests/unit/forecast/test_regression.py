"""The three fits, worked out by hand, and the choice between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.regression import (
    HIGHEST_RATE,
    Fit,
    Regression,
    best_fit,
    exponential_fit,
    linear_fit,
    logarithmic_fit,
)

E = math.e
times = st.lists(st.integers(1, 60), min_size=2, max_size=12, unique=True).map(sorted)


@st.composite
def points(draw, least=0.0):
    when = draw(times)
    return when, draw(st.lists(st.floats(least, 1e6), min_size=len(when), max_size=len(when)))


def test_a_line_by_hand():
    """x̄ = 2, ȳ = 5; b = ((−1)(−3) + 0 + (1)(4)) / 2 = 3.5; a = 5 − 7 = −2; ŷ = 1.5, 5, 8.5; Σ = .25 + 1 + .25."""
    assert linear_fit([1, 2, 3], [2, 4, 9]) == Fit("linear", -2.0, 3.5, 1.5)


def test_a_logarithm_by_hand():
    """Times 1, e, e² have ln x = 0, 1, 2, so that the line above comes back with a = 1.5."""
    fit = logarithmic_fit([1, E, E**2], [2, 4, 9])
    assert (fit.form, fit.a, fit.b, fit.error) == ("logarithmic", *map(pytest.approx, (1.5, 3.5, 1.5)))
    assert fit.rates([E**3]).tolist() == pytest.approx([12.0])


def test_an_exponential_by_hand():
    """ln y of 1, 4, 4: 0, 2l, 2l with l = ln 2; b = 2l / 2 = l; a = e^(4l/3 − 2l) = 2^(−2/3) ≈ 0.63.

    ŷ = 2^(1/3), 2^(4/3), 2^(7/3) ≈ 1.25992, 2.51984, 5.03968; Σ = 0.06756 + 2.19087 + 1.08094 = 3.33937.
    """
    fit = exponential_fit([1, 2, 3], [1, 4, 4])
    assert (fit.a, fit.b) == pytest.approx((2 ** (-2 / 3), math.log(2)))
    assert fit.error == pytest.approx(3.33937, abs=1e-5)
    assert fit.rates([4]).tolist() == pytest.approx([2 ** (10 / 3)])


@pytest.mark.parametrize(
    ("rates", "form", "following"),
    [
        ([10, 20, 30, 40], "linear", 50),
        ([10 + 5 * math.log(x) for x in range(1, 5)], "logarithmic", 10 + 5 * math.log(5)),
        ([3, 6, 12, 24], "exponential", 48),
    ],
)
def test_each_form_is_found_again(rates, form, following):
    fit = best_fit([1, 2, 3, 4], rates)
    assert fit.form == form
    assert fit.rates([5]).tolist() == pytest.approx([following])


def test_the_choice_is_by_the_error_on_the_rates_not_on_their_logarithms():
    """Rates 1, 100, 100, 100: in logarithms an exponential misses little, on the rates the logarithm misses least."""
    fits = [form([1, 2, 3, 4], [1, 100, 100, 100]) for form in (linear_fit, logarithmic_fit, exponential_fit)]
    assert best_fit([1, 2, 3, 4], [1, 100, 100, 100]) == min(fits, key=lambda fit: fit.error)
    assert fits[1].error < fits[0].error < fits[2].error


def test_two_points_make_a_line_and_one_stays_level():
    assert best_fit([1, 2], [4, 16]).form == "linear"
    assert best_fit([3], [7]) == Fit("linear", 7.0, 0.0, 0.0)


def test_points_of_the_same_time_stay_level():
    assert best_fit([2, 2], [4, 8]) == Fit("linear", 6.0, 0.0, 8.0)


def test_a_constant_series_is_a_level_line_without_error():
    assert best_fit([1, 2, 3], [0.1, 0.1, 0.1]) == Fit("linear", pytest.approx(0.1), 0.0, 0.0)


def test_zeros_leave_out_the_exponential_only():
    assert exponential_fit([1, 2, 3], [0, 2, 4]) is None
    assert best_fit([1, 2, 3], [0, 2, 4]).form == "linear"
    assert best_fit([1, 2, 3], [0, 0, 0]).rates([4, 9]).tolist() == [0.0, 0.0]


def test_times_that_have_no_logarithm_leave_out_the_logarithmic_only():
    assert logarithmic_fit([0, 1, 2], [1, 2, 4]) is None
    assert best_fit([0, 1, 2], [1, 2, 4]).form == "exponential"


def test_a_steep_exponential_ends_at_the_highest_rate():
    fit = exponential_fit([1, 2, 3], [1.0, 1e5, 1e10])
    assert fit.rates([4, 400, 4000]).tolist() == pytest.approx([HIGHEST_RATE] * 3)


def test_an_exponential_too_steep_for_numbers_is_left_out():
    """ln y = −744.4 and 13.8 give b = 758.3 and ln a = −744.4 − 10 · 758.3: no float is that small."""
    assert exponential_fit([10, 11], [5e-324, 1e6]) is None
    assert best_fit([10, 11], [5e-324, 1e6]).form == "linear"


def test_a_fall_ends_at_zero():
    assert best_fit([1, 2, 3], [30, 20, 10]).rates([4, 5]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("when", "rates"), [([], []), ([1, 2], [1])])
def test_a_fit_needs_points(when, rates):
    with pytest.raises(InputError, match=f"regression: needs points.*; got {len(when)} and {len(rates)}"):
        best_fit(when, rates)


@given(points(), st.integers(1, 60))
def test_whatever_the_points_the_rates_are_numbers_from_zero_to_the_highest(some, ahead):
    rates = best_fit(*some).rates(range(61, 61 + ahead))
    assert np.isfinite(rates).all()
    assert ((rates >= 0) & (rates <= HIGHEST_RATE)).all()


@given(points(1.0))
@example(([53, 54], [1.0, 544459.0]))
def test_the_best_is_no_worse_than_each(some):
    """An exponential that is too steep for numbers is none, which the test once took for one."""
    best = best_fit(*some)
    fits = [form(*some) for form in (linear_fit, logarithmic_fit, exponential_fit)]
    assert all(best.error <= fit.error for fit in fits if fit is not None)


@given(points(1e3), st.floats(-5, 5), st.floats(-5, 5))
def test_no_other_line_has_less_error(some, up, steeper):
    """Held where the line stays above 0 at its points: only there nothing is cut off."""
    when, rates = some
    fit = linear_fit(when, rates)
    x, y = np.array(when), np.array(rates)
    if (fit.a + fit.b * x >= 0).all():
        other = float(((y - (fit.a + up) - (fit.b + steeper) * x) ** 2).sum())
        assert fit.error <= other * (1 + 1e-9) + 1e-3


def test_the_forecaster_sees_its_window_only():
    forecaster = Regression(3)
    for rate in (9000.0, 10.0, 20.0, 30.0):
        forecaster.learn(rate)
    assert forecaster.forecast(2).tolist() == pytest.approx([40.0, 50.0])


def test_a_curve_needs_two_points():
    with pytest.raises(InputError, match="forecaster 'regression': window must be whole and at least 2; got 1"):
        Regression(1)


def test_missing_rates_leave_their_places_empty():
    forecaster = Regression(window=5)
    for rate in (10.0, float("nan"), 30.0, 40.0, float("nan")):
        forecaster.learn(rate)
    assert forecaster.forecast(2).tolist() == pytest.approx([60.0, 70.0])
