"""One simulated operator: its queues, its replicas, and who gets its events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from penstock.common.names import one_of
from penstock.errors import InputError
from penstock.grouping.kernels import publish_to, senders
from penstock.grouping.online_shuffle.options import OnlineShuffleOptions
from penstock.metrics.counters import OperatorCounters
from penstock.simulator.kernels.arrays import (
    CHOSEN,
    FIELDS,
    LEAST_WORK,
    LOAD_BALANCING,
    NONE,
    PULL,
    RESTART,
    SHUFFLE,
    Events,
    Flags,
    Floats,
    Ints,
    Routes,
    Tally,
    Tracking,
    empty_events,
    empty_queue,
    empty_replicas,
)
from penstock.simulator.kernels.give import give
from penstock.simulator.kernels.move import compact, holders_of
from penstock.simulator.kernels.settle import settle_all
from penstock.simulator.kernels.take import take
from penstock.simulator.plant.model import OperatorModel
from penstock.simulator.plant.online import OnlineSide
from penstock.simulator.plant.rows import Rows, counted
from penstock.simulator.scenario import Plant

KINDS = {
    "shuffle": SHUFFLE,
    "fields": FIELDS,
    "load_balancing": LOAD_BALANCING,
    "online_shuffle": CHOSEN,
    "least_work": LEAST_WORK,
    "pull": PULL,
}
_NOTHING_CHOSEN = np.zeros(0, np.int64), np.zeros(0, np.int8)
_FIRST_ROOM = 1 << 12


class SimulatedOperator:
    """Takes events and gives events; everything in between is decided by the kernels."""

    def __init__(self, model: OperatorModel, plant: Plant, tracking: Tracking, tally: Tally) -> None:
        self.model = model
        self.name = model.operator.name
        self.pool = model.operator.pool
        one_of(f"{model.operator}: grouping", model.operator.grouping, KINDS)
        self._work = model.work._replace(drawn=model.work.drawn.copy())  # the same numbers for every plant
        self._kind = KINDS[model.operator.grouping]
        self._plant = plant
        self._tracking, self._tally = tracking, tally
        self.online = _online_side(model) if self._kind == CHOSEN else None
        self._queue = empty_queue(_FIRST_ROOM, noting=self.online is not None)
        self._replicas = empty_replicas(self.pool, len(model.senders), len(model.outputs))
        self._senders = senders(len(model.origin), self.pool)
        self._seats = np.full((len(model.origin), 2), -1)  # number and count of the senders, by row
        self.active: tuple[int, ...] = (0,)  # the replicas that get events
        self._routes = Routes(np.arange(self.pool), np.ones(1, np.int64))
        self._used, self._step = np.zeros(self.pool), 0.0
        self._outputs = empty_events((len(model.outputs), _FIRST_ROOM))
        self._filled = np.zeros(len(model.outputs), np.int64)
        self._limits = np.array([plant.hop_s, plant.t_out_s or np.inf, np.inf])
        self.paid_s = np.zeros(self.pool)  # by replica: how long it was active or had events queued
        self._queued = np.zeros(self.pool, bool)  # when it was last counted, and what each had received by then
        self._received = np.zeros(self.pool, np.int64)
        self._bound()
        if self.online:
            self.online.activate(np.zeros(1, np.int64))

    @property
    def backlog(self) -> int:
        """Events sent to it that have not finished."""
        return int(self._queue.size[1])

    @property
    def balances(self) -> bool:
        """Whether its senders look at how used its replicas are."""
        return self._kind == LOAD_BALANCING

    @property
    def dropped(self) -> int:
        """Events it dropped so far."""
        return int(self._replicas.dropped.sum())

    @property
    def _targets(self) -> Routes:
        """What the grouping chooses from."""
        return self._routes

    def take(self, events: Events) -> None:
        """Queue events, given in order of time."""
        if len(events.time):
            chosen, asked = self.online.assign(events) if self.online else _NOTHING_CHOSEN
            self._queue_up(events, self._kind, chosen, asked)

    def _queue_up(self, events: Events, kind: int, chosen: Ints, asked: Flags) -> None:
        self._make_room(len(events.time))
        queue, replicas = self._queue, self._replicas
        known = self._work, self._senders, self._targets, kind, chosen, asked, self._limits
        take(events, self.model.origin, queue, replicas, *known, self._tracking, self._tally)
        if self.online:
            self.online.taken(events, chosen, asked)

    def give(self, until_s: float) -> None:
        """Let leave what finishes by then; `outputs` has it."""
        self._filled[:] = 0
        if not self._queue.size[1]:
            return
        self._queue.size[2] = 0
        while not give(
            self._queue,
            self._replicas,
            self._work,
            until_s,
            self._outputs,
            self._filled,
            self._tracking,
            self._tally,
        ):
            self._widen()
        if self.online:
            self.online.executed(self._queue, self._queue.left[: self._queue.size[2]])

    def pay(self, since_s: float, until_s: float) -> None:
        """Count what the replicas cost in a stretch that has been played.

        One that gets no more events costs until the last that it had has left.
        """
        replicas, queued = self._replicas, self._replicas.held > 0
        received = replicas.received.sum(axis=1)
        worked = self._queued | (received > self._received)
        ends_s = np.where(worked, np.clip(replicas.free, since_s, until_s), since_s)
        ends_s[queued] = until_s
        ends_s[self._routes.active[: self._routes.length[0]]] = until_s
        self.paid_s += ends_s - since_s
        self._queued, self._received = queued, received

    def output(self, edge: int) -> Events:
        """What the last `give` sent along one of the output edges."""
        count = self._filled[edge]
        time, born, source, value, row = self._outputs
        return Events(
            time[edge, :count], born[edge, :count], source[edge, :count], value[edge, :count], row[edge, :count]
        )

    def activate(self, replicas: Sequence[int], now_s: float) -> None:
        """Send to exactly these from now on; new ones work after the activation delay."""
        active = tuple(sorted(replicas))
        wrong = [replica for replica in active if not 0 <= replica < self.pool]
        if wrong or not active or len(set(active)) < len(active):
            raise InputError(
                f"{self.model.operator}: replicas must be among 0..{self.pool - 1}, each once; got {list(replicas)}"
            )
        before = set(self.active)
        self._warm_up([replica for replica in active if replica not in before], now_s)
        self.active = active
        self._routes.active[: len(active)] = active
        self._routes.length[0] = len(active)
        self._bound()
        self._publish()
        if self.online:
            self.online.activate(np.array(active))

    def _warm_up(self, new: Sequence[int], now_s: float) -> None:
        ready_s = now_s + self._plant.activation_delay_s if now_s > 0 else now_s
        self._replicas.free[new] = np.maximum(self._replicas.free[new], ready_s)

    def publish(self, used: Mapping[int, float], step: float) -> None:
        """Take new utilisations."""
        self._used[:] = 0.0
        for replica, value in used.items():
            self._used[replica] = value
        self._step = step
        self._publish()

    def seat(self, active: Mapping[str, Sequence[int]]) -> None:
        """Number the senders anew: a sender whose place among them has changed starts its round again."""
        names, changed = self.model.senders, []
        before = dict(zip(names, np.cumsum([0, *(len(active[name]) for name in names)]), strict=False))
        of = sum(len(active[name]) for name in names)
        for edge in self.model.inputs:
            rows = self._rows(edge.row)
            ranks, sending = np.arange(len(rows)), np.array(active[edge.stream.sender])
            ranks[sending] = np.arange(len(sending))
            numbers = (int(before[edge.stream.sender]) + ranks) % of
            seats = self._seats[rows.start : rows.stop]
            new = (seats[:, 0] != numbers) | (seats[:, 1] != of)
            seats[:, 0], seats[:, 1] = numbers, of
            places = rows.start + np.flatnonzero(new)
            self._senders.turn[places] = numbers[new]
            changed += places.tolist()
        if self.online:
            for row in changed:
                self.online.seat(row, int(self._seats[row, 0]))
        self._publish(changed)

    def restart(self, until_s: float, *, lossy: bool) -> None:
        """Stand still until then; what has not finished is shared out anew, or lost."""
        queue, replicas = self._queue, self._replicas
        alive = np.flatnonzero(queue.fate[: queue.size[0]] >= 0)
        holders = holders_of(queue, replicas)[alive]
        waiting = Events(
            np.full(len(alive), until_s - self._plant.hop_s),
            queue.born[alive],
            queue.source[alive],
            queue.value[alive],
            queue.row[alive],
        )
        queue.size[:] = 0
        if self.online:
            self.online.restart()
        replicas.head[:], replicas.tail[:], replicas.unfinished[:] = NONE, NONE, NONE
        replicas.waiting[:], replicas.held[:], replicas.free[:] = 0, 0, until_s
        self._queued[:] = False
        if lossy:
            np.add.at(replicas.dropped, (holders, RESTART), 1)
            settle_all(self._tracking, self._tally, waiting)
        else:
            received = replicas.received.copy()
            SimulatedOperator.take(self, waiting)  # they are here already
            replicas.received[:] = received  # each was received once

    def counters(self) -> OperatorCounters:
        """The counters now."""
        return OperatorCounters(self._rows_now(), self.active, self.pool, self.backlog)

    def _rows_now(self) -> Rows:
        return counted(self.model, self._replicas)

    def sources_born_before(self, time_s: float) -> list[int]:
        """The source events that entered before then and of which something is here."""
        queue, fill = self._queue, self._queue.size[0]
        old = (queue.fate[:fill] >= 0) & (queue.born[:fill] < time_s)
        return [int(source) for source in queue.source[:fill][old]]

    def track(self, tracking: Tracking) -> None:
        """Keep track of source events there from now on."""
        self._tracking = tracking

    def _rows(self, first: int) -> range:
        """The rows of one edge's senders, one for each of the sender's replicas."""
        later = [edge.row for edge in self.model.inputs if edge.row > first]
        return range(first, min(later, default=len(self.model.origin)))

    def _publish(self, rows: Iterable[int] | None = None) -> None:
        """Tell these senders how used the replicas are, or all."""
        if not self.balances:
            return
        chosen = np.arange(len(self._seats)) if rows is None else np.array(list(rows), np.int64)
        count = int(self._routes.length[0])
        publish_to(self._senders, chosen, self._seats, self._routes.active, count, self._used, self._step)

    def _bound(self) -> None:
        """Each active replica may hold its part of q_size."""
        if self._plant.q_size is not None:
            self._limits[2] = math.ceil(self._plant.q_size / int(self._routes.length[0]))

    def _make_room(self, count: int) -> None:
        fill, alive, _ = self._queue.size.tolist()
        room = len(self._queue.start)
        if fill + count <= room:
            return
        while alive + count > room // 2:  # at least half is free afterwards, so that copying stays rare
            room *= 2
        queue = empty_queue(room, noting=self.online is not None)
        compact(self._queue, self._replicas, queue)
        self._queue = queue

    def _widen(self) -> None:
        edges, room = self._outputs.time.shape
        wider = empty_events((edges, 2 * room))
        columns = zip(self._outputs, wider, strict=True)
        for old, new in cast("Iterable[tuple[Floats, Floats]]", columns):
            new[:, :room] = old
        self._outputs = wider


def _online_side(model: OperatorModel) -> OnlineSide:
    options = model.operator.grouping_options or OnlineShuffleOptions()
    return OnlineSide(len(model.origin), model.operator.pool, model.work.key, options)
