"""The rules that parameters of this package obey; a broken one is an InputError with thing, rule and value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_STEPS = 100_000_000  # 800 MB of rates: more is a slip of units, not a trace


def shown(value: object) -> str:
    """The value as an error message shows it: numpy's scalars as plain numbers."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def number(thing: str, name: str, value: object) -> float:
    """The value as a float, if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InputError(f"{thing}: {name} must be a finite number; got {shown(value)}")
    return float(value)


def positive(thing: str, name: str, value: object) -> float:
    """The value as a float, if it is a finite number above 0."""
    checked = number(thing, name, value)
    if checked <= 0:
        raise InputError(f"{thing}: {name} must be positive; got {shown(value)}")
    return checked


def at_least(thing: str, name: str, value: object, least: float = 0.0) -> float:
    """The value as a float, if it is a finite number from `least` up."""
    checked = number(thing, name, value)
    if checked < least:
        rule = "not be negative" if least == 0 else f"be at least {least:g}"
        raise InputError(f"{thing}: {name} must {rule}; got {shown(value)}")
    return checked


def share(thing: str, name: str, value: object) -> float:
    """The value as a float, if it lies in 0..1."""
    checked = number(thing, name, value)
    if not 0 <= checked <= 1:
        raise InputError(f"{thing}: {name} must lie in 0..1; got {shown(value)}")
    return checked


def whole(thing: str, name: str, value: object, least: int = 0) -> int:
    """The value as an int, if it is a whole number from `least` up."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(f"{thing}: {name} must be a whole number of at least {least}; got {shown(value)}")
    return int(value)


def generator(thing: str, seed: object) -> np.random.Generator:
    """Random numbers that depend on the thing's name and the seed only."""
    return np.random.default_rng([whole(thing, "seed", seed), *thing.encode()])


def low_high(thing: str, low: object, high: object) -> tuple[float, float]:
    """Two rates, 0 <= low <= high and high above 0."""
    least, most = at_least(thing, "low", low), positive(thing, "high", high)
    if least > most:
        raise InputError(f"{thing}: low must not exceed high; got low {shown(low)} and high {shown(high)}")
    return least, most


def step_ratio(thing: str, duration_s: object, step_s: object) -> float:
    """How many times the step goes into the duration, if a trace of that many steps can be held."""
    ratio = positive(thing, "duration_s", duration_s) / positive(thing, "step_s", step_s)
    if ratio > MAX_STEPS:
        raise InputError(f"{thing}: duration_s must be at most {MAX_STEPS} steps; got {ratio:.3g}")
    return ratio


def steps_in(thing: str, duration_s: object, step_s: object) -> int:
    """How many steps of about `step_s` make up the duration: at least 1."""
    return max(1, round(step_ratio(thing, duration_s, step_s)))


def one_of(thing: str, value: object, known: Sequence[str]) -> str:
    """The value, if it is one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{thing} must be one of {', '.join(known)}; got {shown(value)}")
    return value
