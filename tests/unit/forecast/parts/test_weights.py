import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.weights import Weights

NAN = float("nan")


def learnt(said, rates):
    weights = Weights(len(said[0]), 1)
    for members, rate in zip(said, rates, strict=True):
        weights.learn(np.array(members)[:, None], rate)
    return weights


def test_equal_errors_count_alike():
    assert learnt([[90, 110]] * 3, [100] * 3).mixed(np.array([[10.0], [30.0]])).tolist() == [20.0]


def test_twice_the_error_counts_for_next_to_nothing():
    assert learnt([[110, 80]] * 3, [100] * 3).mixed(np.array([[10.0], [1000.0]])) == pytest.approx([10.0], rel=0.02)


def test_nobody_is_known_yet():
    assert Weights(2, 1).mixed(np.array([[10.0], [30.0]])).tolist() == [20.0]
    assert Weights(2, 1).mixed(np.array([[10.0], [NAN]])).tolist() == [10.0]


def test_a_newcomer_waits_for_five_trials():
    said = [[90, NAN]] * 20 + [[90, 100]] * 4
    made = np.array([[10.0], [30.0]])
    assert learnt(said, [100] * 24).mixed(made).tolist() == [10.0]
    assert learnt([*said, [90, 100], [90, 100]], [100] * 26).mixed(made)[0] > 25


def test_what_was_long_ago_is_forgotten():
    weights = learnt([[100, 150]] * 400 + [[150, 100]] * 300, [100] * 700)
    assert weights.mixed(np.array([[0.0], [1.0]]))[0] > 0.9


@given(
    st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=1, max_size=20),
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3),
)
def test_the_mean_is_never_outside_its_members(said, made):
    found = learnt(said, [500.0] * len(said)).mixed(np.array(made)[:, None])[0]
    assert min(made) * (1 - 1e-9) - 1e-9 <= found <= max(made) * (1 + 1e-9) + 1e-9
