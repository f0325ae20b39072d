"""Events out: what finishes leaves in order of time, and becomes other events."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.simulator.kernels.arrays import DEAD, GIVING, NONE, ONE_OF, T_OUT, TABLE, TIMED_OUT, WHOLE
from penstock.simulator.kernels.draw import uniform
from penstock.simulator.kernels.settle import leave, settle


@njit(cache=True)
def _given(work: Any, value: int, counts: Any) -> None:
    """How many events each stream gets for one event."""
    rule = work.rules[0]
    streams = len(counts)
    if rule == TABLE:
        for stream in range(streams):
            counts[stream] = work.counts[stream, value]
        return
    if rule == WHOLE:
        for stream in range(streams):
            counts[stream] = int(work.share[stream])
        return
    draw = uniform(work.drawn, GIVING)
    if rule == ONE_OF:
        for stream in range(streams):
            counts[stream] = 1 if 0.0 <= draw < work.share[stream] else 0
            draw -= work.share[stream]
        return
    for stream in range(streams):
        whole = math.floor(work.share[stream])
        counts[stream] = int(whole) + (1 if draw < work.share[stream] - whole else 0)


@njit(cache=True)
def give(
    queue: Any, replicas: Any, work: Any, until: float, outputs: Any, filled: Any, tracking: Any, tally: Any
) -> bool:
    """Let everything that finishes by `until` leave, in order of time; False where the outputs are full.

    `outputs` are Events with a first axis for the edges, `filled` the events that each edge has.
    """
    start_, finish_, born_, source_, value_, _, next_, fate_, size, left = queue
    head, tail, unfinished, waiting, held, _, processed, spent, _, dropped, emitted = replicas
    time, born, source, value, row = outputs
    first_, stream, rows, table, most = work.first, work.stream, work.rows, work.rules[0] == TABLE, work.rules[2]
    histogram, times, counted, tracked = tally.latency, tally.times, tally.counts, tracking.used[0] == 1
    edges, room, noting = len(filled), time.shape[1], len(left) > 0
    counts = np.zeros(max(len(work.share), 1), np.int64)
    one = edges == 1 and work.rules[0] == WHOLE and work.share[0] == 1.0
    busy, soon, running = np.empty(len(head), np.int64), np.empty(len(head)), 0  # replicas with events
    for replica in range(len(head)):
        if head[replica] != NONE:
            busy[running], soon[running] = replica, finish_[head[replica]]
            running += 1
    while running > 0:
        at = 0
        for place in range(1, running):
            if soon[place] < soon[at] or (soon[place] == soon[at] and busy[place] < busy[at]):
                at = place
        replica, now = busy[at], soon[at]
        if now > until:
            break
        index = head[replica]
        if fate_[index] & TIMED_OUT:
            dropped[replica, T_OUT] += 1
            settle(tracking, tally, source_[index], born_[index], now, 0, True)
        else:
            parts = 0
            for edge in range(edges):
                if filled[edge] + most > room:
                    return False
            if edges > 0 and not one:
                _given(work, value_[index], counts)
            for edge in range(edges):
                count = 1 if one else counts[stream[edge]]
                first = first_[edge, value_[index]] if table else first_[edge, 0] + value_[index]
                for part in range(count):
                    place = filled[edge] + part
                    time[edge, place] = now
                    born[edge, place] = born_[index]
                    source[edge, place] = source_[index]
                    value[edge, place] = first + part if table else first
                    row[edge, place] = rows[edge] + replica
                filled[edge] += count
                emitted[replica, edge] += count
                parts += count
            processed[replica] += 1
            spent[replica] += now - start_[index]
            if tracked:
                settle(tracking, tally, source_[index], born_[index], now, parts, False)
            elif parts == 0:
                leave(histogram, times, counted, now - born_[index])
        if noting:
            left[size[2], 0], left[size[2], 1], left[size[2], 2] = index, replica, fate_[index]
            size[2] += 1
        fate_[index] = DEAD
        held[replica] -= 1
        size[1] -= 1
        after = next_[index]
        if unfinished[replica] == index:
            unfinished[replica] = after
            waiting[replica] -= 1
        head[replica] = after
        if after != NONE:
            soon[at] = finish_[after]
        else:
            tail[replica] = NONE
            running -= 1
            busy[at], soon[at] = busy[running], soon[running]
    if size[1] == 0:
        size[0] = 0
    return True
