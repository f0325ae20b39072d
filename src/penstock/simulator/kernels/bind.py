"""Events bound late: they wait in one place, in order of arrival, until a replica has room."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.simulator.kernels.arrays import ARRIVED, COUNTED, GONE, NONE, PROCESSED, Q_SIZE, SERVICE, TIMED_OUT
from penstock.simulator.kernels.draw import uniform
from penstock.simulator.kernels.settle import settle


@njit(cache=True)
def _pass_by(finish: Any, following: Any, unfinished: Any, waiting: Any, replica: int, now: float) -> None:
    """Let the replica's first unfinished event be the one at this time."""
    index = unfinished[replica]
    while index != NONE and finish[index] <= now:
        index = following[index]
        waiting[replica] -= 1
    unfinished[replica] = index


@njit(cache=True)
def _room_at(
    finish: Any, following: Any, unfinished: Any, waiting: Any, ready: Any, replica: int, now: float, credit: int
) -> float:
    """From when on the replica has room for one event more; passes by what is finished now."""
    _pass_by(finish, following, unfinished, waiting, replica, now)
    at = max(now, ready[replica])
    if waiting[replica] < credit:
        return at  # type: ignore[no-any-return]
    index = unfinished[replica]
    for _ in range(waiting[replica] - credit):
        index = following[index]
    return max(at, finish[index])  # type: ignore[no-any-return]


@njit(cache=True)
def bind(
    held: Any,
    origin: Any,
    queue: Any,
    replicas: Any,
    work: Any,
    binding: Any,
    routes: Any,
    limits: Any,
    until: float,
    tracking: Any,
    tally: Any,
) -> int:
    """Book held events, the oldest first, at the replicas with most free credit; says how many of the first are booked.

    An event is booked as soon as it is here and an active replica has room. `limits` are the hop delay, t_out and the
    events that may be here in all; what finds as many is GONE, and counted at the first active replica.
    """
    time, born, source, value, row, flags = held
    start_, finish_, born_, source_, value_, row_, next_, fate_, size, _ = queue
    head, tail, unfinished, waiting, booked, free, _, _, received, dropped, _ = replicas
    active, count = routes.active, routes.length[0]
    turn, ready, credit = binding.turn, binding.ready, binding.credit[0]
    service, drawn = work.service, work.drawn
    exponential, by_value = work.rules[1] == 1, len(service) > 1
    hop, t_out, most = limits[0], limits[1], limits[2]
    now, first, here, lost, fill = binding.clock[0], 0, 0, 0, size[0]
    while here < len(time) and flags[here] & ARRIVED:
        here += 1
    while True:
        while first < here and flags[first] & GONE:
            first, lost = first + 1, lost - 1
        room = np.inf
        if first < here:
            for place in range(count):
                at = _room_at(finish_, next_, unfinished, waiting, ready, active[place], now, credit)
                room = min(room, at)
                if at <= now:
                    break
        arrival = time[here] + hop if here < len(time) else np.inf
        if min(room, arrival) > until:
            break
        if arrival < room:
            now = max(now, arrival)
            if most < np.inf:
                present = here - first - lost
                for replica in range(len(head)):
                    _pass_by(finish_, next_, unfinished, waiting, replica, now)
                    present += waiting[replica]
                if present >= most:
                    if not flags[here] & COUNTED:
                        received[active[0], origin[row[here]]] += 1
                    dropped[active[0], Q_SIZE] += 1
                    settle(tracking, tally, source[here], born[here], now, 0, True)
                    flags[here] |= GONE
                    here, lost = here + 1, lost + 1
                    continue
            flags[here] |= ARRIVED
            here += 1
            continue
        now = room
        best, most_free = NONE, 0
        for place in range(count):
            replica = active[place]
            if _room_at(finish_, next_, unfinished, waiting, ready, replica, now, credit) > now:
                continue
            left = credit - waiting[replica]
            if best == NONE or left > most_free or (left == most_free and turn[replica] < turn[best]):
                best, most_free = replica, left
        binding.turns[0] += 1
        turn[best] = binding.turns[0]
        if not flags[first] & COUNTED:
            received[best, origin[row[first]]] += 1
        start = max(now, free[best])
        finish, fate = start, TIMED_OUT
        if start - born[first] <= t_out:
            needed = service[value[first] if by_value else 0]
            if exponential:
                needed *= -math.log(1.0 - uniform(drawn, SERVICE))
            finish, fate = start + needed, PROCESSED
        free[best] = finish
        start_[fill], finish_[fill], born_[fill], source_[fill] = start, finish, born[first], source[first]
        value_[fill], row_[fill], next_[fill], fate_[fill] = value[first], row[first], NONE, fate
        if tail[best] == NONE:
            head[best] = fill
        else:
            next_[tail[best]] = fill
        tail[best] = fill
        if unfinished[best] == NONE:
            unfinished[best] = fill
        waiting[best] += 1
        booked[best] += 1
        fill, first = fill + 1, first + 1
    binding.clock[0] = until
    size[1] += fill - size[0]
    size[0] = fill
    return first
