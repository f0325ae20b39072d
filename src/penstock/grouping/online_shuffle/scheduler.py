"""The sender's side: the greedy scheduler, and how its estimates are kept true.

    ROUND_ROBIN ─B─► SEND_ALL ─C─► WAIT_ALL ─E─► RUN       F: a new sketch leads back to SEND_ALL

A: in ROUND_ROBIN, sketches are collected; events go round. B: every active replica's sketch is here. SEND_ALL: the next
k events go round, each with a request (epoch, Ĉ). C: all were asked. D: replies of this epoch are collected; old ones
are ignored. E: all are here, and Ĉ += Δ. WAIT_ALL and RUN: each event goes to the active replica of least Ĉ, ties in
turn; then Ĉ grows by the estimate of that replica's own sketch.

Where the paper is silent, or assumes that nothing gets lost and nobody comes or goes:

- A sketch that comes in SEND_ALL or WAIT_ALL is used at once, but its own epoch begins when the one under way has
  ended. Otherwise no epoch ends where sketches come faster than replies, and Ĉ is never corrected.
- After `patience` events without all replies, E happens with those that are here; the others get the mean Δ.
- In ROUND_ROBIN, Ĉ counts events; B turns them into time, at the mean of the sketches. The first E makes it exact.
- A replica that joins starts at the least Ĉ of those that stay; at 0 it would get every event. What it got from
  this sender before is taken out of its requests by `start`. Without sketch, its events take the mean.
- A replica that leaves is forgotten: its sketch, its request, its reply.
- C never shrinks. A reply that says so comes from a replica that started anew; it gets the mean Δ, and counts from
  there.

Paper: DABS-Storm, TLDKS 2019, §5.2, figure 7a.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from penstock.grouping.online_shuffle.correction import correct
from penstock.grouping.online_shuffle.hashing import cell
from penstock.grouping.online_shuffle.sketch import OMEGA, PHI, copy
from penstock.grouping.online_shuffle.state import ROUND_ROBIN, RUN, SEND_ALL, WAIT_ALL, Schedulers


@njit(cache=True)
def choose(s: Any, row: int, key: int) -> tuple[int, int, float]:
    """The replica for an event, and the epoch and Ĉ of the request that goes with it; epoch 0: none does."""
    status = s.status[row]
    if status.state == SEND_ALL:
        return _ask(s, row, key)
    if status.state == ROUND_ROBIN:
        return _send(s, row, status.turn, 1.0), 0, 0.0
    place = _least_loaded(s.receivers, row, status.turn, status.count)
    replica = _send(s, row, place, _estimate_s(s, row, place, key))
    if status.state == WAIT_ALL and status.since >= status.patience:
        _synchronise(s, row)
    return replica, 0, 0.0


@njit(cache=True)
def choose_all(s: Any, row: int, keys: Any, chosen: Any, requests: Any) -> int:
    """The replicas for a bundle, into `chosen`; returns how many `requests` were filled in."""
    count = 0
    for event in range(len(keys)):
        if s.status[row].state == RUN:
            _choose_running(s.coefficients, s.sketches, s.receivers, s.status, row, keys[event:], chosen[event:])
            break
        replica, epoch, estimate_s = choose(s, row, keys[event])
        chosen[event] = replica
        if epoch > 0:
            request = requests[count]
            request.event, request.replica, request.epoch = event, replica, epoch
            request.estimate_s = estimate_s
            count += 1
    return count


@njit(cache=True)
def _choose_running(
    coefficients: Any, sketches: Any, receivers: Any, status: Any, row: int, keys: Any, chosen: Any
) -> None:
    """The same as `choose` for many events in RUN, in which no event changes the state; three times as fast."""
    count, turn, mean_s = status[row].count, status[row].turn, status[row].mean_s
    for event in range(len(keys)):
        place = _least_loaded(receivers, row, turn, count)
        replica = receivers[row, place].listed
        receivers[row, replica].load += _time_s(coefficients, sketches, receivers, row, replica, keys[event], mean_s)
        turn = place + 1 if place + 1 < count else 0
        chosen[event] = replica
    status[row].turn = turn
    status[row].since += len(keys)


@njit(cache=True)
def choose_one(coefficients: Any, sketches: Any, receivers: Any, status: Any, key: int) -> tuple[int, int, float]:
    """The same as `choose` for row 0; called from Python with the arrays one by one, it takes half the time."""
    return choose(Schedulers(coefficients, sketches, receivers, status), 0, key)


@njit(cache=True)
def take_sketch(s: Any, row: int, replica: int, sketch: Any) -> None:
    """A and F: a replica's stable sketch; nothing if the replica is not active."""
    status, receiver = s.status[row], s.receivers[row, replica]
    if not receiver.active:
        return
    copy(sketch, s.sketches[row, replica])
    receiver.known = 1
    _take_mean(s, row)
    if status.state == ROUND_ROBIN:
        _leave_round_robin(s, row)
    elif status.state == RUN:
        _begin_epoch(status)
    elif status.since > 0:
        status.again = 1


