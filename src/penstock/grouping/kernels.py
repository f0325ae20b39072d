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


def senders(rows: int, pool: int) -> Senders:
    """Senders that have not sent anything."""
    return Senders(np.zeros(rows, np.int64), np.zeros((rows, pool)), np.zeros((rows, pool), np.int64), np.zeros(rows))


@njit(cache=True)
def in_turn(turn: Any, row: int, active: Any, count: int) -> int:
    """Shuffle: the next of the active replicas."""
    place = turn[row] % count
    turn[row] += 1
    return active[place]  # type: ignore[no-any-return]


@njit(cache=True)
def least_used(turn: Any, used: Any, last: Any, step: Any, row: int, active: Any, count: int) -> int:
    """Load balancing: the least U, of several the one whose turn is longest past; from U = 1 on that one alone."""
    best, rested = active[0], active[0]
    for place in range(1, count):
        replica = active[place]
        if last[row, replica] < last[row, rested]:
            rested = replica
        lead = used[row, best] - used[row, replica]
        if lead > 0 or (lead == 0 and last[row, replica] < last[row, best]):
            best = replica
    if used[row, best] >= 1.0:
        best = rested
    else:
        used[row, best] += step[row]
    last[row, best] = turn[row]
    turn[row] += 1
    return best  # type: ignore[no-any-return]


@njit(cache=True)
def publish(state: Any, row: int, number: int, active: Any, count: int, used: Any, step: float) -> None:
    """Load balancing: start again from the published U; ties go first to the replica at this sender's own place."""
    state.step[row] = step
    first = number % count
    for place in range(count):
        replica = active[place]
        state.used[row, replica] = used[replica]
        state.last[row, replica] = (place - first) % count
    state.turn[row] = count


@njit(cache=True)
def publish_to(state: Any, rows: Any, seats: Any, active: Any, count: int, used: Any, step: float) -> None:
    """Load balancing: publish to these rows; `seats` has each sender's number, and how many there are."""
    for row in rows:
        if seats[row, 1] > 0:
            publish(state, row, seats[row, 0], active, count, used, step * seats[row, 1])


@njit(cache=True)
def choose_least_used(state: Any, row: int, active: Any, count: int, chosen: Any) -> None:
    """Load balancing for a bundle: a replica for each place of `chosen`."""
    turn, used, last, step = state
    for place in range(len(chosen)):
        chosen[place] = least_used(turn, used, last, step, row, active, count)
