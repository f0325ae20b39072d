"""What the reference is made of: source events, events, the wires that they take, and replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import simpy

from penstock.grouping import Receivers, Sender, make_grouping
from penstock.topology import Stream

if TYPE_CHECKING:
    from .reference import ReferenceOperator


@dataclass(eq=False)
class Journey:
    """A source event on its way."""

    born_s: float
    parts: int  # events derived from it that are on their way
    failed: bool = False


@dataclass(eq=False)
class Event:
    """One event on its way to an operator."""

    journey: Journey
    payload: Any
    wire: Wire
    arrives_s: float = 0.0
    earliest_s: float = 0.0  # its replica does not start it before


@dataclass(eq=False)
class Wire:
    """A stream as one sending replica writes it and one operator reads it."""

    sender: str
    replica: int
    stream: Stream
    receiver: ReferenceOperator
    seat: Sender | None = None
    grouping: Any = None

    def sit(self, seat: Sender) -> None:
        """Take a place among the receiver's senders; a new place is a new start."""
        if seat != self.seat:
            self.seat = seat
            declared = self.receiver.declared
            if declared.grouping not in ("least_work", "pull"):
                self.grouping = make_grouping(declared.grouping, seat, declared.key)
            self.update()

    def update(self) -> None:
        """Hear of the receiver's replicas and how used they are."""
        if self.grouping:
            one = self.receiver
            self.grouping.update(Receivers(one.active, dict(one.used.by_replica), one.used.step))

    def choose(self, payload: Any) -> int:
        """The replica for the next event."""
        if self.grouping:
            return self.grouping.assign([payload])[0]
        return min(self.receiver.active, key=lambda number: self.receiver.replicas[number].done_s())


class Replica:
    """Takes events from its inbox, one after the other."""

    def __init__(self, operator: ReferenceOperator, number: int, ready_s: float) -> None:
        self.operator = operator
        self.number = number
        self.ready_s = ready_s
        self.free_s = ready_s  # when it is done with the event in hand, or was with the last
        self.held: list[Event] = []  # sent to it and not finished, in order
        self.arrived = 0  # of those
        self.in_hand: Event | None = None
        self.stopped = False
        self._env = operator.plant.env
        self._inbox = simpy.Store(self._env)
        self._process = self._env.process(self._work())

    def hop(self, event: Event, delay_s: float, hop_s: float):
        """An event is on its way here, first between regions; unless the replica was stopped meanwhile, it arrives."""
        if delay_s:
            yield self._env.timeout(delay_s)
            event.earliest_s = self.ready_s
        yield self._env.timeout(hop_s)
        if not self.stopped:
            self.arrive(event)

    def arrive(self, event: Event) -> None:
        """Queue an event, where there is room."""
        if self.arrived >= self.operator.room:
            self.held.remove(event)
            self.operator.drop(event, "q_size")
        else:
            self.arrived += 1
            self._inbox.put(event)

    def _work(self):
        try:
            while True:
                event = yield self._inbox.get()
                yield self._env.timeout(max(0.0, event.earliest_s - self._env.now))
                yield from self._serve(event)
        except simpy.Interrupt:
            return

    def _serve(self, event: Event):
        started_s = self._env.now
        too_old = self.operator.too_old(event, started_s)
        service_s = 0.0 if too_old else self.operator.service_s(event.payload)
        self.in_hand, self.free_s = event, started_s + service_s
        if not too_old:
            yield self._env.timeout(service_s)
        self.in_hand = None
        self.held.remove(event)
        self.arrived -= 1
        if too_old:
            self.operator.drop(event, "t_out")
        else:
            self.operator.finish(event, self.number, self._env.now - started_s)

    def stop(self) -> None:
        """Never work again."""
        self.stopped = True
        self._process.interrupt()

    def done_s(self) -> float:
        """When it will be done with everything that was sent to it."""
        time_s = self.free_s
        for event in self.held:
            if event is not self.in_hand:
                time_s = max(time_s, event.arrives_s, event.earliest_s)
                if not self.operator.too_old(event, time_s):
                    time_s += self.operator.service_s(event.payload)
        return max(time_s, self.ready_s)
