"""The reference for operators that keep state: real markers in the inboxes, and groups whose state is missing.

- A sender chooses the owner of the event's group when it sends.
- A change of owners sends a marker from every sender to every replica that loses a group, behind all it has sent there.
- A replica that has come to the last marker hands over all that it loses. A while later the gaining replicas have it.
- Events of a group whose state is missing are held back, in order, and queued when it is there.
- A wish that comes meanwhile waits for the end of the change; the last one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.grouping import stable_hash
from penstock.state.owners import first_owners, reassigned
from penstock.topology import Operator

from .reference import Reference, ReferenceOperator
from .reference_parts import Event, Replica


@dataclass(eq=False)
class Marker:
    """The end of what one sender sends under the old owners."""

    earliest_s: float


class KeyedReplica(Replica):
    """Holds back what it has no state for, and says when it comes to a marker."""

    def arrive(self, event: Any) -> None:
        if isinstance(event, Marker):
            self._inbox.put(event)
        elif self.operator.missing.get(group := self.operator.group(event)) == self.number:
            self.operator.held_back[group].append(event)
        else:
            super().arrive(event)

    def _serve(self, event: Any):
        if isinstance(event, Marker):
            self.operator.marked(self.number)
            return
        yield from super()._serve(event)


class KeyedOperator(ReferenceOperator):
    """Groups, their owners and their state: the keys that were processed."""

    def __init__(self, plant: StatefulReference, declared: Operator) -> None:
        super().__init__(plant, declared)
        self.replicas = [KeyedReplica(self, number, 0.0) for number in range(declared.pool)]
        self.owners = first_owners(declared.state.groups, (0,))
        self.missing: dict[int, int] = {}  # who waits for the state of a group
        self.ready_s: dict[int, float] = {}  # when it will be there, if known
        self.held_back: dict[int, list[Event]] = defaultdict(list)
        self.state: dict[int, set[object]] = defaultdict(set)
        self.wish: tuple[int, ...] | None = None
        self.markers: dict[int, int] = {}  # that each losing replica waits for
        self.lost: dict[int, list[int]] = {}
        self.waits_s: list[float] = []
        self.order: dict[object, list[Any]] = defaultdict(list)  # events of each key, as they were processed

    def group(self, event: Event) -> int:
        return stable_hash(self.declared.key(event.payload)) % len(self.owners)

    def _assign(self, event: Event, hop_s: float) -> Replica:
        replica = self.replicas[self.owners[self.group(event)]]
        event.arrives_s, event.earliest_s = self.plant.env.now + hop_s, replica.ready_s
        event.owner, event.number = replica.number, self.plant.next_number()
        replica.held.append(event)
        return replica

    def finish(self, event: Event, replica: int, spent_s: float) -> None:
        key = self.declared.key(event.payload)
        self.state[self.group(event)].add(key)
        self.order[key].append(event.payload)
        super().finish(event, replica, spent_s)

    def want(self, active: Sequence[int]) -> None:
        self.wish = tuple(active)
        if self.plant.env.now == 0:
            self.owners, self.wish = first_owners(len(self.owners), active), None
        elif not self.missing:
            self.change()

    def change(self) -> None:
        env, options, before = self.plant.env, self.plant.options, self.owners
        self.owners, self.wish, self.since_s = reassigned(before, self.wish), None, env.now
        moved = [group for group, owner in enumerate(self.owners) if owner != before[group]]
        self.missing = {group: self.owners[group] for group in moved}
        self.ready_s = {}
        for number in set(self.owners) - set(before):
            self.replicas[number].ready_s = env.now + options.activation_delay_s
        wires = self.plant.to(self)
        self.lost = {loser: [g for g in moved if before[g] == loser] for loser in {before[g] for g in moved}}
        self.markers = dict.fromkeys(self.lost, len(wires))
        for loser in self.lost:
            replica = self.replicas[loser]
            for wire in wires:
                delay_s = self.plant.delay_s((wire.sender, wire.replica), (self.name, loser))
                env.process(replica.hop(Marker(replica.ready_s), delay_s, options.hop_s))

    def marked(self, loser: int) -> None:
        self.markers[loser] -= 1
        if self.markers[loser] == 0:
            self.plant.env.process(self.bring(self.lost[loser]))

    def bring(self, groups: list[int]):
        options, env = self.plant.options, self.plant.env
        size = sum(len(self.state[group]) for group in groups) * options.state_bytes[self.name]
        takes_s = options.move_latency_s + size / options.move_bandwidth
        self.ready_s |= dict.fromkeys(groups, env.now + takes_s)
        yield env.timeout(takes_s)
        there = [group for group in self.missing if self.ready_s.get(group, env.now + 1) <= env.now]
        for group in there:
            del self.missing[group]
            self.waits_s.append(env.now - self.since_s)
        released = [event for group in there for event in self.held_back.pop(group, [])]
        for event in sorted(released, key=lambda one: one.number):
            self.replicas[event.owner].arrive(event)
        if not self.missing and self.wish is not None:
            self.change()


class StatefulReference(Reference):
    """The reference with operators that keep state."""

    numbers = 0

    def next_number(self) -> int:
        self.numbers += 1
        return self.numbers

    def operator(self, declared: Operator) -> ReferenceOperator:
        return super().operator(declared) if declared.state is None else KeyedOperator(self, declared)

    def to(self, receiver: ReferenceOperator) -> list[Any]:
        return self._to(receiver)

    def set_replicas(self, name: str, active: Sequence[int]) -> None:
        operator = self.operators[name]
        if not isinstance(operator, KeyedOperator):
            super().set_replicas(name, active)
            return
        operator.active = tuple(sorted(active))
        operator.want(operator.active)
        for successor in self.topology.successors(name):
            self._seat(self.operators[successor])
        self._changed = True
