"""A timetable: the replicas of one operator, epoch by epoch; what it costs, and what it has to keep to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.common.checks import is_number, whole
from penstock.errors import InputError

Counts: TypeAlias = NDArray[np.int64]

MOST_LEVEL = 0.99  # beyond it a forecaster has seen too few errors
MOST_PRICE = 1e12  # beyond it the sums of a timetable lose digits
MOST_DELAY = 2  # epochs, where lateness has a price: each more multiplies the work by the horizon


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of one operator, in any unit; the defaults are the paper's.

        W(n) = p Σ n_t + Σ ( p_up · max(0, n_{t+1} − n_t) + p_down · max(0, n_t − n_{t+1}) + p_route · [n_{t+1} ≠ n_t] )

    `replica` is p, for one replica and one epoch; `up` and `down` are for one replica started or stopped, `route` for
    each epoch that begins with another number than the one before. `moving`, beyond the paper, is for moving all of the
    operator's state: a change from n to m replicas adds moving · |n − m| / max(n, m), the share of the key groups that
    it moves.

    >>> Prices().cost([3, 2], start=1)
    55200.0
    >>> Prices(up=-1)
    Traceback (most recent call last):
    penstock.errors.InputError: prices: up must be a number from 0 to 1e+12; got -1

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network", NPC
    2019, equation 5.
    """

    replica: float = 8000.0
    up: float = 5000.0
    down: float = 5000.0
    route: float = 100.0
    moving: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            checked_price(field.name, getattr(self, field.name))

    def cost(self, timetable: Sequence[int], start: int) -> float:
        """W of the timetable; `start` runs when it begins, so that the first change is charged too."""
        counts = np.array([start, *timetable], np.int64)
        steps = np.diff(counts)
        rises, changes = int(steps[steps > 0].sum()), int(np.count_nonzero(steps))
        falls, running = rises - int(steps.sum()), int(counts[1:].sum())
        moved = float((np.abs(steps) / np.maximum(1, np.maximum(counts[:-1], counts[1:]))).sum()) * self.moving
        return float(self.replica * running + self.up * rises + self.down * falls + self.route * changes + moved)

    def level(self, lateness: float | None = None) -> float | None:
        """The quantile of the load up to which a replica that runs is worth keeping; None where no more than a half.

            level = 1 − p / (lateness + p_up + p_down + 2 p_route)

        To keep it in vain costs p. To let it go and need it after all costs to be late, a start, a stop and two
        changes of the routing. `lateness` is the price of one replica short for one epoch. Without it, it is the least
        that makes sense of starting one for an epoch that is as likely as not to need it, which CBA does:
        2 (p + p_up + p_down + 2 p_route).

        >>> round(Prices().level(), 3), Prices().level(lateness=29_800), Prices().level(lateness=0)
        (0.828, 0.8, None)
        """
        back = self.up + self.down + 2 * self.route
        late = 2 * (self.replica + back) if lateness is None else checked_price("lateness", lateness)
        found = 1 - self.replica / (late + back) if late + back > 0 else 0.0
        return min(found, MOST_LEVEL) if found > 0.5 else None

    def values(self) -> tuple[float, float, float, float]:
        """Replica, up, down and route, as numbers."""
        return float(self.replica), float(self.up), float(self.down), float(self.route)

    def terms(self) -> tuple[float, float, float, float, float]:
        """All of them, as numbers."""
        return (*self.values(), float(self.moving))

    def with_state(self, per_megabyte: float, state_bytes: int) -> Prices:
        """These prices for an operator with so much state, of which each megabyte that moves has a price.

        >>> Prices().with_state(200.0, 30_000_000).moving
        6000.0
        """
        return replace(self, moving=min(per_megabyte * state_bytes / 1e6, MOST_PRICE)) if per_megabyte else self


def checked_price(name: str, value: object) -> float:
    """The price, or an InputError where it is no number, negative or too large to count with."""
    if not is_number(value) or not 0 <= value <= MOST_PRICE:
        raise InputError(f"prices: {name} must be a number from 0 to {MOST_PRICE:g}; got {value!r}")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on the replicas, and what becomes of those that are not there in time.

    From `least` to `most` replicas (None: no bound); what `most` cannot do in an epoch is left to the next. An increase
    ordered for an epoch works only `delay` epochs later, a decrease at once: in epoch t there work
    min(n_{t−delay}, …, n_t), and those that run at the start work from the start. What cannot be there in time is late.

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

    def cut(self, counts: Counts) -> Counts:
        """The numbers within the bounds.

        >>> Limits(least=1, most=4).cut(np.array([0, 3, 9])).tolist()
        [1, 3, 4]
        """
        return np.clip(counts, self.least, self.most)

    def served(self, needs: Counts, start: int) -> Counts:
        """What each epoch can do of its own need and of what the epochs before it left, as early as possible.

        >>> Limits(most=4).served(np.array([3, 9, 1, 1]), start=1).tolist()
        [3, 4, 4, 3]
        >>> Limits(delay=1).served(np.array([9, 2, 2]), start=2).tolist()
        [2, 9, 2]
        """
        found, left = needs.copy(), 0
        for epoch, need in enumerate(needs.tolist()):
            owed = need + left
            found[epoch] = min(owed, start if epoch < self.delay else owed, owed if self.most is None else self.most)
            left = owed - int(found[epoch])
        return found

    def floors(self, needs: Counts, start: int) -> Counts:
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
