"""Seeded streams of key values, numbered from 1, and the time that each value costs a sensitive operator."""

from __future__ import annotations

import numpy as np

from penstock.common.checks import at_least, positive, whole
from penstock.errors import InputError
from penstock.workload._rules import FloatArray, IntArray, generator


def uniform_keys(n_values: int, size: int, *, seed: int = 0) -> IntArray:
    """Draw `size` keys from 1..n_values, all equally likely.

    >>> uniform_keys(3, size=6, seed=1).tolist()
    [2, 1, 3, 1, 3, 2]
    """
    values = whole("uniform_keys", "n_values", n_values, least=1)
    count = whole("uniform_keys", "size", size, least=0)
    return generator("uniform_keys", seed).integers(1, values, size=count, endpoint=True)


def zipf_keys(n_values: int, size: int, *, exponent: float = 1.5, seed: int = 0) -> IntArray:
    """Draw `size` keys from 1..n_values by Zipf's law, cut off at n_values.

    Inverse of the distribution function: key = least k with Σ_{j<=k} p_j > u, u uniform in 0..1.

    >>> zipf_keys(100, size=8, seed=2).tolist()
    [28, 1, 4, 1, 1, 23, 1, 1]
    """
    count = whole("zipf_keys", "size", size, least=0)
    return drawn(zipf_shares(n_values, exponent), generator("zipf_keys", seed).random(count)) + 1


def zipf_shares(n_values: int, exponent: float = 1.5) -> FloatArray:
    """How likely each key of 1..n_values is: p_k = k^(−exponent) / Σ_j j^(−exponent); exponent 0 is uniform.

    >>> zipf_shares(3, exponent=1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    values = whole("zipf", "n_values", n_values, least=1)
    weights = np.arange(1, values + 1) ** -at_least("zipf", "exponent", exponent)
    return np.asarray(weights / weights.sum())


def drawn(shares: FloatArray, uniforms: FloatArray) -> IntArray:
    """The index that each number of 0..1 falls on when the shares are laid end to end."""
    ends = np.cumsum(shares)
    found = np.searchsorted(ends, uniforms * ends[-1], side="right")
    return np.asarray(np.minimum(found, len(shares) - 1), dtype=np.int64)  # rounding may carry one past the end


def value_times(
    values: int = 64, *, low_ms: float = 1.0, high_ms: float = 64.0, distinct: int = 64, seed: int = 0
) -> dict[int, float]:
    """Give each value of 1..values one of `distinct` times from low_ms to high_ms, at random by seed.

    The times lie evenly between the bounds; each goes to as many values as any other, within one.

    >>> times = value_times(4, low_ms=1, high_ms=4, distinct=4, seed=3)
    >>> sorted(times), sorted(times.values())
    ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0])
    """
    thing = "value_times"
    count, kinds = whole(thing, "values", values, least=1), whole(thing, "distinct", distinct, least=1)
    low, high = positive(thing, "low_ms", low_ms), positive(thing, "high_ms", high_ms)
    if low > high:
        raise InputError(f"{thing}: low_ms must not exceed high_ms; got {low:g} and {high:g}")
    random = generator(thing, seed)
    rounds = [random.permutation(np.linspace(low, high, kinds)) for _ in range(-(-count // kinds))]
    times = random.permutation(np.concatenate(rounds)[:count])
    return dict(enumerate(times.tolist(), start=1))
