"""One edge of one sending replica: the events that wait to leave, and the grouping that sends them.

Where the receiver keeps state, events go to the owners of their key groups, and switches before a change of owners.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from penstock.engine.plan.program import Edge, Program, active_senders
from penstock.engine.protocol.bundle import HASH, Events, Header, Keys, Switch, pack, pack_sign
from penstock.engine.protocol.messages import Address, OperatorRouting, Routing, Used, Utilisations
from penstock.engine.worker.failures import Cause
from penstock.grouping import KeyGroups, Receivers, Sender, make_grouping
from penstock.grouping.fields import key_of, stable_hash
from penstock.state.handover import SendingSide, Table

BUNDLE_EVENTS = 2000
BUNDLE_BYTES = 1 << 20  # encoded; one event may be larger
ROOMY = 0.75  # what is packed anew aims at this part of it: sizes differ
SMALL_BYTES = ROOMY * BUNDLE_BYTES / BUNDLE_EVENTS


class Wire:
    """What was emitted to one operator, and who of it gets what."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int) -> None:
        self.edge = edge
        self.ids: list[str] = []
        self.born: list[float] = []
        self.events: list[Any] = []
        self.causes: list[Cause] = []  # what each came of
        self.event_bytes: float | None = None  # of each, in the bundle packed last
        self._fitting = BUNDLE_EVENTS  # how many of them a bundle is begun with
        self.fences: list[int] = []  # before each barrier that has not left, so many of the events
        self._chosen: Sequence[int] | None = None  # the replica for each that leaves, once it is
        self._program = program
        self._level = level
        self._replica = replica
        self._routed: tuple[OperatorRouting, Used | None, Sender] | None = None

    @property
    def limit(self) -> int:
        """How many events are before the next barrier."""
        return self.fences[0] if self.fences else len(self.events)

    @property
    def ready(self) -> int:
        """How many events can leave now."""
        return self.limit

    @property
    def held(self) -> int:
        """Events that stay until a replica has room."""
        return 0

    @property
    def space(self) -> int:
        """How many more events may be put here."""
        return sys.maxsize

    def route(self, routing: Routing, used: Utilisations, sender: str) -> None:
        """Follow the routing now in force, and how used the receivers are."""
        mine, load = routing.operators[self.edge.receiver], used.operators.get(self.edge.receiver)
        me = self._among(routing, sender)
        if self._routed == (mine, load, me):
            return
        if self._routed is None or self._routed[2] != me:
            self._seat(me)
        here = tuple(r for r in mine.active if self._program.layout.has(self.edge.receiver, r))
        active = here or self._program.layout.replicas(self.edge.receiver)[:1]  # another shift has other pools
        now = Receivers(active) if load is None else Receivers(active, load.by_replica, load.step, load.interval)
        self._follow(now)
        self._routed = (mine, load, me)

    def _seat(self, me: Sender) -> None:
        self._grouping = make_grouping(self.edge.grouping, me, self.edge.key)

    def _follow(self, receivers: Receivers) -> None:
        self._grouping.update(receivers)

    def _among(self, routing: Routing, sender: str) -> Sender:
        """This replica's number among all active replicas that send to the same operator."""
        active = {s: active_senders(self._program, routing, s) for s in self.edge.senders}
        before = sum(len(active[s]) for s in self.edge.senders[: self.edge.senders.index(sender)])
        rank = active[sender].index(self._replica) if self._replica in active[sender] else self._replica
        senders = sum(len(replicas) for replicas in active.values())
        return Sender((before + rank) % senders, senders)

    def check(self, event: Any) -> None:
        """Raise if no replica can be chosen for the event, or it cannot be encoded; changes nothing."""
        self._check_key(event)
        msgspec.msgpack.encode(event)

    def _check_key(self, event: Any) -> None:
        if self.edge.key is not None:
            stable_hash(key_of(self.edge.key, event))

    def keep(self, rows: list[int]) -> None:
        """Leave all but these of the waiting events out; for whom they are stays as it was, if that is known."""
        self.ids, self.born = [self.ids[i] for i in rows], [self.born[i] for i in rows]
        self.events, self.causes = [self.events[i] for i in rows], [self.causes[i] for i in rows]
        self.fences = [sum(i < before for i in rows) for before in self.fences]
        if self._chosen is not None:
            chosen, self._chosen = self._chosen, [self._chosen[i] for i in rows if i < len(self._chosen)]
            self._keep_keys([i for i in rows if i < len(chosen)])

    def clear(self) -> None:
        """What was packed has left."""
        left, self._chosen = len(self._chosen or ()), None
        for column in (self.ids, self.born, self.events, self.causes):
            del column[:left]
        self.fences = [before - left for before in self.fences]

    def pack(self, sender: int) -> Iterable[tuple[int, bytes]]:
        """The events that can leave as (first partition, bundle); they wait on, until they are cleared."""
        if self._chosen is None:
            self._chosen = self._choose(self.events[: self.limit] if self.fences else self.events)
        by_replica: dict[int, list[int]] = {}
        for index, replica in enumerate(self._chosen):
            by_replica.setdefault(replica, []).append(index)
        layout, level = self._program.layout, self.edge.level
        for replica, indices in by_replica.items():
            target = layout.partition(self.edge.receiver, replica)
            first = layout.next_partition(self._level, level, target)
            start = 0
            while start < len(indices):
                count, bundle = self._bundle(sender, target, indices[start : start + self._fitting])
                start += count
                yield first, bundle

    def _bundle(self, sender: int, target: int, part: list[int]) -> tuple[int, bytes]:
        """As many of these events as fit into a bundle, from the first on, and the bundle.

        Sizes are known when they are encoded. If that was too much, fewer are encoded anew, and the next bundle is
        begun with as many as fitted: small events cost nothing, larger ones once, when they begin.
        """
        while True:
            chosen = Events([self.ids[i] for i in part], [self.born[i] for i in part], [self.events[i] for i in part])
            chosen.keys, chosen.back = self._keys(part), self._back()
            count = len(part)
            bundle = pack(Header(sender, self._replica, self.edge.level, target, count), chosen)
            self.event_bytes = len(bundle) / count
            if self.event_bytes > SMALL_BYTES or self._fitting < BUNDLE_EVENTS:
                self._fitting = at_once(self.event_bytes)
            if len(bundle) <= BUNDLE_BYTES or count == 1:
                return count, bundle
            part = part[: self._fitting]

    def _choose(self, events: list[Any]) -> Sequence[int]:
        """The replica for each event."""
        return self._grouping.assign(events)

    def _keys(self, part: list[int]) -> Keys | None:  # noqa: ARG002 - most groupings need none
        """What goes along with these of the events just chosen for."""
        return None

    def _keep_keys(self, rows: list[int]) -> None:
        """Forget what goes along with the others."""

    def _back(self) -> Address | None:
        """Where this sender hears of room."""
        return None


