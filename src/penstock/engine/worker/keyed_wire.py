"""The sender's side of state by key: events go to the owners of their groups, markers before a change of owners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import HASH, Header, Keys, Marker, pack_marker
from penstock.engine.protocol.messages import Routing
from penstock.engine.worker.wire import Wire
from penstock.grouping import KeyGroups, Receivers
from penstock.state.handover import SendingSide, Table


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

    def markers(self, routing: Routing, sender: int) -> Iterator[tuple[int, bytes]]:
        """Follow the owners now in force; the markers, as (first partition, bundle), that go before all events."""
        table = routing.operators[self._edge.receiver].table
        if table is None or table.version <= self._side.table.version:
            return
        losers = self._side.hear(table)
        self._follow()
        for loser in losers:
            target = self._layout.partition(self._edge.receiver, loser)
            header = Header(sender, self._edge.level, target, 0)
            first = self._layout.next_partition(self._level, self._edge.level, target)
            yield first, pack_marker(header, Marker(self._replica, table.version))


class KeyedWire(Wire):
    """A wire that sends by key group, and the keys' hashes along."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int, sender: KeyedSender) -> None:
        super().__init__(edge, program, level, replica)
        self._sender = sender
        self._hashes: list[int] = []

    def route(self, routing: Routing, sender: str) -> None:
        """The owners have been followed already, for all wires to the operator at once."""

    def _choose(self, events: list[Any]) -> Sequence[int]:
        self._hashes = self._sender.grouping.hashes(events)
        return self._sender.grouping.assign_hashes(self._hashes)

    def _keys(self, part: list[int]) -> Keys:
        return Keys(self._replica, np.array([self._hashes[i] for i in part], HASH).tobytes())
