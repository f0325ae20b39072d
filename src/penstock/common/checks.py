"""Checks of values that a user gives; a message names the thing, the rule and the value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from penstock.errors import InputError


def is_whole(value: object, least: int, most: float = math.inf) -> TypeGuard[int]:
    """Whether it is a whole number, not a truth value, from `least` to `most`.

    >>> is_whole(3, 1), is_whole(3.0, 1), is_whole(True, 1), is_whole(9, 1, 8)
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and least <= int(value) <= most


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number, not a truth value.

    >>> is_number(3), is_number(math.nan), is_number("3"), is_number(True)
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def whole(thing: str, name: str, value: object, least: int = 1) -> int:
    """The value, or an InputError where it is no whole number of at least `least`.

    >>> whole("policy 'autoscale_plus'", "iteration", 1, least=2)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'autoscale_plus': iteration must be whole and at least 2; got 1
    """
    if not is_whole(value, least):
        raise InputError(f"{thing}: {name} must be whole and at least {least}; got {shown(value)}")
    return int(value)


def flag(thing: str, name: str, value: object) -> bool:
    """The value, or an InputError where it is neither true nor false.

    >>> flag("policy 'psps'", "use_forecast", "yes")
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'psps': use_forecast must be true or false; got 'yes'
    """
    if not isinstance(value, bool):
        raise InputError(f"{thing}: {name} must be true or false; got {value!r}")
    return value


def positive(thing: str, name: str, value: object) -> float:
    """The value as a float, or an InputError where it is no number above 0.

    >>> positive("policy 'keda'", "seconds", 0)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'keda': seconds must be a number above 0; got 0
    """
    if not is_number(value) or value <= 0:
        raise InputError(f"{thing}: {name} must be a number above 0; got {shown(value)}")
    return float(value)


def at_least(thing: str, name: str, value: object, least: float = 0.0) -> float:
    """The value as a float, or an InputError where it is no number of at least `least`.

    >>> at_least("policy 'keda'", "cooldown_s", 300)
    300.0
    """
    if not is_number(value) or value < least:
        raise InputError(f"{thing}: {name} must be a number of at least {least:g}; got {shown(value)}")
    return float(value)


def share(thing: str, name: str, value: object) -> float:
    """The value as a float, or an InputError where it is not above 0 and at most 1.

    >>> share("policy 'incremental'", "high", 80)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'incremental': high must be above 0 and at most 1; got 80
    """
    if not is_number(value) or not 0 < value <= 1:
        raise InputError(f"{thing}: {name} must be above 0 and at most 1; got {shown(value)}")
    return float(value)


def fraction(thing: str, name: str, value: object) -> float:
    """The value as a float, or an InputError where it is not from 0 to 1.

    >>> fraction("progressive", "plateau", 0)
    0.0
    """
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{thing}: {name} must be from 0 to 1; got {shown(value)}")
    return float(value)


def choice(thing: str, name: str, value: object, known: Sequence[str]) -> str:
    """The value, or an InputError where it is none of the known ones.

    >>> choice("policy 'autoscale_plus'", "combine", "mean", ("max", "min"))
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'autoscale_plus': combine must be one of max, min; got 'mean'
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{thing}: {name} must be one of {', '.join(known)}; got {value!r}")
    return value


def shown(value: object) -> str:
    """The value as a message shows it: numpy's scalars as plain numbers."""
    return repr(value.item() if isinstance(value, np.generic) else value)
