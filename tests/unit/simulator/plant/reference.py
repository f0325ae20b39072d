"""A slow and obvious simulator to hold the fast one against: one SimPy process for each replica.

- A sender chooses the replica when it sends; the event arrives a hop later, and the delay between their regions.
- A replica works on one event at a time, in order of arrival.
- An event that is older than `t_out` when a replica takes it is dropped; so is one that finds the replica's part of
  `q_size` unfinished when it arrives.
- A new replica starts to work after the activation delay.
- A restart stops everything for a while; what had not finished begins anew, in the old order, or is lost.

It has the same methods as the plant, so that one script can drive both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from penstock.grouping import Sender
from penstock.metrics.utilisation import Utilisation
from penstock.simulator.scenario import Plant
from penstock.topology import Operator, To, Topology

from .reference_parts import Event, Journey, Replica, Wire


class ReferenceOperator:
    """One operator: its replicas, what it sends to, and what it counted."""

    def __init__(self, plant: Reference, declared: Operator) -> None:
        self.plant = plant
        self.declared = declared
        self.name = declared.name
        self.active: tuple[int, ...] = (0,)
        self.used = Utilisation({}, 0.0)
        self.replicas = [Replica(self, number, 0.0) for number in range(declared.pool)]
        self.unfinished: list[Event] = []  # in order of sending
        self.received: Counter[str] = Counter()
        self.processed: Counter[int] = Counter()
        self.busy_s: Counter[int] = Counter()
        self.dropped: Counter[str] = Counter()

    @property
    def backlog(self) -> int:
        return len(self.unfinished)

    @property
    def room(self) -> float:
        """The events that one replica may hold."""
        q_size = self.plant.options.q_size
        return math.inf if q_size is None else math.ceil(q_size / len(self.active))

    def too_old(self, event: Event, now_s: float) -> bool:
        t_out_s = self.plant.options.t_out_s
        return t_out_s is not None and now_s - event.journey.born_s > t_out_s

    def service_s(self, payload: Any) -> float:
        time_ms = self.declared.run.service_ms
        own_s = (time_ms(payload) if callable(time_ms) else time_ms) / 1000
        return own_s + self.plant.options.overhead_s.get(self.name, 0.0)

    def take(self, event: Event) -> None:
        """An event is sent to this operator."""
        self.received[event.wire.sender] += 1
        self.unfinished.append(event)
        hop_s = self.plant.options.hop_s
        replica = self._assign(event, hop_s)
        delay_s = self.plant.delay_s((event.wire.sender, event.wire.replica), (self.name, replica.number))
        if hop_s or delay_s:
            self.plant.env.process(replica.hop(event, delay_s, hop_s))
        else:
            replica.arrive(event)

    def _assign(self, event: Event, hop_s: float) -> Replica:
        replica = self.replicas[event.wire.choose(event.payload)]
        event.arrives_s = self.plant.env.now + hop_s
        event.earliest_s = replica.ready_s
        replica.held.append(event)
        return replica

    def finish(self, event: Event, replica: int, spent_s: float) -> None:
        """A replica is done with an event: what it gives is sent on."""
        self.unfinished.remove(event)
        self.processed[replica] += 1
        self.busy_s[replica] += spent_s
        given = [one if type(one) is To else To("out", one) for one in self.declared.run.function(event.payload)]
        sent = [
            (wire, one.event)
            for wire in self.plant.wires[self.name]
            for one in given
            if wire.replica == replica and wire.stream.name == one.stream
        ]
        self.plant.settle(event.journey, len(sent))
        for wire, payload in sent:
            wire.receiver.take(Event(event.journey, payload, wire))

    def changed(self) -> None:
        """Other replicas are active now."""

    def drop(self, event: Event, cause: str) -> None:
        self.unfinished.remove(event)
        self.dropped[cause] += 1
        event.journey.failed = True
        self.plant.settle(event.journey, 0)

    def restart(self, ready_s: float, *, lossy: bool) -> None:
        """New replicas in place of all; what had not finished is shared out among them, or lost."""
        for replica in self.replicas:
            replica.stop()
        self.replicas = [Replica(self, number, ready_s) for number in range(self.declared.pool)]
        for event in list(self.unfinished):
            if lossy:
                self.drop(event, "restart")
            else:
                self._assign(event, 0.0).arrive(event)


@dataclass
class Reference:
    """The whole topology at work; `sources` has the arrival times and payloads of each source."""

    topology: Topology
    sources: Mapping[str, tuple[Sequence[float], Sequence[Any]]]
    options: Plant
    env: simpy.Environment = field(default_factory=simpy.Environment)
    left: list[tuple[float, float]] = field(default_factory=list)  # when each source event was out, and its latency
    events: int = 0
    failed: int = 0
    regions: dict[tuple[str, int], int] = field(default_factory=dict)
    delays_s: Any = None
    mean_s: Mapping[str, float] = field(default_factory=dict)  # of an event, by operator

    def __post_init__(self) -> None:
        topology = self.topology
        self.operators = {name: self.operator(topology[name]) for name in topology.in_order()}
        self.wires: dict[str, list[Wire]] = {name: [] for name in (*self.sources, *self.operators)}
        for receiver in self.operators.values():
            for stream in receiver.declared.inputs:
                sender = topology.operators.get(stream.sender)
                for replica in range(sender.pool if sender else 1):
                    self.wires[stream.sender].append(Wire(stream.sender, replica, stream, receiver))
            self._seat(receiver)
        for name in self.sources:
            self.env.process(self._enter(name))
        self._changed = False

    def operator(self, declared: Operator) -> ReferenceOperator:
        if declared.grouping == "pull":
            from .reference_pull import PullReferenceOperator

            return PullReferenceOperator(self, declared)
        return ReferenceOperator(self, declared)

    @property
    def backlog(self) -> int:
        return sum(operator.backlog for operator in self.operators.values())

    def _enter(self, name: str):
        times_s, payloads = self.sources[name]
        for number, time_s in enumerate(times_s):
            yield self.env.timeout(time_s - self.env.now)
            self.events += 1
            journey = Journey(time_s, len(self.wires[name]))
            for wire in self.wires[name]:
                wire.receiver.take(Event(journey, payloads[number % len(payloads)], wire))

    def settle(self, journey: Journey, parts: int) -> None:
        """One event became so many; with none left the source event is out, or failed."""
        journey.parts += parts - 1
        if journey.parts == 0:
            if journey.failed:
                self.failed += 1
            else:
                self.left.append((self.env.now, self.env.now - journey.born_s))

    def place(self, regions: Mapping[tuple[str, int], int], delay_s: Any) -> None:
        self.regions, self.delays_s = dict(regions), delay_s

    def delay_s(self, sender: tuple[str, int], receiver: tuple[str, int]) -> float:
        """How much longer an event takes between the two."""
        if not self.regions:
            return 0.0
        return float(self.delays_s[self.regions[sender], self.regions[receiver]])

    def advance(self, until_s: float) -> None:
        self.env.run(until=until_s)

    def set_replicas(self, name: str, active: Sequence[int]) -> None:
        operator, now_s = self.operators[name], self.env.now
        for number in set(active) - set(operator.active):
            operator.replicas[number].ready_s = now_s + (self.options.activation_delay_s if now_s > 0 else 0.0)
        operator.active = tuple(sorted(active))
        operator.changed()
        self._tell_senders(operator)
        for successor in self.topology.successors(name):
            self._seat(self.operators[successor])
        self._changed = True

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        for name, used in utilisation.items():
            self.operators[name].used = used
            self._tell_senders(self.operators[name])

    def begin(self) -> None:
        self._changed = False

    def settle_changes(self) -> None:
        changed, self._changed = self._changed, False
        if changed and self.options.actuation != "pool":
            for operator in self.operators.values():
                operator.restart(self.env.now + self.options.restart_s, lossy=self.options.actuation == "restart-lossy")

    def _to(self, receiver: ReferenceOperator) -> list[Wire]:
        return [wire for wires in self.wires.values() for wire in wires if wire.receiver is receiver]

    def _tell_senders(self, receiver: ReferenceOperator) -> None:
        for wire in self._to(receiver):
            wire.update()

    def _seat(self, receiver: ReferenceOperator) -> None:
        """Number the active replicas that send to the operator, one sending operator after the other."""
        names = self.topology.predecessors(receiver.name)
        active = {name: self.operators[name].active if name in self.operators else (0,) for name in names}
        of = sum(len(replicas) for replicas in active.values())
        for wire in self._to(receiver):
            mine = active[wire.sender]
            before = sum(len(active[name]) for name in names[: names.index(wire.sender)])
            rank = mine.index(wire.replica) if wire.replica in mine else wire.replica
            wire.sit(Sender((before + rank) % of, of))
