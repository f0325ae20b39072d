import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.forecast.parts.scale import Scale

SERIES = st.lists(st.floats(0, 1e6), min_size=1, max_size=20).map(np.array)


@given(SERIES, st.booleans())
def test_out_is_in_backwards(rates, log):
    scale = Scale.of(rates, log)
    values = scale.inward(rates)
    assert np.isfinite(values).all()
    assert scale.outward(values) == pytest.approx(rates, abs=1e-9 * (1 + rates.max()))


def test_rates_far_from_zero_are_hardly_shifted():
    scale = Scale.of(np.array([90.0, 110.0]), log=True)
    assert np.diff(scale.inward(np.array([50.0, 100.0])))[0] == pytest.approx(np.log(2), rel=0.002)


@pytest.mark.parametrize("log", [True, False])
def test_nothing_goes_below_zero_or_above_the_most(log):
    scale = Scale.of(np.array([10.0, 30.0]), log)
    assert scale.outward(np.array([-1e3, 1e6]), most=80.0).tolist() == pytest.approx([0.0, 80.0])
