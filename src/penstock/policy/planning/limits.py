"""What the planner `optimal` has to keep to beside the need: bounds, the delay of a start, the price of being late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.policy.planning.prices import checked_price

MOST_DELAY = 2  # epochs, where lateness has a price: each more multiplies the work by the horizon


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on the replicas, and what becomes of those that are not there in time.

    From `least` to `most` replicas (None: no bound); a need above `most` is cut down to it. An increase ordered for an
    epoch works only `delay` epochs later, a decrease at once: in epoch t there work min(n_{t−delay}, …, n_t), and
    those that run at the start work from the start. What cannot be there in time is late.

    `lateness`: the price of one replica short for one epoch. Without it a replica is short only where no timetable
    could have it in time; with it, also where that costs less.

    >>> Limits(least=5, most=2)
    Traceback (most recent call last):
    penstock.errors.InputError: limits: most must be whole and at least 5; got 2
    """

    least: int = 1
    most: int | None = None
    delay: int = 0
    lateness: float | None = None

    def __post_init__(self) -> None:
        whole("limits", "least", self.least, 0)
        if self.most is not None:
            whole("limits", "most", self.most, self.least)
        whole("limits", "delay", self.delay, 0)
        if self.lateness is not None:
            checked_price("lateness", self.lateness)
            if self.delay > MOST_DELAY:
                raise InputError(
                    f"limits: delay must be at most {MOST_DELAY} where lateness has a price; got {self.delay}"
                )

    def cut(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers within the bounds.

        >>> Limits(least=1, most=4).cut(np.array([0, 3, 9])).tolist()
        [1, 3, 4]
        """
        return np.clip(counts, self.least, self.most)

    def floors(self, needs: NDArray[np.int64], start: int) -> NDArray[np.int64]:
        """The least that each epoch must have ordered, so that as few as possible are late.

        An epoch within the delay cannot have more than what runs at the start, so that much of its need is kept.

        >>> Limits(delay=2).floors(np.array([3, 9, 1, 5]), start=4).tolist()
        [4, 5, 5, 5]
        """
        reachable = needs.copy()
        reachable[: self.delay] = np.minimum(needs[: self.delay], start)
        floors = reachable.copy()
        for later in range(1, self.delay + 1):
            floors[:-later] = np.maximum(floors[:-later], reachable[later:])
        return floors
