import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.recurrent.scaling import MinMax


def test_the_training_part_lies_in_0_to_1():
    scale = MinMax.fitted(np.array([30.0, 10.0, np.nan, 50.0]))
    assert (scale.low, scale.high) == (10.0, 50.0)
    assert scale.down(np.array([10.0, 30.0, 50.0, 90.0, 0.0])).tolist() == [0.0, 0.5, 1.0, 2.0, -0.25]


def test_a_constant_is_scaled_to_0_and_back():
    scale = MinMax.fitted(np.full(3, 7.0))
    assert scale.down(np.array([7.0])).tolist() == [0.0]
    assert scale.up(np.array([0.0])).tolist() == [7.0]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
def test_there_and_back(rates):
    values = np.array(rates)
    scale = MinMax.fitted(values)
    assert scale.up(scale.down(values)) == pytest.approx(values, abs=1e-6 * (1 + values.max()))
