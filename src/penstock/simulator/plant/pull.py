"""An operator whose events are bound late: they wait in front of it and go to replicas that have room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.grouping.pull import AHEAD_S, credit_of
from penstock.metrics.counters import OperatorCounters
from penstock.simulator.kernels.arrays import (
    ARRIVED,
    COUNTED,
    GONE,
    NONE,
    RESTART,
    Binding,
    Events,
    Flags,
    Held,
    Tally,
    Tracking,
    empty_events,
)
from penstock.simulator.kernels.bind import bind
from penstock.simulator.kernels.move import holders_of
from penstock.simulator.kernels.settle import settle_all
from penstock.simulator.plant.model import OperatorModel
from penstock.simulator.plant.operator import SimulatedOperator
from penstock.simulator.scenario import Plant


class PullOperator(SimulatedOperator):
    """Holds what its senders hold, as one queue; a replica has booked at most what `credit_of` its mean time gives.

    All senders together are as one here: they know at once when a replica has room, and the hop is paid before. That
    is exact in any steps: an event is booked at a time that what came before it determines.
    """

    def __init__(self, model: OperatorModel, plant: Plant, tracking: Tracking, tally: Tally) -> None:
        self._held = _held(empty_events(0))
        super().__init__(model, plant, tracking, tally)
        self._binding = Binding(
            turn=np.arange(self.pool) - self.pool,
            ready=np.zeros(self.pool),
            credit=np.array([credit_of(model.mean_s, AHEAD_S)]),
            turns=np.zeros(1, np.int64),
            clock=np.zeros(1),
        )

    @property
    def backlog(self) -> int:
        """Events sent to it that have not finished, held ones too."""
        return super().backlog + len(self._held.time)

    def take(self, events: Events) -> None:
        """Hold events, given in order of time."""
        if len(events.time):
            self._hold(_held(events))

    def give(self, until_s: float) -> None:
        """Book what replicas get room for by then, and let leave what finishes."""
        self._make_room(len(self._held.time))
        known = self._replicas, self._work, self._binding, self._routes, self._limits
        booked = bind(self._held, self.model.origin, self._queue, *known, until_s, self._tracking, self._tally)
        left = self._held.flags[booked:] & GONE == 0
        self._held = Held(*(column[booked:][left] for column in self._held))
        super().give(until_s)

    def restart(self, until_s: float, *, lossy: bool) -> None:
        """Stand still until then; what has not finished is held again, or lost."""
        queue, replicas, held = self._queue, self._replicas, self._held
        alive = np.flatnonzero(queue.fate[: queue.size[0]] >= 0)
        holders = holders_of(queue, replicas)[alive]
        waiting = Events(
            np.full(len(alive) + len(held.time), until_s - self._plant.hop_s),
            np.concatenate([queue.born[alive], held.born]),
            np.concatenate([queue.source[alive], held.source]),
            np.concatenate([queue.value[alive], held.value]),
            np.concatenate([queue.row[alive], held.row]),
        )
        flags = np.concatenate([np.full(len(alive), COUNTED, np.int8), held.flags]) | np.int8(ARRIVED)
        queue.size[:] = 0
        replicas.head[:], replicas.tail[:], replicas.unfinished[:] = NONE, NONE, NONE
        replicas.waiting[:], replicas.held[:], replicas.free[:] = 0, 0, until_s
        self._queued[:] = False
        self._binding.ready[:] = until_s
        self._held = _held(empty_events(0))
        if lossy:
            self._lose(held)
            np.add.at(replicas.dropped, (holders, RESTART), 1)
            settle_all(self._tracking, self._tally, waiting)
        else:
            self._hold(_held(waiting, flags))

    def counters(self) -> OperatorCounters:
        """The counters now, with what is held by sender."""
        counted, names = super().counters(), self.model.senders
        fresh = self._held.row[self._held.flags & COUNTED == 0]  # what a restart put back was received before
        by_sender = np.bincount(self.model.origin[fresh], minlength=len(names)).tolist()
        return OperatorCounters(
            counted.replicas,
            counted.active,
            counted.pool,
            counted.backlog,
            held_by={name: count for name, count in zip(names, by_sender, strict=True) if count},
        )

    def sources_born_before(self, time_s: float) -> list[int]:
        """The source events that entered before then and of which something is here or held."""
        held = self._held
        return super().sources_born_before(time_s) + [int(one) for one in held.source[held.born < time_s]]

    def _warm_up(self, new: Sequence[int], now_s: float) -> None:
        """A new replica is given something when it can work, and no sooner."""
        super()._warm_up(new, now_s)
        self._binding.ready[new] = now_s + self._plant.activation_delay_s if now_s > 0 else now_s

    def _hold(self, more: Held) -> None:
        self._held = Held(*(np.concatenate(pair) for pair in zip(self._held, more, strict=True)))  # type: ignore[arg-type]

    def _lose(self, held: Held) -> None:
        """What is held is lost, and counted at the first active replica."""
        first = self._routes.active[0]
        fresh = held.row[held.flags & COUNTED == 0]
        np.add.at(self._replicas.received, (first, self.model.origin[fresh]), 1)
        self._replicas.dropped[first, RESTART] += len(held.time)

    def _bound(self) -> None:
        """The operator as a whole may have q_size events."""
        if self._plant.q_size is not None:
            self._limits[2] = self._plant.q_size


def _held(events: Events, flags: Flags | None = None) -> Held:
    return Held(*events, np.zeros(len(events.time), np.int8) if flags is None else flags)
