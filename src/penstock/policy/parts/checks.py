"""Checks of what a policy is made with; a message names the policy, the rule and the value."""

from __future__ import annotations

import math

from penstock import checks
from penstock.errors import InputError


def flag(policy: str, name: str, value: object) -> bool:
    """The value, or an InputError where it is neither true nor false.

    >>> flag("psps", "use_forecast", "yes")
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'psps': use_forecast must be true or false; got 'yes'
    """
    return checks.checked_flag(f"policy '{policy}'", name, value)


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


def whole(policy: str, name: str, value: object, least: int) -> int:
    """The value, or an InputError where it is no whole number of at least `least`.

    >>> whole("autoscale_plus", "iteration", 1, least=2)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'autoscale_plus': iteration must be whole and at least 2; got 1
    """
    return checks.checked_whole(f"policy '{policy}'", name, value, least)


def share(policy: str, name: str, value: object) -> float:
    """The value, or an InputError where it is not above 0 and at most 1.

    >>> share("incremental", "high", 80)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'incremental': high must be above 0 and at most 1; got 80
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InputError(f"policy '{policy}': {name} must be above 0 and at most 1; got {value!r}")
    return float(value)


def thresholds(policy: str, low: object, high: object) -> tuple[float, float]:
    """Both values, or an InputError unless 0 < low < high ≤ 1.

    >>> thresholds("incremental", 0.8, 0.3)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'incremental': low must be below high; got low 0.8 and high 0.3
    """
    below, above = share(policy, "low", low), share(policy, "high", high)
    if not below < above:
        raise InputError(f"policy '{policy}': low must be below high; got low {low} and high {high}")
    return below, above


def choice(policy: str, name: str, value: object, known: tuple[str, ...]) -> str:
    """The value, or an InputError where it is none of the known ones.

    >>> choice("autoscale_plus", "combine", "mean", ("max", "min"))
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'autoscale_plus': combine must be one of max, min; got 'mean'
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"policy '{policy}': {name} must be one of {', '.join(known)}; got {value!r}")
    return value


def _number(value: object) -> float:
    """A finite number as it is, anything else as NaN, which passes no check."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else math.nan  # type: ignore[arg-type]
