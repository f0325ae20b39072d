from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.policy.parts.checks import choice, flag, not_negative, positive, share, thresholds, whole


def test_what_is_right_comes_back():
    assert whole("p", "n", 3, least=3) == 3
    assert (share("p", "n", 1), share("p", "n", 0.01)) == (1.0, 0.01)
    assert thresholds("p", 0.3, 0.8) == (0.3, 0.8)
    assert choice("p", "n", "b", ("a", "b")) == "b"


@pytest.mark.parametrize("value", [2, 3.0, "3", True, None, math.nan])
def test_a_whole_number_of_at_least(value):
    with pytest.raises(InputError, match="policy 'p': n must be whole and at least 3; got"):
        whole("p", "n", value, least=3)


@pytest.mark.parametrize("value", [0, -0.1, 1.01, math.nan, math.inf, "1", True, None])
def test_a_share(value):
    with pytest.raises(InputError, match="policy 'p': n must be above 0 and at most 1; got"):
        share("p", "n", value)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.6, 0.5)])
def test_thresholds_in_order(low, high):
    with pytest.raises(InputError, match=f"policy 'p': low must be below high; got low {low} and high {high}"):
        thresholds("p", low, high)


@pytest.mark.parametrize("value", ["c", "", None, ["a"]])
def test_one_of_the_choices(value):
    with pytest.raises(InputError, match="policy 'p': n must be one of a, b; got"):
        choice("p", "n", value, ("a", "b"))


NO_NUMBERS = ["5", None, True, math.nan, math.inf, -1]


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0])
def test_positive(value):
    with pytest.raises(InputError, match=r"^policy 'p': length_s must be a number above 0; got "):
        positive("p", "length_s", value)
    assert positive("p", "length_s", 0.5) == 0.5


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_not_negative(value):
    with pytest.raises(InputError, match=r"^policy 'p': wait_s must be a number of at least 0; got "):
        not_negative("p", "wait_s", value)
    assert not_negative("p", "wait_s", 0) == 0


@pytest.mark.parametrize("value", [1, "true", None])
def test_flag(value):
    with pytest.raises(InputError, match=r"^policy 'p': careful must be true or false; got "):
        flag("p", "careful", value)
    assert flag("p", "careful", False) is False
