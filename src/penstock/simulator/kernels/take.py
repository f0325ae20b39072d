"""Events in: the grouping chooses a replica for each, and it is queued there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.grouping.kernels import all_full, go_round, in_turn, least_used
from penstock.simulator.kernels.arrays import (
    ASKED,
    CHOSEN,
    FIELDS,
    LOAD_BALANCING,
    LOST,
    NONE,
    PROCESSED,
    Q_SIZE,
    SERVICE,
    SHUFFLE,
    TIMED_OUT,
)
from penstock.simulator.kernels.draw import uniform
from penstock.simulator.kernels.settle import settle


@njit(cache=True)
def free_first(free: Any, active: Any, count: int) -> int:
    """Least work: the replica that is free first."""
    best = active[0]
    for place in range(1, count):
        if free[active[place]] < free[best]:
            best = active[place]
    return best  # type: ignore[no-any-return]


@njit(cache=True)
def route(events: Any, work: Any, senders: Any, routes: Any, kind: int) -> Any:
    """The replica for each event, as `take` would choose it."""
    turn, used, last, step, order, first = senders
    active, count, key = routes.active, routes.length[0], work.key
    row, value, keyed = events.row, events.value, len(work.key) > 1
    chosen = np.empty(len(row), np.int64)
    for place in range(len(row)):
        if kind == SHUFFLE:
            chosen[place] = in_turn(turn, row[place], active, count)
        elif kind == LOAD_BALANCING:
            if all_full(used, order, first, row[place]):
                go_round(used, last, order, first, row[place], count)
            chosen[place] = least_used(turn, used, last, step, order, first, row[place], count)
        else:
            chosen[place] = active[key[value[place] if keyed else 0] % count]
    return chosen


@njit(cache=True)
def _full(queue: Any, unfinished: Any, waiting: Any, replica: int, arrival: float, room: int) -> bool:
    """Whether the replica holds as many events as it may when this one arrives.

    One that arrived at the same moment is still there, even if it takes no time.
    """
    start, finish, following = queue[0], queue[1], queue[6]
    index = unfinished[replica]
    while index != NONE and finish[index] <= arrival and start[index] < arrival:
        index = following[index]
        waiting[replica] -= 1
    unfinished[replica] = index
    return waiting[replica] >= room  # type: ignore[no-any-return]


@njit(cache=True)
def take(
    events: Any,
    origin: Any,
    queue: Any,
    replicas: Any,
    work: Any,
    senders: Any,
    routes: Any,
    kind: int,
    chosen: Any,
    asked: Any,
    limits: Any,
    tracking: Any,
    tally: Any,
) -> None:
    """Queue events at the replicas that the grouping chooses; start and finish are known at once.

    `origin` has the sending operator of each row; `limits` are the hop delay, t_out and the events that one replica
    may hold. Where the grouping has decided already, `chosen` are the replicas and `asked` the events with a request
    (LOST afterwards where the event was dropped).
    """
    start_, finish_, born_, source_, value_, row_, next_, fate_, size, _ = queue
    head, tail, unfinished, waiting, held, free, _, _, received, dropped, _ = replicas
    turn, used, last, step, order, first = senders
    time, born, source, value, row = events
    active, count = routes.active, routes.length[0]
    service, key, drawn = work.service, work.key, work.drawn
    exponential, by_value, keyed = work.rules[1] == 1, len(service) > 1, len(key) > 1
    hop, t_out, bounded = limits[0], limits[1], limits[2] < np.inf
    room = int(limits[2]) if bounded else 0
    fill = size[0]
    for place in range(len(time)):
        arrival = time[place] + hop
        if kind == SHUFFLE:
            replica = in_turn(turn, row[place], active, count)
        elif kind == LOAD_BALANCING:
            if all_full(used, order, first, row[place]):
                go_round(used, last, order, first, row[place], count)
            replica = least_used(turn, used, last, step, order, first, row[place], count)
        elif kind == FIELDS:
            replica = active[key[value[place] if keyed else 0] % count]
        elif kind == CHOSEN:
            replica = chosen[place]
        else:
            replica = free_first(free, active, count)
        received[replica, origin[row[place]]] += 1
        if bounded:
            if _full(queue, unfinished, waiting, replica, arrival, room):
                dropped[replica, Q_SIZE] += 1
                if kind == CHOSEN and asked[place]:
                    asked[place] = LOST
                settle(tracking, tally, source[place], born[place], arrival, 0, True)
                continue
            if unfinished[replica] == NONE:
                unfinished[replica] = fill
            waiting[replica] += 1
        start = max(arrival, free[replica])
        finish = start
        fate = TIMED_OUT
        if start - born[place] <= t_out:
            needed = service[value[place] if by_value else 0]
            if exponential:
                needed *= -math.log(1.0 - uniform(drawn, SERVICE))
            finish += needed
            fate = PROCESSED
        free[replica] = finish
        start_[fill] = start
        finish_[fill] = finish
        born_[fill] = born[place]
        source_[fill] = source[place]
        value_[fill] = value[place]
        row_[fill] = row[place]
        next_[fill] = NONE
        fate_[fill] = fate + ASKED if kind == CHOSEN and asked[place] else fate
        if tail[replica] == NONE:
            head[replica] = fill
        else:
            next_[tail[replica]] = fill
        tail[replica] = fill
        held[replica] += 1
        fill += 1
    size[1] += fill - size[0]
    size[0] = fill
