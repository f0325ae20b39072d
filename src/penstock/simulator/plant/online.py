"""Online shuffle in the simulator: the schedulers and sketches of a run on Spark, for all senders of an operator.

Replicas report what they have executed every `REPORT_S`, as they do on Spark; until then senders do not know.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.grouping.online_shuffle.scheduler import choose, set_active, take_reply, take_sketch
from penstock.grouping.online_shuffle.sketchers import Sketchers, answer, execute, sketchers
from penstock.grouping.online_shuffle.state import Schedulers, schedulers
from penstock.simulator.kernels.arrays import ASKED, LOST, TIMED_OUT, Events, Flags, Floats, Ints, Queue

REPORT_S = 0.5


class Messages(NamedTuple):
    """What is on its way between senders (rows) and replicas (columns)."""

    asked: Ints  # epoch of the last request
    estimate: Floats  # what it told
    marks: Ints  # events with a request that are queued
    epoch: Ints  # of the reply that waits to be delivered; 0: none
    delta: Floats
    sketched: Flags  # by replica: whether a new sketch waits to be delivered


class OnlineSide:
    """Schedulers of all senders to one operator, sketches of all its replicas, and what they tell each other."""

    def __init__(self, rows: int, pool: int, keys: Ints, options: OnlineShuffleOptions) -> None:
        self._schedulers: Schedulers = schedulers(rows, pool, options)
        self._sketchers: Sketchers = sketchers(pool, rows, options)
        self._keys = keys
        shape = (rows, pool)
        self._messages = Messages(
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.zeros(shape),
            np.zeros(pool, np.int8),
        )

    def activate(self, active: Ints) -> None:
        """Send to these replicas from now on."""
        for row in range(len(self._schedulers.status)):
            set_active(self._schedulers, row, active, len(active))

    def seat(self, row: int, number: int) -> None:
        """Let a sender's rounds begin at another place."""
        self._schedulers.status["first"][row] = number

    def assign(self, events: Events) -> tuple[Ints, Flags]:
        """The replica for each event, and whether a request goes with it."""
        chosen, asked = np.empty(len(events.time), np.int64), np.zeros(len(events.time), np.int8)
        _assign(self._schedulers, self._messages, events, self._keys, chosen, asked)
        return chosen, asked

    def taken(self, events: Events, chosen: Ints, asked: Flags) -> None:
        """Some of the events that were assigned found a full queue: their requests are lost."""
        lost = asked == LOST
        np.subtract.at(self._messages.marks, (events.row[lost], chosen[lost]), 1)

    def executed(self, queue: Queue, popped: Ints) -> None:
        """Replicas have executed the events at these places of the queue, in this order."""
        _executed(self._sketchers, self._messages, queue, popped, self._keys)

    def deliver(self) -> None:
        """All that replicas have to tell reaches the senders."""
        _deliver(self._schedulers, self._sketchers.stable, self._messages)

    def restart(self) -> None:
        """Events that were queued are not any more, nor the requests that went with them."""
        self._messages.marks[:] = 0


@njit(cache=True)
def _assign(s: Any, messages: Any, events: Any, keys: Any, chosen: Any, asked: Any) -> None:
    for place in range(len(chosen)):
        row = events.row[place]
        key = keys[events.value[place] if len(keys) > 1 else 0]
        replica, epoch, estimate_s = choose(s, row, key)
        chosen[place] = replica
        if epoch > 0:
            asked[place] = 1
            messages.asked[row, replica] = epoch
            messages.estimate[row, replica] = estimate_s
            messages.marks[row, replica] += 1


@njit(cache=True)
def _executed(k: Any, messages: Any, queue: Any, popped: Any, keys: Any) -> None:
    for place in range(len(popped)):
        index, replica = popped[place, 0], popped[place, 1]
        row, fate = queue.row[index], popped[place, 2]
        if fate & TIMED_OUT == 0:
            key = keys[queue.value[index] if len(keys) > 1 else 0]
            if execute(k, replica, row, key, queue.finish[index] - queue.start[index]):
                messages.sketched[replica] = 1
        if fate & ASKED and messages.marks[row, replica] > 0:
            messages.marks[row, replica] -= 1
            if messages.marks[row, replica] == 0:  # older requests are out of date
                messages.epoch[row, replica] = messages.asked[row, replica]
                messages.delta[row, replica] = answer(k, replica, row, messages.estimate[row, replica])


@njit(cache=True)
def _deliver(s: Any, stable: Any, messages: Any) -> None:
    rows, pool = messages.epoch.shape
    for row in range(rows):
        for replica in range(pool):
            if messages.epoch[row, replica] > 0:
                take_reply(s, row, replica, messages.epoch[row, replica], messages.delta[row, replica])
                messages.epoch[row, replica] = 0
    for replica in range(pool):
        if messages.sketched[replica]:
            messages.sketched[replica] = 0
            for row in range(rows):
                take_sketch(s, row, replica, stable[replica])
