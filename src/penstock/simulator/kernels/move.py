"""Events moved as they are: queues made shorter, streams joined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.simulator.kernels.arrays import DEAD, NONE


@njit(cache=True)
def compact(queue: Any, replicas: Any, target: Any) -> None:
    """Copy the events that are alive into `target`, in the same order."""
    fill = queue.size[0]
    moved = np.full(fill, NONE, np.int64)
    alive = 0
    for index in range(fill):
        if queue.fate[index] == DEAD:
            continue
        moved[index] = alive
        target.start[alive] = queue.start[index]
        target.finish[alive] = queue.finish[index]
        target.born[alive] = queue.born[index]
        target.source[alive] = queue.source[index]
        target.value[alive] = queue.value[index]
        target.row[alive] = queue.row[index]
        target.fate[alive] = queue.fate[index]
        alive += 1
    for index in range(fill):
        if moved[index] != NONE:
            after = queue.next[index]
            target.next[moved[index]] = NONE if after == NONE else moved[after]
    for replica in range(len(replicas.head)):
        if replicas.head[replica] != NONE:
            replicas.head[replica] = moved[replicas.head[replica]]
            replicas.tail[replica] = moved[replicas.tail[replica]]
        if replicas.unfinished[replica] != NONE:
            replicas.unfinished[replica] = moved[replicas.unfinished[replica]]
    target.size[0] = alive
    target.size[1] = alive


@njit(cache=True)
def holders_of(queue: Any, replicas: Any) -> Any:
    """The replica that each place of the queue belongs to; where there is no event, anything."""
    holders = np.zeros(queue.size[0], np.int64)
    for replica in range(len(replicas.head)):
        index = replicas.head[replica]
        while index != NONE:
            holders[index] = replica
            index = queue.next[index]
    return holders


@njit(cache=True)
def merge(one: Any, two: Any, target: Any) -> None:
    """Two rows of events in order of time as one; of those at the same time the first row's come first."""
    first, second = 0, 0
    for place in range(len(target.time)):
        from_one = second >= len(two.time) or (first < len(one.time) and one.time[first] <= two.time[second])
        source = one if from_one else two
        index = first if from_one else second
        target.time[place] = source.time[index]
        target.born[place] = source.born[index]
        target.source[place] = source.source[index]
        target.value[place] = source.value[index]
        target.row[place] = source.row[index]
        if from_one:
            first += 1
        else:
            second += 1
