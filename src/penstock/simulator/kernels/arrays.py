"""The arrays that the kernels work on, one named group for each thing that they belong to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.int8]

SHUFFLE, FIELDS, LOAD_BALANCING, LEAST_WORK, CHOSEN = 0, 1, 2, 3, 4  # groupings; CHOSEN: decided beforehand
PULL = 5  # has a kernel of its own
NONE = -1  # the end of a list
BUCKETS = 1024  # of the latency histogram; the last one holds whatever is longer

DEAD, PROCESSED, TIMED_OUT, ASKED = -1, 0, 1, 2  # fates of an event; ASKED is added where a request goes with it
LOST = -1  # a request whose event was dropped
ARRIVED, COUNTED, GONE = 1, 2, 4  # of a held event: it was let in; it counts as received already; it was dropped
Q_SIZE, T_OUT, RESTART = 0, 1, 2  # causes of a drop
CAUSES = ("q_size", "t_out", "restart")


class Events(NamedTuple):
    """Events on their way to an operator, in order of time."""

    time: Floats  # when each left its sender
    born: Floats  # when its source event entered
    source: Ints  # number of its source event
    value: Small  # what it is, as an index into the operator's tables
    row: Small  # which sender it comes from


class Held(NamedTuple):
    """Events that wait in front of an operator until a replica has room, in order of time."""

    time: Floats
    born: Floats
    source: Ints
    value: Small
    row: Small
    flags: Flags  # ARRIVED, COUNTED, GONE


class Binding(NamedTuple):
    """What is known of an operator's replicas where events are bound late."""

    turn: Ints  # when each was last chosen
    ready: Floats  # from when on each may be given something
    credit: Ints  # the events that one replica may have unfinished
    turns: Ints  # events bound so far
    clock: Floats  # up to when all that could be bound was


class Queue(NamedTuple):
    """Events at one operator, in order of arrival; through them runs one list for each replica."""

    start: Floats
    finish: Floats
    born: Floats
    source: Ints
    value: Small
    row: Small
    next: Ints
    fate: Flags
    size: Ints  # places filled, events alive, events noted in `left`
    left: Ints  # place, replica and fate of the events that left, in order; kept where the grouping needs it


class Replicas(NamedTuple):
    """The replicas of one operator: where their lists begin and end, when they are free, and what they counted."""

    head: Ints
    tail: Ints
    unfinished: Ints  # the first event not finished when the last one arrived; kept where a queue is bounded
    waiting: Ints  # events from there on
    held: Ints  # events in its list
    free: Floats
    processed: Ints
    busy: Floats
    received: Ints  # by replica and sending operator
    dropped: Ints  # by replica and cause
    emitted: Ints  # by replica and output edge


class Work(NamedTuple):
    """What an operator does with an event, by the event's value."""

    service: Floats  # seconds
    key: Ints  # stable hash of the key
    counts: Small  # events given, by stream and value, where there is a table of them
    first: Small  # value of the first event given, by edge and value; without a table, what is added to the value
    share: Floats  # selectivity by stream
    stream: Ints  # of each edge
    rows: Ints  # the first row that each edge has at its receiver
    rules: Ints  # how counts come about, whether service times are exponential, the most events for one
    drawn: NDArray[np.uint64]  # states of the random numbers, by purpose


SERVICE, GIVING = 0, 1  # purposes of random numbers: drawn apart, as service times come before what is given
TABLE, WHOLE, ONE_OF, ALIKE = 0, 1, 2, 3  # how many events are given: see `model.giving`


class Tracking(NamedTuple):
    """Source events in flight, as a ring; not used where no event ever becomes two."""

    parts: Small  # derived events that are still on their way
    last: Floats  # when the last of them left
    failed: Flags
    base: Ints  # the oldest one in flight, and the number of the next
    used: Ints  # 1 where tracking is on


class Tally(NamedTuple):
    """What became of the source events so far."""

    latency: Ints  # histogram
    times: Floats  # total and greatest latency in s, the target in s
    counts: Ints  # out, failed, late


class Routes(NamedTuple):
    """Who of an operator's replicas gets events."""

    active: Ints
    length: Ints  # how many of them


def empty_events(shape: int | tuple[int, int]) -> Events:
    """Room for events."""
    return Events(
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, np.int64),
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
    )


def empty_queue(room: int, *, noting: bool) -> Queue:
    """Room for queued events; `noting` keeps those that leave."""
    return Queue(
        start=np.empty(room),
        finish=np.empty(room),
        born=np.empty(room),
        source=np.empty(room, np.int64),
        value=np.empty(room, np.int32),
        row=np.empty(room, np.int32),
        next=np.empty(room, np.int64),
        fate=np.empty(room, np.int8),
        size=np.zeros(3, np.int64),
        left=np.empty((room if noting else 0, 3), np.int64),
    )


def empty_replicas(pool: int, senders: int, edges: int) -> Replicas:
    """Replicas that have nothing to do and have done nothing."""
    return Replicas(
        head=np.full(pool, NONE),
        tail=np.full(pool, NONE),
        unfinished=np.full(pool, NONE),
        waiting=np.zeros(pool, np.int64),
        held=np.zeros(pool, np.int64),
        free=np.zeros(pool),
        processed=np.zeros(pool, np.int64),
        busy=np.zeros(pool),
        received=np.zeros((pool, senders), np.int64),
        dropped=np.zeros((pool, len(CAUSES)), np.int64),
        emitted=np.zeros((pool, edges), np.int64),
    )
