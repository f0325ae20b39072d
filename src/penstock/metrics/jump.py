"""Whether a source suddenly sends more: counts beside what chance would make of the rate before."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from penstock.common.checks import at_least, positive

SIGMAS = 4.0  # chance alone exceeds this once in 30,000 looks
LEAST = 1.25  # a rise that is certain, but smaller, can wait
_ENOUGH = 5  # times as long as the recent part must be what it is compared with


def is_jump(count: float, length_s: float, before: float, before_s: float, sigmas: float = SIGMAS) -> bool:
    """Whether `count` events in `length_s` are more than `before` events in `before_s` let expect.

        e = before · length / before_s      2 · (√(count + ⅜) − √(e + ⅜)) > sigmas · √(1 + length / before_s)

    Both counts are taken for Poisson's, whose square roots spread alike however few they are (Anscombe, 1948). The rise
    must also be of a quarter at least.

    >>> is_jump(60, 0.1, 900, 3.0), is_jump(45, 0.1, 900, 3.0), is_jump(3, 0.1, 6, 3.0)
    (True, False, False)
    """
    if not (length_s > 0 and before_s > 0):
        return False
    expected = before * length_s / before_s
    rise = 2 * (math.sqrt(count + 0.375) - math.sqrt(expected + 0.375))
    return count > LEAST * expected and rise > sigmas * math.sqrt(1 + length_s / before_s)


class _Look(NamedTuple):
    """What had entered at a time."""

    time_s: float
    total: int
    by_source: Mapping[str, int]


class Jumps:
    """Looks at cumulative counts of sources, and says when they jump over the `before_s` before.

    The last `recent_s` are looked at, in which a large jump shows, and the last three times as long. A jump is told
    once: what follows is compared with the rate since, and `last` has that by source. Counts that go back, or a clock
    that does, begin anew.

    >>> jumps = Jumps()
    >>> [jumps.look(0.1 * n, {"in": 20 * n}) for n in range(1, 31)].count(True)
    0
    >>> jumps.look(3.1, {"in": 680}), {source: round(rate) for source, rate in jumps.last.items()}
    (True, {'in': 800})
    >>> jumps.look(3.2, {"in": 760})
    False
    """

    def __init__(self, *, recent_s: float = 0.1, before_s: float = 3.0, sigmas: float = SIGMAS) -> None:
        self.recent_s = positive("jumps", "recent_s", recent_s)
        self.before_s = at_least("jumps", "before_s", before_s, self.recent_s)
        self.sigmas = positive("jumps", "sigmas", sigmas)
        self.last: dict[str, float] = {}  # events per second since the last jump, when it was told
        self._seen: deque[_Look] = deque()

    def look(self, time_s: float, entered: Mapping[str, int]) -> bool:
        """Take the counts at a time; whether there is a jump."""
        now = _Look(time_s, sum(entered.values()), dict(entered))
        if self._seen and (time_s <= self._seen[-1].time_s or now.total < self._seen[-1].total):
            self._seen.clear()
        self._seen.append(now)
        for length_s in (self.recent_s, 3 * self.recent_s):
            middle = self._since(length_s - 1e-9)
            if middle is not None and self._jumped(middle):
                self._seen = deque([middle, now])
                passed_s = time_s - middle.time_s
                self.last = {name: (n - middle.by_source.get(name, 0)) / passed_s for name, n in entered.items()}
                return True
        return False

    def _jumped(self, middle: _Look) -> bool:
        """Whether more came after the middle than before it."""
        while self._seen[1].time_s <= middle.time_s - self.before_s:
            self._seen.popleft()
        first, last = self._seen[0], self._seen[-1]
        before_s, passed_s = middle.time_s - first.time_s, last.time_s - middle.time_s
        if before_s < _ENOUGH * self.recent_s:
            return False
        return is_jump(last.total - middle.total, passed_s, middle.total - first.total, before_s, self.sigmas)

    def _since(self, length_s: float) -> _Look | None:
        """The last look that was so long ago, if there is one."""
        last_s = self._seen[-1].time_s
        return next((one for one in reversed(self._seen) if last_s - one.time_s >= length_s), None)
