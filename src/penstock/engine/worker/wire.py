"""One edge of one sending replica: the events that wait to leave, and the grouping that sends them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import Events, Header, Keys, pack
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.grouping import Receivers, Sender, make_grouping

BUNDLE_EVENTS = 2000


class Wire:
    """What was emitted to one operator, and who of it gets what."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int) -> None:
        self.edge = edge
        self.ids: list[str] = []
        self.born: list[float] = []
        self.events: list[Any] = []
        self._program = program
        self._level = level
        self._replica = replica
        self._routed: tuple[OperatorRouting, Sender] | None = None

    def route(self, routing: Routing, sender: str) -> None:
        """Follow the routing now in force."""
        mine = routing.operators[self.edge.receiver]
        me = self._among(routing, sender)
        if self._routed == (mine, me):
            return
        if self._routed is None or self._routed[1] != me:
            self._seat(me)
        here = tuple(r for r in mine.active if self._program.layout.has(self.edge.receiver, r))
        active = here or self._program.layout.replicas(self.edge.receiver)[:1]  # another shift has other pools
        self._follow(Receivers(active, mine.utilisation, mine.step, routing.version))
        self._routed = (mine, me)

    def _seat(self, me: Sender) -> None:
        self._grouping = make_grouping(self.edge.grouping, me, self.edge.key)

    def _follow(self, receivers: Receivers) -> None:
        self._grouping.update(receivers)

    def _among(self, routing: Routing, sender: str) -> Sender:
        """This replica's number among all active replicas that send to the same operator."""
        active = {s: self._replicas(routing, s) for s in self.edge.senders}
        before = sum(len(active[s]) for s in self.edge.senders[: self.edge.senders.index(sender)])
        rank = active[sender].index(self._replica) if self._replica in active[sender] else self._replica
        senders = sum(len(replicas) for replicas in active.values())
        return Sender((before + rank) % senders, senders)

    def _replicas(self, routing: Routing, sender: str) -> tuple[int, ...]:
        """Who sends for that sender: an operator's active replicas, a source's slots."""
        if sender in routing.operators:
            return routing.operators[sender].active
        return tuple(slot.replica for slot in self._program.layout.stages[0] if slot.operator == sender)

    def takes(self, event: Any) -> bool:
        """Whether a replica can be chosen for the event, and the event sent."""
        try:
            self._choose([event])
            msgspec.msgpack.encode(event)
        except Exception:
            return False
        return True

    def leave(self, sender: int) -> Iterable[tuple[int, bytes]]:
        """The waiting events as (first partition, bundle)."""
        ids, born, events = self.ids, self.born, self.events
        self.ids, self.born, self.events = [], [], []
        by_replica: dict[int, list[int]] = {}
        for index, replica in enumerate(self._choose(events)):
            by_replica.setdefault(replica, []).append(index)
        layout, level = self._program.layout, self.edge.level
        for replica, indices in by_replica.items():
            target = layout.partition(self.edge.receiver, replica)
            first = layout.next_partition(self._level, level, target)
            for start in range(0, len(indices), BUNDLE_EVENTS):
                part = indices[start : start + BUNDLE_EVENTS]
                chosen = Events([ids[i] for i in part], [born[i] for i in part], [events[i] for i in part])
                chosen.keys = self._keys(part)
                yield first, pack(Header(sender, level, target, len(part)), chosen)

    def _choose(self, events: list[Any]) -> Sequence[int]:
        """The replica for each event."""
        return self._grouping.assign(events)

    def _keys(self, part: list[int]) -> Keys | None:  # noqa: ARG002 - most groupings need none
        """What goes along with these of the events just chosen for."""
        return None
