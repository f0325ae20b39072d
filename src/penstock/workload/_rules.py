"""The rules that parameters of this package obey; a broken one is an InputError with thing, rule and value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.common.checks import at_least, positive, shown, whole
from penstock.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_STEPS = 100_000_000  # 800 MB of rates: more is a slip of units, not a trace


def generator(thing: str, seed: object) -> np.random.Generator:
    """Random numbers that depend on the thing's name and the seed only."""
    return np.random.default_rng([whole(thing, "seed", seed, least=0), *thing.encode()])


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
