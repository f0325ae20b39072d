import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.past import Past, rows_kept


@given(st.lists(st.floats(0, 1e9), max_size=60), st.integers(1, 9))
def test_the_window_holds_the_last_rates_whatever_came_before(rates, most):
    past = Past(most)
    for number, rate in enumerate(rates):
        past.add(rate, known=number % 3 > 0)
    window = past.window
    assert window.rates.tolist() == rates[-most:]
    assert window.known.tolist() == [number % 3 > 0 for number in range(len(rates))][-most:]
    assert (window.count, len(past)) == (len(rates), len(window))


def test_a_window_goes_on_with_guesses():
    past = Past(3)
    past.add(1.0)
    longer = past.window.extended(np.array([2.0, 3.0]))
    assert longer.rates.tolist() == [1.0, 2.0, 3.0]
    assert longer.known.tolist() == [True, False, False]
    assert past.window.rates.tolist() == [1.0]


def test_what_is_kept_is_bounded():
    assert max(map(rows_kept, (1, 24, 288, 1440, 17_280, 86_400, 10**6))) <= 60_000
