"""The hash functions of a sketch: 2-universal, and the same in every process.

    h(x) = ((a · x + b) mod p) mod c        p = 2^61 − 1,  1 <= a < p,  0 <= b < p,  x a 32-bit hash of the key

Two different x meet in one of c cells with a probability of at most 1/c over the choice of a and b (Carter and Wegman,
1979). p is larger than every x, so that no two of them are the same modulo p.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_P = np.uint64(2**61 - 1)
_32, _29, _61 = np.uint64(32), np.uint64(29), np.uint64(61)
_LOW_32, _LOW_29 = np.uint64(2**32 - 1), np.uint64(2**29 - 1)


def shape(epsilon: float, delta: float) -> tuple[int, int]:
    """Rows r = ⌈ln(1/δ)⌉ and columns c = ⌈2.7/ε⌉: an error of at most ε of all events, with probability 1 − δ.

    >>> shape(epsilon=0.05, delta=0.05), shape(epsilon=0.70, delta=0.25)
    ((3, 54), (2, 4))
    """
    return math.ceil(math.log(1 / delta)), math.ceil(round(2.7 / epsilon, 9))  # 2.7 is not exact in binary


def coefficients(rows: int, seed: int) -> NDArray[np.uint64]:
    """One a and b for each row of a sketch.

    >>> coefficients(rows=1, seed=0).tolist()
    [[1468733653847134283, 622085807911156451]]
    """
    random, p = np.random.default_rng(seed), 2**61 - 1
    return np.array([[random.integers(1, p), random.integers(0, p)] for _ in range(rows)], np.uint64)


@njit(cache=True, inline="always")
def cell(coefficients: Any, row: int, key: int, columns: int) -> int:
    """Where a key's hash falls in a row.

    a · x has up to 93 bits; it is added up from two products that fit into 64, as 2^61 is 1 modulo p.
    """
    a, x = coefficients[row, 0], np.uint64(key)
    high, low = (a >> _32) * x, (a & _LOW_32) * x
    total = (high >> _29) + ((high & _LOW_29) << _32) + (low & _P) + (low >> _61) + coefficients[row, 1]
    total = (total & _P) + (total >> _61)
    if total >= _P:
        total -= _P
    return np.int64(total % np.uint64(columns))  # type: ignore[return-value]
