"""Checks of what a policy is made with; a message names the policy, the rule and the value."""

from __future__ import annotations

import math

from penstock.errors import InputError


def flag(policy: str, name: str, value: object) -> bool:
    """The value, or an InputError where it is neither true nor false.

    >>> flag("psps", "use_forecast", "yes")
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'psps': use_forecast must be true or false; got 'yes'
    """
    if not isinstance(value, bool):
        raise InputError(f"policy '{policy}': {name} must be true or false; got {value!r}")
    return value


def positive(policy: str, name: str, value: object) -> float:
    """The value as a number, or an InputError where it is none or not above 0.

    >>> positive("keda", "seconds", 0)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'keda': seconds must be a number above 0; got 0
    """
    number = _number(value)
    if not number > 0:
        raise InputError(f"policy '{policy}': {name} must be a number above 0; got {value!r}")
    return number


def not_negative(policy: str, name: str, value: object) -> float:
    """The value as a number, or an InputError where it is none or below 0.

    >>> not_negative("keda", "cooldown_s", 300)
    300.0
    """
    number = _number(value)
    if not number >= 0:
        raise InputError(f"policy '{policy}': {name} must be a number of at least 0; got {value!r}")
    return number


def _number(value: object) -> float:
    """A finite number as it is, anything else as NaN, which passes no check."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else math.nan  # type: ignore[arg-type]
