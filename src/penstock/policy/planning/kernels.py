"""The planners' inner loops, compiled by numba. A timetable here has the running number in front: n[0] = start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_ROUNDING = 1e-12  # of what is compared: a gain of this size is none


@njit(cache=True)
def change(before: int, after: int, prices: Any) -> float:
    """What a change of the number of replicas costs."""
    _, up, down, route, moving = prices
    if after > before:
        return up * (after - before) + route + moving * (after - before) / after  # type: ignore[no-any-return]
    return down * (before - after) + route + moving * (before - after) / before if after < before else 0.0


@njit(cache=True)
def raise_if_cheaper(n: Any, first: int, last: int, level: int, prices: Any) -> bool:
    """Let the epochs from `first` to `last` have at least `level` replicas, if that lowers W."""
    old, new = 0.0, 0.0
    before = n[first - 1]
    for epoch in range(first, min(last + 2, len(n))):
        after = max(n[epoch], level) if epoch <= last else n[epoch]
        old += prices[0] * n[epoch] + change(n[epoch - 1], n[epoch], prices)
        new += prices[0] * after + change(before, after, prices)
        before = after
    if not new < old - _ROUNDING * old:
        return False
    for epoch in range(first, last + 1):
        n[epoch] = max(n[epoch], level)
    return True


@njit(cache=True)
def join_changes(n: Any, prices: Any) -> bool:
    """Step 2 of CBA: an increase one epoch earlier, a decrease one later, where it meets another change.

    The last increase goes first, and the first decrease, so that a staircase can be joined as a whole.
    """
    changed = False
    for epoch in range(len(n) - 1, 1, -1):
        if n[epoch] > n[epoch - 1] != n[epoch - 2]:
            changed |= raise_if_cheaper(n, epoch - 1, epoch - 1, n[epoch], prices)
    for epoch in range(1, len(n) - 1):
        if n[epoch - 1] > n[epoch] != n[epoch + 1]:
            changed |= raise_if_cheaper(n, epoch, epoch, n[epoch - 1], prices)
    return changed


@njit(cache=True)
def keep_through_dips(n: Any, prices: Any) -> bool:
    """Step 3 of CBA: keep replicas from a decrease to a later increase, as many as both have in common."""
    changed = False
    for down in range(1, len(n)):
        for up in range(down + 1, len(n)):
            level = min(n[down - 1], n[up])
            if n[down] < n[down - 1] and n[up] > n[up - 1] and level > n[down:up].min():
                changed |= raise_if_cheaper(n, down, up - 1, level, prices)
    return changed


@njit(cache=True)
def improve(n: Any, prices: Any) -> None:
    """Steps 2 and 3 of CBA until nothing changes; it ends because each move only ever adds replicas."""
    changed = True
    while changed:
        changed = join_changes(n, prices)
        changed |= keep_through_dips(n, prices)


@njit(cache=True)
def best_step(state: int, ahead: Any, need: int, rules: Any, prices: Any) -> Any:
    """The cheapest next level from a state, and the cost from there on; of equal ones to stay, else the lowest.

    A state is the last max(1, delay) levels as the digits of a number, the latest last.
    """
    levels, lowest, highest, delay, lateness = rules
    base = len(levels)
    last, working, rest = state % base, base - 1, state
    forget = state * base % len(ahead)  # the oldest level leaves the state
    for _ in range(delay):
        working = min(working, rest % base)
        rest //= base
    best, chosen = np.inf, lowest
    for index in range(lowest, highest + 1):
        cost = prices[0] * levels[index] + change(levels[last], levels[index], prices)
        short = need - levels[min(working, index)]
        if short > 0:
            cost += lateness * short
        cost += ahead[forget + index]
        if cost < best or (cost == best and index == last):
            best, chosen = cost, index
    return best, chosen


@njit(cache=True)
def best_owing(state: int, owed: int, ahead: Any, rules: Any, prices: Any, unit: int) -> Any:
    """As `best_step`, where so much is owed, with what waited; `ahead` is by state and by what is left, in units."""
    levels, lowest, highest, delay, lateness = rules
    base, most = len(levels), ahead.shape[1] - 1
    last, working, rest = state % base, base - 1, state
    forget = state * base % len(ahead)
    for _ in range(delay):
        working = min(working, rest % base)
        rest //= base
    best, chosen = np.inf, lowest
    for index in range(lowest, highest + 1):
        short = max(0, owed - levels[min(working, index)])
        left = min(most, (short + unit - 1) // unit)
        cost = prices[0] * levels[index] + change(levels[last], levels[index], prices) + lateness * short
        cost += ahead[forget + index, left]
        if cost < best or (cost == best and index == last):
            best, chosen = cost, index
    return best, chosen


@njit(cache=True)
def cheapest_owing(needs: Any, begin: int, rules: Any, prices: Any, counting: Any) -> Any:
    """As `cheapest`, where what is short in an epoch is owed in the next; `counting`: its unit, and the most units."""
    levels, delay, (unit, most) = rules[0], rules[3], counting
    base = len(levels)
    states = base ** max(1, delay)
    ahead = np.zeros((len(needs) + 1, states, most + 1))
    for epoch in range(len(needs) - 1, -1, -1):
        for state in range(states):
            for left in range(most + 1 if epoch else 1):
                owed = needs[epoch] + left * unit
                ahead[epoch, state, left] = best_owing(state, owed, ahead[epoch + 1], rules, prices, unit)[0]
    state, left = 0, 0
    for _ in range(max(1, delay)):
        state = state * base + begin
    found = np.empty(len(needs), np.int64)
    for epoch in range(len(needs)):
        chosen = best_owing(state, needs[epoch] + left, ahead[epoch + 1], rules, prices, unit)[1]
        working, rest = chosen, state
        for _ in range(delay):
            working = min(working, rest % base)
            rest //= base
        left = max(0, needs[epoch] + left - levels[working])
        found[epoch] = levels[chosen]
        state = (state * base + chosen) % states
    return found


@njit(cache=True)
def sweep(costs: Any, ahead: Any, need: int, rules: Any, prices: Any) -> None:
    """The cost of `best_step` from every level, in two passes over the levels; for a delay of 0 or 1, without state.

    On the way down in levels it knows the cheapest of those above, on the way up the cheapest of those below. A replica
    that is added works in the same epoch without a delay; with a delay of 1 those work that did before.
    """
    levels, lowest, highest, delay, lateness = rules
    replica, up, down, route, _ = prices
    above = np.inf
    for index in range(len(levels) - 1, -1, -1):
        level = levels[index]
        late = lateness * (need - level) if need > level else 0.0
        costs[index] = above - up * level + route + (late if delay else 0.0)
        if lowest <= index <= highest:
            there = replica * level + ahead[index]
            costs[index] = min(costs[index], there + late)
            above = min(above, there + up * level + (0.0 if delay else late))
    below = np.inf
    for index in range(len(levels)):
        level = levels[index]
        costs[index] = min(costs[index], below + down * level + route)
        if lowest <= index <= highest:
            late = lateness * (need - level) if need > level else 0.0
            below = min(below, replica * level + ahead[index] - down * level + late)


@njit(cache=True)
def cheapest(needs: Any, begin: int, rules: Any, prices: Any) -> Any:
    """The levels of least cost, epoch by epoch: values from the last epoch back, then the way from `begin` on."""
    base, delay = len(rules[0]), rules[3]
    states = base ** max(1, delay)
    ahead = np.zeros((len(needs) + 1, states))
    for epoch in range(len(needs) - 1, -1, -1):
        if delay < 2 and prices[4] == 0.0:
            sweep(ahead[epoch], ahead[epoch + 1], needs[epoch], rules, prices)
            continue
        for state in range(states):
            ahead[epoch, state] = best_step(state, ahead[epoch + 1], needs[epoch], rules, prices)[0]
    state = 0
    for _ in range(max(1, delay)):
        state = state * base + begin
    found = np.empty(len(needs), np.int64)
    for epoch in range(len(needs)):
        chosen = best_step(state, ahead[epoch + 1], needs[epoch], rules, prices)[1]
        found[epoch] = rules[0][chosen]
        state = (state * base + chosen) % states
    return found
