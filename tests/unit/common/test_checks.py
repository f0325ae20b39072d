from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.common.checks import at_least, choice, flag, is_whole, positive, share, whole
from penstock.errors import InputError


def test_what_is_right_comes_back():
    assert whole("policy 'p'", "n", 3, least=3) == 3
    assert (share("policy 'p'", "n", 1), share("policy 'p'", "n", 0.01)) == (1.0, 0.01)
    assert choice("policy 'p'", "n", "b", ("a", "b")) == "b"


@pytest.mark.parametrize("value", [2, 3.0, "3", True, None, math.nan])
def test_a_whole_number_of_at_least(value):
    with pytest.raises(InputError, match="policy 'p': n must be whole and at least 3; got"):
        whole("policy 'p'", "n", value, least=3)


@pytest.mark.parametrize("value", [np.int64(3), np.int32(3)])
def test_a_whole_number_of_numpy_is_one(value):
    assert is_whole(value, 3)
    assert type(whole("planner", "start", value)) is int
    with pytest.raises(InputError, match=r"^planner: start must be whole and at least 4; got 3$"):
        whole("planner", "start", value, least=4)


@pytest.mark.parametrize("value", [0, -0.1, 1.01, math.nan, math.inf, "1", True, None])
def test_a_share(value):
    with pytest.raises(InputError, match="policy 'p': n must be above 0 and at most 1; got"):
        share("policy 'p'", "n", value)


@pytest.mark.parametrize("value", ["c", "", None, ["a"]])
def test_one_of_the_choices(value):
    with pytest.raises(InputError, match="policy 'p': n must be one of a, b; got"):
        choice("policy 'p'", "n", value, ("a", "b"))


NO_NUMBERS = ["5", None, True, math.nan, math.inf, -1]


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0])
def test_positive(value):
    with pytest.raises(InputError, match=r"^policy 'p': length_s must be a number above 0; got "):
        positive("policy 'p'", "length_s", value)
    assert positive("policy 'p'", "length_s", 0.5) == 0.5


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_at_least(value):
    with pytest.raises(InputError, match=r"^policy 'p': wait_s must be a number of at least 0; got "):
        at_least("policy 'p'", "wait_s", value)
    assert at_least("policy 'p'", "wait_s", 0) == 0


@pytest.mark.parametrize("value", [1, "true", None])
def test_flag(value):
    with pytest.raises(InputError, match=r"^policy 'p': careful must be true or false; got "):
        flag("policy 'p'", "careful", value)
    assert flag("policy 'p'", "careful", False) is False
