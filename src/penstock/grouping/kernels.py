"""The groupings' decisions as compiled functions, the same for a replica on Spark and for the simulator.

A sender is a row of the arrays: a replica has one row of its own, the simulator one for each replica that it simulates.
Functions that are called for every event take plain arrays: taking them out of a tuple each time costs more than the
decision does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Senders(NamedTuple):
    """What the senders to one operator remember; a row for each of them, a column for each replica of the operator."""

    turn: NDArray[np.int64]  # events sent so far, for round robin
    used: NDArray[np.float64]  # U as this sender sees it
    last: NDArray[np.int64]  # the turn at which the replica was last chosen
    step: NDArray[np.float64]  # what one event adds to U
    order: NDArray[np.int64]  # the active replicas by U, of equal ones first that whose turn is longest past; a ring
    first: NDArray[np.int64]  # where the ring begins


def senders(rows: int, pool: int) -> Senders:
    """Senders that have not sent anything."""
    return Senders(
        turn=np.zeros(rows, np.int64),
        used=np.zeros((rows, pool)),
        last=np.zeros((rows, pool), np.int64),
        step=np.zeros(rows),
        order=np.zeros((rows, pool), np.int64),
        first=np.zeros(rows, np.int64),
    )


@njit(cache=True)
def in_turn(turn: Any, row: int, active: Any, count: int) -> int:
    """Shuffle: the next of the active replicas."""
    place = turn[row] % count
    turn[row] += 1
    return active[place]  # type: ignore[no-any-return]


@njit(cache=True)
def all_full(used: Any, order: Any, first: Any, row: int) -> bool:
    """Load balancing: whether the least U is 1 or more."""
    return used[row, order[row, first[row]]] >= 1.0  # type: ignore[no-any-return]


@njit(cache=True)
def go_round(used: Any, last: Any, order: Any, first: Any, row: int, count: int) -> None:
    """Load balancing, once all are full: forget how much, and take them in turn."""
    before = order[row, :count].copy()
    turns = np.empty(count)
    for place in range(count):
        turns[place] = last[row, before[place]]
        used[row, before[place]] = -np.inf  # whatever is added, they stay alike
    ranks = np.argsort(turns, kind="mergesort")
    for place in range(count):
        order[row, place] = before[ranks[place]]
    first[row] = 0


@njit(cache=True)
def least_used(turn: Any, used: Any, last: Any, step: Any, order: Any, first: Any, row: int, count: int) -> int:
    """Load balancing: the least U, of several the one whose turn is longest past. Ask `all_full` before.

    `order` is a ring with the least used first. Mostly the one that gets the event becomes the last: the ring turns.
    All arrays are used at the very end: otherwise numba counts references to them on every call, which takes ten times
    as long as the rest.
    """
    place = first[row]
    best = order[row, place]
    grown = used[row, best] + step[row]
    after = place + 1 if place + 1 < count else 0
    turned = grown >= used[row, order[row, place - 1 if place > 0 else count - 1]]
    begin = after if turned else place
    if not turned:
        while used[row, order[row, after]] <= grown:  # these come before it from now on
            order[row, place] = order[row, after]
            place, after = after, (after + 1 if after + 1 < count else 0)
    order[row, place] = best
    first[row] = begin
    used[row, best] = grown
    last[row, best] = turn[row]
    turn[row] += 1
    return best  # type: ignore[no-any-return]


@njit(cache=True)
def publish(state: Any, row: int, number: int, active: Any, count: int, used: Any, step: float) -> None:
    """Load balancing: start again from the published U; ties go first to the replica at this sender's own place."""
    state.step[row], state.turn[row], state.first[row] = step, count, 0
    published = np.empty(count)
    for turn in range(count):
        replica = active[(number + turn) % count]
        published[turn] = used[replica]
        state.used[row, replica] = used[replica]
        state.last[row, replica] = turn
    ranks = np.argsort(published, kind="mergesort")
    for place in range(count):
        state.order[row, place] = active[(number + ranks[place]) % count]


@njit(cache=True)
def publish_to(state: Any, rows: Any, seats: Any, active: Any, count: int, used: Any, step: float) -> None:
    """Load balancing: publish to these rows; `seats` has each sender's number, and how many there are."""
    for row in rows:
        if seats[row, 1] > 0:
            publish(state, row, seats[row, 0], active, count, used, step * seats[row, 1])


@njit(cache=True)
def choose_least_used(state: Any, row: int, count: int, chosen: Any) -> None:
    """Load balancing for a bundle: a replica for each place of `chosen`."""
    turn, used, last, step, order, first = state
    for place in range(len(chosen)):
        if all_full(used, order, first, row):
            go_round(used, last, order, first, row, count)
        chosen[place] = least_used(turn, used, last, step, order, first, row, count)


@njit(cache=True)
def one_least_used(turn: Any, used: Any, last: Any, step: Any, order: Any, first: Any, count: int) -> int:
    """Load balancing for one event of a single sender; with plain arrays, a call takes half the time."""
    if all_full(used, order, first, 0):
        go_round(used, last, order, first, 0, count)
    return least_used(turn, used, last, step, order, first, 0, count)
