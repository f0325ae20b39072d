import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.windows import filled, padded, windows


def test_every_window_and_what_came_after_it():
    seen, after = windows(np.arange(6.0), window=3, horizon=2)
    assert seen.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert after.tolist() == [[3, 4], [4, 5]]


def test_nothing_is_learnt_from_a_guess():
    rates = np.array([np.nan, 1.0, np.nan, 3.0, 4.0, np.nan, 6.0, 7.0])
    seen, after = windows(rates, window=2, horizon=1)
    assert after.ravel().tolist() == [3.0, 4.0, 6.0, 7.0]
    assert seen.tolist() == [[1.0, 1.0], [1.0, 3.0], [4.0, 4.0], [4.0, 6.0]]


def test_too_short_or_empty_gives_no_windows():
    for rates in (np.arange(4.0), np.full(50, np.nan), np.empty(0)):
        seen, after = windows(rates, window=3, horizon=2)
        assert (seen.shape, after.shape) == ((0, 3), (0, 2))


def test_a_short_window_is_padded_with_its_first_rate():
    assert padded([2.0, 3.0], 4).tolist() == [2.0, 2.0, 2.0, 3.0]
    assert padded([2.0, 3.0], 2).tolist() == [2.0, 3.0]


@given(st.lists(st.one_of(st.floats(0, 1e6), st.just(float("nan"))), min_size=1, max_size=30))
def test_filling_changes_no_known_rate(rates):
    given_rates = np.array(rates)
    if not np.isnan(given_rates).all():
        found, known = filled(given_rates), ~np.isnan(given_rates)
        assert np.isfinite(found).all()
        assert found[known].tolist() == given_rates[known].tolist()
