"""Checks of options that are given by name; a message names the thing, the rule and the value."""

from __future__ import annotations

from penstock.errors import InputError


def checked_flag(thing: str, option: str, value: object) -> bool:
    """The value, or an InputError where it is neither true nor false."""
    if not isinstance(value, bool):
        raise InputError(f"{thing}: {option} must be true or false; got {value!r}")
    return value


def checked_whole(thing: str, option: str, value: object, least: int) -> int:
    """The value, or an InputError where it is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{thing}: {option} must be whole and at least {least}; got {value!r}")
    return value
