"""An operator whose replicas sit in regions: what comes from another region takes longer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.errors import InputError
from penstock.simulator.kernels.arrays import (
    CHOSEN,
    LEAST_WORK,
    Events,
    Flags,
    Floats,
    Ints,
    Tally,
    Tracking,
    empty_events,
)
from penstock.simulator.kernels.take import route
from penstock.simulator.plant.model import OperatorModel
from penstock.simulator.plant.operator import SimulatedOperator
from penstock.simulator.scenario import Plant


class Sent(NamedTuple):
    """Events on their way to replicas that are known; their time is when they would arrive without the hop."""

    events: Events
    chosen: Ints
    asked: Flags

    def picked(self, which: Ints) -> Sent:
        """Some of them, in that order."""
        time, born, source, value, row = self.events
        events = Events(time[which], born[which], source[which], value[which], row[which])
        return Sent(events, self.chosen[which], self.asked[which])

    def joined(self, others: Sent) -> Sent:
        """These, then the others."""
        pairs = zip(self.events, others.events, strict=True)
        events = Events(*(np.concatenate(pair) for pair in pairs))  # type: ignore[arg-type]
        return Sent(events, np.concatenate([self.chosen, others.chosen]), np.concatenate([self.asked, others.asked]))


_NOTHING = Sent(empty_events(0), np.zeros(0, np.int64), np.zeros(0, np.int8))


class RegionalOperator(SimulatedOperator):
    """Takes events with the delay between the region of the sender and that of the receiver, in order of arrival.

    That is exact: who gets an event, and with it its delay, is settled when it is sent, by the sender alone; and
    whatever arrives by a time was sent by then.
    """

    def __init__(self, model: OperatorModel, plant: Plant, tracking: Tracking, tally: Tally) -> None:
        super().__init__(model, plant, tracking, tally)
        if self._kind == LEAST_WORK:
            raise InputError(f"{model.operator}: grouping 'least_work' knows no delays between regions")
        self._delay_s = np.zeros((len(model.origin), self.pool))
        self._sent = _NOTHING

    def place(self, delay_s: Floats) -> None:
        """From now on, what a sender (row) sends to a replica (column) takes so much longer."""
        self._delay_s = delay_s

    def sending(self) -> list[tuple[str, int]]:
        """The sender of each row: operator or source, and replica."""
        return [(edge.stream.sender, n) for edge in self.model.inputs for n in range(len(self._rows(edge.row)))]

    @property
    def backlog(self) -> int:
        """Events sent to it that have not finished."""
        return super().backlog + len(self._sent.chosen)

    def take(self, events: Events) -> None:
        """Let events set out, given in order of time."""
        if not len(events.time):
            return
        if self.online:
            chosen, asked = self.online.assign(events)
        else:
            chosen = route(events, self._work, self._senders, self._targets, self._kind)
            asked = np.zeros(len(chosen), np.int8)
        late = events._replace(time=events.time + self._delay_s[events.row, chosen])
        self._count(late, chosen, 1)
        self._sent = self._sent.joined(Sent(late, chosen, asked))

    def give(self, until_s: float) -> None:
        """Queue what arrives by then, and let leave what finishes."""
        self._arrive(until_s)
        super().give(until_s)

    def restart(self, until_s: float, *, lossy: bool) -> None:
        """Stand still until then; what is on its way is shared out anew, or lost, with the rest."""
        self._arrive(np.inf)
        super().restart(until_s, lossy=lossy)

    def sources_born_before(self, time_s: float) -> list[int]:
        """The source events that entered before then and of which something is here or on its way."""
        events = self._sent.events
        return super().sources_born_before(time_s) + [int(one) for one in events.source[events.born < time_s]]

    def _due(self) -> Floats:
        """When each event on its way arrives, but for the hop."""
        return self._sent.events.time

    def _arrive(self, until_s: float) -> None:
        times = self._due()
        order = np.argsort(times, kind="stable")
        count = int(np.searchsorted(times[order], until_s, side="right"))
        if count:
            here, self._sent = self._sent.picked(order[:count]), self._sent.picked(order[count:])
            self._count(here.events, here.chosen, -1)  # they are counted when they are queued
            arrived = here.events._replace(time=times[order[:count]])
            self._queue_up(arrived, CHOSEN, here.chosen, here.asked)

    def _count(self, events: Events, chosen: Ints, by: int) -> None:
        """Received counts from when an event is sent, as everywhere."""
        np.add.at(self._replicas.received, (chosen, self.model.origin[events.row]), by)
        np.add.at(self._replicas.held, chosen, by)