@njit(cache=True)
def take_reply(s: Any, row: int, replica: int, epoch: int, delta_s: float) -> None:
    """D: how far Ĉ is off; nothing if this was not asked in this epoch, or has been answered."""
    status, receiver = s.status[row], s.receivers[row, replica]
    waiting = status.state == SEND_ALL or status.state == WAIT_ALL
    if not waiting or epoch != status.epoch or not math.isfinite(delta_s) or not _awaited(status, receiver):
        return
    receiver.delta = delta_s
    receiver.heard = epoch
    _settle(s, row)


@njit(cache=True)
def set_active(s: Any, row: int, active: Any, count: int) -> None:
    """From now on, events go to the first `count` replicas of `active`; at least one."""
    status, each = s.status[row], s.receivers[row]
    for place in range(count):
        each[active[place]].active += 2  # 1: leaves, 2: joins, 3: stays
    level = _level(each)
    for receiver in each:
        if receiver.active == 1 or receiver.active == 2:
            _forget(receiver)
        if receiver.active == 2:
            _join(receiver, level)
        receiver.active = 1 if receiver.active >= 2 else 0
    for place in range(count):
        each[place].listed = active[place]
    status.count = count
    status.turn = status.first % count
    if status.state == ROUND_ROBIN:
        _leave_round_robin(s, row)
    _settle(s, row)


@njit(cache=True)
def _level(each: Any) -> float:
    """Where those that join begin: at the least Ĉ of those that stay; if nobody does, of those that leave."""
    level = _least(each, 3)
    if level == math.inf:
        level = _least(each, 1)
    return level if level < math.inf else 0.0


@njit(cache=True)
def _least(each: Any, mark: int) -> float:
    """The least Ĉ of the replicas with this mark; infinite if there are none."""
    least = math.inf
    for receiver in each:
        if receiver.active == mark and receiver.load < least:
            least = receiver.load
    return least


@njit(cache=True)
def _forget(receiver: Any) -> None:
    receiver.known, receiver.asked, receiver.heard = 0, 0, 0


@njit(cache=True)
def _join(receiver: Any, level: float) -> None:
    receiver.start += level - receiver.load
    receiver.load, receiver.floor = level, level


@njit(cache=True, inline="always")
def _least_loaded(receivers: Any, row: int, turn: int, count: int) -> int:
    """Where in the list of active replicas the one of least Ĉ is; of several, the next in turn."""
    best, least = turn, math.inf
    for step in range(count):
        place = turn + step if turn + step < count else turn + step - count
        load = receivers[row, receivers[row, place].listed].load
        if load < least:
            best, least = place, load
    return best


@njit(cache=True, inline="always")
def _send(s: Any, row: int, place: int, added: float) -> int:
    """Give an event to the replica at this place: it adds to its Ĉ, and the next in turn is the one behind."""
    status, replica = s.status[row], s.receivers[row, place].listed
    s.receivers[row, replica].load += added
    status.turn = place + 1 if place + 1 < status.count else 0
    status.since += 1
    return replica  # type: ignore[no-any-return]


