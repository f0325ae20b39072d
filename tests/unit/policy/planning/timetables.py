"""Every timetable there is and what it costs, written down once more, and the optimum beside them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st

from penstock.policy.planning.planners import optimal, shortfall
from penstock.policy.planning.timetable import Limits

ROUNDING = 1e-9

whole_prices = dict.fromkeys(("replica", "up", "down", "route"), st.sampled_from([0, 1, 2, 3, 5, 8, 13]))
small_needs = st.lists(st.integers(0, 4), min_size=2, max_size=6)
two_bounds = st.tuples(*[st.integers(0, 4)] * 2)
prices_of_lateness = st.sampled_from([0, 1, 2, 4, 7, 20, 1000])


def at_most(one, other):
    return one <= other + ROUNDING * abs(other)


def every_timetable(epochs, least, most):
    """A row for each timetable there is."""
    return np.array(list(product(range(least, most + 1), repeat=epochs)))


def costs(prices, timetables, start):
    """W of every row, written down once more from the formula."""
    before = np.hstack([np.full((len(timetables), 1), start), timetables[:, :-1]])
    steps = timetables - before
    changes = prices.up * np.maximum(0, steps) + prices.down * np.maximum(0, -steps) + prices.route * (steps != 0)
    moved = prices.moving * (np.abs(steps) / np.maximum(1, np.maximum(before, timetables)))
    return prices.replica * timetables.sum(axis=1) + changes.sum(axis=1) + moved.sum(axis=1)


def late(needed, timetables, start, delay):
    """Replicas short of every row, all epochs together; what an epoch lacks is needed in the next."""
    ordered = np.pad(timetables, ((0, 0), (delay, 0)), constant_values=start)
    total, short = np.zeros((2, len(timetables)), np.int64)
    for epoch, need in enumerate(needed[1:]):
        short = np.maximum(0, need + short - ordered[:, epoch : epoch + delay + 1].min(axis=1))
        total += short
    return total


def check_cheapest_within_bounds(needed, start, prices, bounds):
    limits = Limits(least=min(bounds), most=max(bounds))
    every = every_timetable(len(needed) - 1, limits.least, limits.most)
    short = late(needed, every, start, 0)
    every = every[short == short.min()]
    planned = optimal(needed, start, prices, limits)
    assert tuple(planned) in set(map(tuple, every.tolist()))
    assert prices.cost(planned, start) == pytest.approx(costs(prices, every, start).min(), rel=0, abs=ROUNDING)


def check_cheapest_with_lateness(needed, start, prices, delay, lateness):
    planned = optimal(needed, start, prices, Limits(least=0, most=4, delay=delay, lateness=lateness))
    every = every_timetable(len(needed) - 1, 0, 4)
    short = int(shortfall(needed, planned, start, delay=delay).sum())
    together = costs(prices, every, start) + lateness * late(needed, every, start, delay)
    assert prices.cost(planned, start) + lateness * short == pytest.approx(together.min(), rel=0, abs=ROUNDING)
