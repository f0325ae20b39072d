from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.policy.options import flag, not_negative, positive

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
