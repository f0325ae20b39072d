"""Planners: from the replicas that are needed to a timetable. All are pure, and count in whole replicas.

`needed` has the replicas that serve the expected input of epochs 0 to T; a timetable has epochs 1 to T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from penstock.common.checks import is_whole
from penstock.errors import InputError
from penstock.policy.planning.timetable import Counts, Limits, Prices

Needs: TypeAlias = Sequence[int] | Counts

MOST_REPLICAS = 1_000_000
MOST_LEVELS = (33, 33, 6)  # by delay: beside the needed numbers, where lateness has a price
MOST_OWED = 64  # steps in which work that waits is counted; more of it is counted in coarser ones


def srea(needed: Needs) -> Counts:
    """SREA: as many as the current load needs, for as long as nothing else is known: n_t = needed_0.

    >>> srea([2, 5, 3]).tolist()
    [2, 2]
    """
    counts = _checked(needed)
    return np.full(len(counts) - 1, counts[0])


def spea(needed: Needs) -> Counts:
    """SPEA: as many as the epoch and the one after it need: n_t = max(needed_t, needed_{t+1}).

    >>> spea([2, 1, 5, 3]).tolist()
    [5, 5, 3]
    """
    counts = _checked(needed)[1:]
    found: Counts = np.maximum(counts, np.append(counts[1:], 0))
    return found


def cba(needed: Needs, start: int, prices: Prices) -> Counts:
    """CBA: SPEA's timetable, with changes joined and replicas kept where that lowers W.

    1. SPEA's timetable.
    2. An increase moves one epoch earlier, or a decrease one later, where another change stands there.
    3. From a decrease to a later increase, what both have in common keeps running: n_t is at least the smaller of
       the number before the decrease and the number after the increase.

    Each move of steps 2 and 3 is made where it lowers W, over and over until none does.

    >>> cba([4, 4, 1, 1, 1, 4], 4, Prices(replica=1, up=2, down=2, route=0)).tolist()
    [4, 4, 4, 4, 4]
    >>> cba([4, 4, 1, 1, 1, 4], 4, Prices(replica=3, up=2, down=2, route=0)).tolist()
    [4, 1, 1, 4, 4]
    """
    return improved(spea(needed), start, prices)


def improved(timetable: Needs, start: int, prices: Prices) -> Counts:
    """Steps 2 and 3 of CBA on any timetable; no epoch ends up with fewer replicas.

    >>> improved([3, 3, 2], 1, Prices(replica=1, up=0, down=0, route=5)).tolist()
    [3, 3, 2]
    >>> improved([2, 3, 3], 1, Prices(replica=1, up=0, down=0, route=5)).tolist()
    [3, 3, 3]
    """
    from penstock.policy.planning.kernels import improve  # numba takes its time to load

    running = np.concatenate(([_whole("start", start)], _whole_numbers(timetable)))
    improve(running, prices.terms())
    return running[1:]


def held(timetable: Needs, careful: Needs, start: int) -> Counts:
    """The timetable, but what runs goes only where a careful need does without it: n_t ≥ min(n_{t−1}, careful_t).

    `careful` has epochs 0 to T, as `needed` has.

    >>> held([1, 1, 1, 2], [3, 3, 3, 2, 5], 4).tolist()
    [3, 3, 2, 2]
    """
    counts, least = _whole_numbers(timetable).copy(), _checked(careful)[1:]
    before = _whole("start", start)
    for epoch in range(len(counts)):
        before = counts[epoch] = max(counts[epoch], min(before, least[epoch]))
    return counts


def optimal(needed: Needs, start: int, prices: Prices, limits: Limits | None = None) -> Counts:
    """The timetable of least W that serves what is needed, by dynamic programming, within the limits.

    What an epoch lacks is work for the next, as `shortfall` has it. With a price on lateness the timetable is the one
    of least W + lateness · Σ short_t instead. Of several it takes the one that stays as it is for longest, then the
    lowest. Without that price only the needed numbers, the start and the limits come into question; with it, of wide
    pools and long queues, a few numbers in between.

    >>> optimal([4, 4, 1, 1, 1, 4], 4, Prices(replica=3, up=2, down=2, route=0)).tolist()
    [4, 1, 1, 1, 4]
    >>> optimal([1, 1, 1, 3], 1, Prices(), Limits(delay=1)).tolist()
    [1, 3, 3]
    >>> optimal([1, 9, 2, 1], 1, Prices(), Limits(most=5)).tolist()
    [5, 5, 2]
    >>> optimal([1, 1, 3, 1], 1, Prices(), Limits(lateness=8_500)).tolist()
    [1, 2, 2]
    """
    from penstock.policy.planning.kernels import cheapest, cheapest_owing  # numba takes its time to load

    rules, begin, needs = limits or Limits(), _whole("start", start), _checked(needed)[1:]
    if rules.lateness is not None:
        levels, unit, most_owed = _grid(needs, begin, rules)
        known = levels, *_between(levels, rules), rules.delay, float(rules.lateness)
        index = int(np.searchsorted(levels, begin))
        late: Counts = cheapest_owing(needs, index, known, prices.terms(), (unit, most_owed))
        return late
    floors = rules.cut(rules.floors(rules.served(needs, begin), begin))  # a lower bound on each epoch, nothing else
    levels = np.unique(np.concatenate((floors, rules.cut(np.array([begin, rules.least])), [begin])))
    known = levels, *_between(levels, rules), 0, np.inf
    found: Counts = cheapest(floors, int(np.searchsorted(levels, begin)), known, prices.terms())
    return found


def _between(levels: Counts, rules: Limits) -> tuple[int, int]:
    """The first and the last of the levels that the limits allow."""
    allowed = np.flatnonzero(rules.cut(levels) == levels)
    return int(allowed[0]), int(allowed[-1])


def _grid(needs: Counts, begin: int, rules: Limits) -> tuple[Counts, int, int]:
    """The levels that come into question where work may wait, the unit in which it is counted, and the most of it."""
    total, room = int(needs.sum()), MOST_LEVELS[rules.delay]
    named = np.concatenate((needs, [begin, rules.least]))
    top = rules.cut(np.array([max(total, int(named.max()))]))[0]
    between = np.linspace(rules.least, top, room).round().astype(np.int64)
    levels = np.unique(np.concatenate((rules.cut(named), between, [begin])))
    unit = max(1, -(-total // MOST_OWED))
    return levels, unit, -(-total // unit)


def shortfall(needed: Needs, timetable: Needs, start: int, *, delay: int = 0) -> Counts:
    """Replicas that each epoch lacks, for its own need and what the epoch before lacked.

        short_t = max(0, needed_t + short_{t−1} − min(n_{t−delay}, …, n_t))      n_s = start for s ≤ 0

    >>> shortfall([1, 3, 3], [3, 3], 1).tolist(), shortfall([1, 3, 3], [3, 4], 1, delay=1).tolist()
    ([0, 0], [2, 2])
    """
    counts = _checked(needed)[1:]
    ordered = np.concatenate((np.full(delay, start, np.int64), _whole_numbers(timetable)))
    short: Counts = np.zeros(len(counts), np.int64)
    for epoch, need in enumerate(counts):
        before = short[epoch - 1] if epoch else 0
        short[epoch] = max(0, need + before - ordered[epoch : epoch + delay + 1].min())
    return short


def _checked(needed: Needs) -> Counts:
    counts = _whole_numbers(needed)
    if len(counts) < 2:
        raise InputError(f"planner: needed must have epoch 0 and at least one more; got {len(counts)}")
    return counts


def _whole_numbers(values: Needs) -> Counts:
    found = np.asarray(values)
    if found.ndim != 1 or not (np.issubdtype(found.dtype, np.integer) or not found.size):
        raise InputError(f"planner: replicas must be whole numbers in one row; got {values!r}")
    wrong = found[(found < 0) | (found > MOST_REPLICAS)]
    if wrong.size:
        raise InputError(f"planner: replicas must be from 0 to {MOST_REPLICAS:,}; got {wrong[0]}")
    return found.astype(np.int64)


def _whole(name: str, value: int) -> int:
    if not is_whole(value, 0, MOST_REPLICAS):
        raise InputError(f"planner: {name} must be whole, from 0 to {MOST_REPLICAS:,}; got {value!r}")
    return int(value)
