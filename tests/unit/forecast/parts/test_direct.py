import numpy as np

from penstock.forecast.parts.direct import LEAST, Direct, Model, further
from penstock.forecast.parts.features import Features
from penstock.forecast.parts.past import Past

MODEL = Model(Features(3))


def windows(rates):
    past = Past(200)
    for rate in rates:
        past.add(float(rate))
        yield past.window


def test_it_fits_often_at_first_and_then_as_its_day_says():
    direct, fits, before = Direct(MODEL, day=80), [], None
    for window in windows(np.random.default_rng(0).uniform(50, 150, 300)):
        direct.learn(window)
        if direct._fit is not before:
            fits.append(window.count)
            before = direct._fit
    assert fits[0] == LEAST
    assert [fit for fit in fits if fit > 200] == [220, 240, 260, 280, 300]
    assert len(fits) < 20


def test_two_take_turns():
    one, two = Direct(MODEL, day=80), Direct(MODEL, day=80, turn=1)
    for window in windows(np.random.default_rng(0).uniform(50, 150, 299)):
        one.learn(window)
        two.learn(window)
    assert (one._fitted_at, two._fitted_at) == (280, 299)


def test_before_its_first_fit_it_expects_nothing():
    for window in windows([1.0, 2.0]):
        assert np.isnan(Direct(MODEL, day=80).expected(window)).all()


def test_no_forecast_goes_far_beyond_what_was():
    direct = Direct(MODEL, day=12)
    for window in windows(1.5 ** np.arange(60)):
        direct.learn(window)
        assert not direct.expected(window).max() > 4 * window.rates.max()


def test_going_further_takes_what_is_expected_for_what_came():
    def doubled(window):
        return window.rates[-2:] * 2

    (window,) = windows([1.0])
    assert further(doubled, window, np.array([2.0, 3.0]), 7).tolist() == [2, 3, 4, 6, 8, 12, 16]
