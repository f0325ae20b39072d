"""The simulator's inner loops, compiled: events in at one operator, events out at the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from penstock.grouping.kernels import in_turn, least_used
from penstock.metrics.latency import FLOOR_MS, GROWTH
from penstock.simulator.arrays import (
    ASKED,
    BUCKETS,
    GIVING,
    LOST,
    NONE,
    ONE_OF,
    PROCESSED,
    Q_SIZE,
    SERVICE,
    T_OUT,
    TABLE,
    TIMED_OUT,
    WHOLE,
)

SHUFFLE, FIELDS, LOAD_BALANCING, LEAST_WORK, CHOSEN = 0, 1, 2, 3, 4
_LOG_GROWTH = math.log(GROWTH)
_DEAD = -1


@njit(cache=True)
def uniform(state: Any, purpose: int) -> float:
    """The next random number of 0..1 (xorshift64*), of those for this purpose."""
    x = state[purpose]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[purpose] = x
    return ((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)  # type: ignore[no-any-return]


@njit(cache=True)
def bucket_of(latency_s: float) -> int:
    """The bucket of the latency histogram, as in metrics.latency."""
    latency_ms = 1000.0 * latency_s
    if latency_ms <= FLOOR_MS:
        return 0
    return min(int(math.log(latency_ms / FLOOR_MS) / _LOG_GROWTH), BUCKETS - 1)


@njit(cache=True)
def free_first(free: Any, active: Any, count: int) -> int:
    """Least work: the replica that is free first."""
    best = active[0]
    for place in range(1, count):
        if free[active[place]] < free[best]:
            best = active[place]
    return best  # type: ignore[no-any-return]


@njit(cache=True)
def leave(histogram: Any, times: Any, counts: Any, latency_s: float) -> None:
    """A source event has left for good."""
    histogram[bucket_of(latency_s)] += 1
    times[0] += latency_s
    if latency_s > times[1]:
        times[1] = latency_s
    if latency_s > times[2]:
        counts[2] += 1
    counts[0] += 1


@njit(cache=True)
def settle(tracking: Any, tally: Any, source: int, born: float, time: float, parts: int, failed: bool) -> None:
    """One derived event became `parts` others, at this time; with none left its source event is out, or failed."""
    if tracking.used[0] == 0:
        if failed:
            tally.counts[1] += 1
        elif parts == 0:
            leave(tally.latency, tally.times, tally.counts, time - born)
        return
    pending, last, broken, window, _ = tracking
    place = source % len(pending)
    pending[place] += parts - 1
    if failed:
        broken[place] = 1
    elif parts == 0 and time > last[place]:
        last[place] = time
    if pending[place] > 0:
        return
    if broken[place]:
        tally.counts[1] += 1
    else:
        leave(tally.latency, tally.times, tally.counts, last[place] - born)
    base = window[0]
    while base < window[1] and pending[base % len(pending)] == 0:
        base += 1
    window[0] = base


@njit(cache=True)
def settle_all(tracking: Any, tally: Any, events: Any) -> None:
    """All these events are lost."""
    for place in range(len(events.time)):
        settle(tracking, tally, events.source[place], events.born[place], events.time[place], 0, True)


@njit(cache=True)
def enter(tracking: Any, sources: Any, copies: int) -> None:
    """Source events enter, each in so many copies."""
    for source in sources:
        place = source % len(tracking.parts)
        tracking.parts[place] = copies
        tracking.last[place] = 0.0
        tracking.failed[place] = 0
        tracking.base[1] = source + 1


@njit(cache=True)
def _full(finish: Any, following: Any, unfinished: Any, waiting: Any, replica: int, arrival: float, room: int) -> bool:
    """Whether the replica holds as many events as it may when this one arrives."""
    index = unfinished[replica]
    while index != NONE and finish[index] <= arrival:
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
    turn, used, last, step = senders
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
            replica = least_used(turn, used, last, step, row[place], active, count)
        elif kind == FIELDS:
            replica = active[(key[value[place]] if keyed else 0) % count]
        elif kind == CHOSEN:
            replica = chosen[place]
        else:
            replica = free_first(free, active, count)
        received[replica, origin[row[place]]] += 1
        if bounded:
            if _full(finish_, next_, unfinished, waiting, replica, arrival, room):
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
        fate_[index] = _DEAD
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


@njit(cache=True)
def compact(queue: Any, replicas: Any, target: Any) -> None:
    """Copy the events that are alive into `target`, in the same order."""
    fill = queue.size[0]
    moved = np.full(fill, NONE, np.int64)
    alive = 0
    for index in range(fill):
        if queue.fate[index] == _DEAD:
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
