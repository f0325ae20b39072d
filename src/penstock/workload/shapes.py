"""Made traces: the shapes that the papers describe, same seed same trace.

A step's rate is the shape's value in the middle of the step. Noise multiplies it by 1 + noise · ε, ε normal, but
not below 0. The step is fitted so that a whole number of steps fills the duration.
"""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np

from penstock.common.checks import at_least, fraction, positive, whole
from penstock.errors import InputError
from penstock.workload._rules import FloatArray, generator, low_high, steps_in
from penstock.workload.trace import Trace


def ramp(*, low: float, high: float, duration_s: float, step_s: float = 1.0) -> Trace:
    """Straight up from low to high in the first half, and straight down again (the word count of E2DF, 5 to 550).

    >>> ramp(low=5, high=545, duration_s=6).rates.round(6).tolist()
    [95.0, 275.0, 455.0, 455.0, 275.0, 95.0]
    """
    least, most = low_high("ramp", low, high)
    at = middles("ramp", duration_s, step_s)
    return Trace("ramp", duration_s / len(at), np.interp(at, [0.0, 0.5, 1.0], [least, most, least]))


def progressive(
    *,
    low: float,
    high: float,
    duration_s: float,
    step_s: float = 1.0,
    plateau: float = 1 / 3,
    noise: float = 0.0,
    seed: int = 0,
) -> Trace:
    """A slow rise, a plateau for the given share of the time, a slow fall (dabs).

    >>> progressive(low=0, high=12, duration_s=6).rates.round(6).tolist()
    [3.0, 9.0, 12.0, 12.0, 9.0, 3.0]
    """
    least, most = low_high("progressive", low, high)
    at = middles("progressive", duration_s, step_s)
    bend = (1 - fraction("progressive", "plateau", plateau)) / 2
    rates = np.interp(at, [0.0, bend, 1 - bend, 1.0], [least, most, most, least])
    return _noisy("progressive", duration_s, rates, noise, generator("progressive", seed))


def erratic(
    *,
    low: float,
    high: float,
    duration_s: float,
    step_s: float = 1.0,
    peaks: int = 6,
    noise: float = 0.05,
    seed: int = 0,
) -> Trace:
    """Sudden peaks on a base of `low` (dabs): each in its own slot of the time, from one step to the next.

    A peak lasts 5 to 40 % of its slot and rises 40 to 100 % of the way to `high`; the greatest reaches it.
    """
    least, most = low_high("erratic", low, high)
    at, random = middles("erratic", duration_s, step_s), generator("erratic", seed)
    heights = tallest_one(random, whole("erratic", "peaks", peaks, least=1))
    lengths = random.uniform(0.05, 0.4, peaks)
    starts = random.uniform(0.0, 1.0 - lengths)
    slot = np.minimum((at * peaks).astype(int), peaks - 1)
    inside = (at * peaks - slot >= starts[slot]) & (at * peaks - slot < starts[slot] + lengths[slot])
    return _noisy("erratic", duration_s, np.where(inside, least + (most - least) * heights[slot], least), noise, random)


def periodic(
    *,
    low: float,
    high: float,
    duration_s: float,
    step_s: float = 1.0,
    periods: float = 4.0,
    noise: float = 0.05,
    seed: int = 0,
) -> Trace:
    """Days and nights: a season from low to high with a quick morning and a slow evening, plus noise.

    With φ = 2π · periods · t / duration_s, the season is s(φ) = −cos φ − 0.25 · sin 2φ, scaled to low..high.
    """
    least, most = low_high("periodic", low, high)
    cycles = positive("periodic", "periods", periods)
    at = middles("periodic", duration_s, step_s)
    turn = np.linspace(0.0, 2 * math.pi, 1000)
    bounds = _season(turn).min(), _season(turn).max()
    rates = np.interp(_season(2 * math.pi * cycles * at), bounds, [least, most])
    return _noisy("periodic", duration_s, rates, noise, generator("periodic", seed))


def stable(
    *,
    mean: float,
    duration_s: float,
    step_s: float = 1.0,
    noise: float = 0.05,
    bursts: int = 0,
    burst_factor: float = 3.0,
    seed: int = 0,
) -> Trace:
    """A flat rate with a little noise; the mean is exact.

    If asked for, `bursts` single steps have `burst_factor` times the rate of the others.
    """
    level = positive("stable", "mean", mean)
    factor = at_least("stable", "burst_factor", burst_factor, least=1.0)
    random = generator("stable", seed)
    rates = np.ones(len(middles("stable", duration_s, step_s)))
    count = whole("stable", "bursts", bursts, least=0)
    if count > len(rates):
        raise InputError(f"stable: bursts must be at most the {len(rates)} steps; got {count}")
    rates[random.choice(len(rates), count, replace=False)] = factor
    return _noisy("stable", duration_s, rates, noise, random).scaled(mean_rate=level)


def fluctuating(
    *,
    mean: float,
    duration_s: float,
    step_s: float = 1.0,
    spread: float = 0.8,
    memory_s: float | None = None,
    seed: int = 0,
) -> Trace:
    """A rate that wanders and jumps: a heavy-tailed autoregressive process in the exponent; the mean is exact.

    rate = c · e^(spread · x), x_t = φ · x_{t−1} + √(1 − φ²) · ε_t, φ = e^(−step_s / memory_s), ε Student's t of 4
    degrees over its deviation √2, x kept within ±4. Without `memory_s` the memory is a sixtieth of the duration.
    """
    level, width = positive("fluctuating", "mean", mean), at_least("fluctuating", "spread", spread)
    steps = steps_in("fluctuating", duration_s, step_s)
    memory = positive("fluctuating", "memory_s", duration_s / 60 if memory_s is None else memory_s)
    phi = math.exp(-duration_s / steps / memory)
    pushes = math.sqrt(1 - phi * phi) * generator("fluctuating", seed).standard_t(4, steps) / math.sqrt(2)
    walk = accumulate(pushes.tolist(), lambda x, push: max(-4.0, min(4.0, phi * x + push)))
    rates = np.exp(width * (np.fromiter(walk, dtype=np.float64, count=steps) - 4.0))
    return Trace("fluctuating", duration_s / steps, rates).scaled(mean_rate=level)


def middles(thing: str, duration_s: float, step_s: float) -> FloatArray:
    """The middle of each step, as a share of the duration."""
    steps = steps_in(thing, duration_s, step_s)
    return (np.arange(steps) + 0.5) / steps


def tallest_one(random: np.random.Generator, count: int) -> FloatArray:
    """Heights of `count` peaks from 0.4 up, of which the greatest is 1."""
    heights = random.uniform(0.4, 1.0, count)
    heights[heights.argmax()] = 1.0
    return heights


def _season(phase: FloatArray) -> FloatArray:
    return np.asarray(-np.cos(phase) - 0.25 * np.sin(2 * phase))


def _noisy(name: str, duration_s: float, rates: FloatArray, noise: float, random: np.random.Generator) -> Trace:
    """The rates as a trace, each times 1 + noise · ε, and not below 0."""
    amount = at_least(name, "noise", noise)
    rates = np.maximum(rates * (1 + amount * random.standard_normal(len(rates))), 0.0)
    return Trace(name, duration_s / len(rates), rates)
