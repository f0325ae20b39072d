"""Options of forecasters, checked."""

from __future__ import annotations

from penstock import checks
from penstock.errors import InputError


def checked_whole(forecaster: str, option: str, value: object, least: int = 1) -> int:
    """The value, or an InputError where it is no whole number of at least `least`.

    >>> checked_whole("auto", "day", 0)
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster 'auto': day must be whole and at least 1; got 0
    """
    return checks.checked_whole(f"forecaster '{forecaster}'", option, value, least)


def checked_switch(forecaster: str, option: str, value: object) -> bool:
    """The value, or an InputError where it is neither true nor false.

    >>> checked_switch("seasonal_naive", "week", "yes")
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster 'seasonal_naive': week must be true or false; got 'yes'
    """
    return checks.checked_flag(f"forecaster '{forecaster}'", option, value)


def checked_level(forecaster: str, level: object) -> float | None:
    """The level, None for none, or an InputError where it is not between 0 and 1.

    >>> checked_level("auto", 90)
    Traceback (most recent call last):
    penstock.errors.InputError: forecaster 'auto': level must be above 0 and below 1; got 90
    """
    if level is None or (isinstance(level, float) and 0 < level < 1):
        return level
    raise InputError(f"forecaster '{forecaster}': level must be above 0 and below 1; got {level!r}")
