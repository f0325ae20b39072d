"""Random numbers inside a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def uniform(state: Any, purpose: int) -> float:
    """The next random number of 0..1 (xorshift64*), of those for this purpose."""
    x = state[purpose]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[purpose] = x
    return ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)  # type: ignore[no-any-return]