@njit(cache=True, inline="always")
def _time_s(coefficients: Any, sketches: Any, receivers: Any, row: int, replica: int, key: int, mean_s: float) -> float:
    """The estimated time of an event by the replica's own sketch; the mean if there is none, or not of this key.

    The same as `sketch.estimate`, without taking the sketch out of the array of all, which costs more than the rest.
    """
    count, time_s = math.inf, 0.0
    for line in range(sketches.shape[3]):
        column = cell(coefficients, line, key, sketches.shape[4])
        if sketches[row, replica, PHI, line, column] < count:
            count = sketches[row, replica, PHI, line, column]
            time_s = sketches[row, replica, OMEGA, line, column]
    return time_s / count if count > 0.0 and receivers[row, replica].known else mean_s


@njit(cache=True)
def _estimate_s(s: Any, row: int, place: int, key: int) -> float:
    """The estimated time of an event at the replica in this place of the list."""
    replica = s.receivers[row, place].listed
    return _time_s(s.coefficients, s.sketches, s.receivers, row, replica, key, s.status[row].mean_s)


@njit(cache=True)
def _ask(s: Any, row: int, key: int) -> tuple[int, int, float]:
    """SEND_ALL: an event and a request to the next in turn that has not been asked."""
    status, each, place = s.status[row], s.receivers[row], s.status[row].turn
    while each[each[place].listed].asked == status.epoch:
        place = (place + 1) % status.count
    replica = _send(s, row, place, _estimate_s(s, row, place, key))
    epoch, receiver = status.epoch, each[replica]
    receiver.asked, receiver.told = epoch, receiver.load
    _settle(s, row)
    return replica, epoch, receiver.told - receiver.start


@njit(cache=True)
def _take_mean(s: Any, row: int) -> None:
    """The mean time of an event over all sketches that are here."""
    count, time_s = 0.0, 0.0
    for replica in range(s.receivers.shape[1]):
        if s.receivers[row, replica].known:
            for column in range(s.sketches.shape[4]):
                count += s.sketches[row, replica, PHI, 0, column]
                time_s += s.sketches[row, replica, OMEGA, 0, column]
    if count > 0.0:
        s.status[row].mean_s = time_s / count


@njit(cache=True)
def _leave_round_robin(s: Any, row: int) -> None:
    """B, if every active replica's sketch is here: Ĉ in events becomes Ĉ in seconds."""
    status, each = s.status[row], s.receivers[row]
    for receiver in each:
        if receiver.active and not receiver.known:
            return
    for receiver in each:
        receiver.load *= status.mean_s
        receiver.start *= status.mean_s
        receiver.floor *= status.mean_s
    _begin_epoch(status)


@njit(cache=True)
def _begin_epoch(status: Any) -> None:
    status.state = SEND_ALL
    status.epoch += 1
    status.since, status.again = 0, 0


@njit(cache=True)
def _awaited(status: Any, receiver: Any) -> bool:
    return receiver.asked == status.epoch and receiver.heard != status.epoch  # type: ignore[no-any-return]


@njit(cache=True)
def _settle(s: Any, row: int) -> None:
    """C, if every active replica was asked; E, if every one of them has answered."""
    status, each = s.status[row], s.receivers[row]
    if status.state == SEND_ALL:
        for receiver in each:
            if receiver.active and receiver.asked != status.epoch:
                return
        status.state = WAIT_ALL
    if status.state == WAIT_ALL:
        for receiver in each:
            if _awaited(status, receiver):
                return
        _synchronise(s, row)


@njit(cache=True)
def _synchronise(s: Any, row: int) -> None:
    """E: correct every Ĉ, by the replica's own Δ or else by the mean of the others'."""
    status = s.status[row]
    correct(status, s.receivers[row])
    status.state = RUN
    if status.again:
        _begin_epoch(status)
