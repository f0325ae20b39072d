"""How often something may be changed."""

from __future__ import annotations

import math

from penstock.common.checks import whole
from penstock.errors import InputError


class TokenBucket:
    """Lets `rate` changes a second through on average, and up to `burst` at once.

    >>> bucket = TokenBucket(rate=0.1, burst=2)
    >>> [bucket.take(now_s) for now_s in (0.0, 0.0, 0.0, 5.0, 10.0)]
    [True, True, False, False, True]
    """

    def __init__(self, *, rate: float, burst: int) -> None:
        if not 0 < rate < math.inf:
            raise InputError(f"token bucket: rate must be above 0 a second; got {rate}")
        self.rate = rate
        self.burst = whole("token bucket", "burst", burst)
        self._tokens = float(burst)
        self._time_s: float | None = None

    def take(self, now_s: float) -> bool:
        """Whether one more is let through now. A clock that goes back brings no tokens."""
        if self._time_s is not None and now_s > self._time_s:
            self._tokens = min(self.burst, self._tokens + (now_s - self._time_s) * self.rate)
        self._time_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
