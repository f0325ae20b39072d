"""Random choices with a given skew, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from random import Random


def zipf_ranks(random: Random, ranks: int, skew: float, count: int) -> list[int]:
    """`count` ranks from 0 on, rank k drawn with a weight of 1 / (k + 1)^skew; skew 0 is uniform.

    >>> zipf_ranks(Random(1), ranks=64, skew=1.5, count=8)
    [0, 10, 5, 0, 1, 1, 2, 6]
    """
    bounds = list(accumulate((k + 1) ** -skew for k in range(ranks)))
    return random.choices(range(ranks), cum_weights=bounds, k=count)


def weighted(random: Random, weights: Mapping[str, float]) -> str:
    """One of the names, by weight."""
    return random.choices(list(weights), weights=list(weights.values()))[0]