class KeyedSender:
    """What a partition follows for one operator with state that it sends to, whatever the streams."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int) -> None:
        self._edge = edge
        self._layout = program.layout
        self._level = level
        self._replica = replica
        self.grouping = KeyGroups(edge.key)
        table = program.routing[edge.receiver].table
        assert table is not None
        self.begin(table)

    def begin(self, table: Table) -> None:
        """A batch begins with this table."""
        self._side = SendingSide(table)
        self._follow()

    def _follow(self) -> None:
        self.grouping.update(Receivers((), owners=self._side.table.owners))

    def switches(self, routing: Routing, sender: int) -> Iterator[tuple[int, bytes]]:
        """Follow the owners now in force; the switches, as (first partition, bundle), that go before all events."""
        table = routing.operators[self._edge.receiver].table
        if table is None or table.version <= self._side.table.version:
            return
        losers = self._side.hear(table)
        self._follow()
        for loser in losers:
            target = self._layout.partition(self._edge.receiver, loser)
            header = Header(sender, self._replica, self._edge.level, target, 0)
            first = self._layout.next_partition(self._level, self._edge.level, target)
            yield first, pack_sign(header, Switch(table.version))


class KeyedWire(Wire):
    """A wire that sends by key group, and the keys' hashes along."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int, sender: KeyedSender) -> None:
        super().__init__(edge, program, level, replica)
        self._sender = sender
        self._hashes: list[int] = []

    def route(self, routing: Routing, used: Utilisations, sender: str) -> None:
        """The owners have been followed already, for all wires to the operator at once."""

    def _choose(self, events: list[Any]) -> Sequence[int]:
        self._hashes = self._sender.grouping.hashes(events)
        return self._sender.grouping.assign_hashes(self._hashes)

    def _check_key(self, event: Any) -> None:
        self._sender.grouping.hashes([event])

    def _keys(self, part: list[int]) -> Keys:
        return Keys(self._replica, np.array([self._hashes[i] for i in part], HASH).tobytes())

    def _keep_keys(self, rows: list[int]) -> None:
        self._hashes = [self._hashes[i] for i in rows]


def at_once(event_bytes: float) -> int:
    """How many events of that size go into a bundle.

    >>> at_once(100.0), at_once(100_000.0), at_once(1e9)
    (2000, 7, 1)
    """
    return max(1, int(min(BUNDLE_EVENTS, ROOMY * BUNDLE_BYTES / max(1.0, event_bytes))))
