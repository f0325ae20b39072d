"""What a replica has emitted: kept by edge, given out as rows of bundles, each event to the replica it is for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.online.sender import OnlineSender, OnlineWire
from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import NUDGE
from penstock.engine.protocol.messages import Routing, Utilisations
from penstock.engine.protocol.progress import first_batch
from penstock.engine.worker.wire import KeyedSender, KeyedWire, Wire
from penstock.errors import EngineError
from penstock.grouping.names import WITH_STATE
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.topology.operator import To

_ARROW = pa.schema([("partition", pa.int32()), ("bundle", pa.binary())])
UNKNOWN = Utilisations()
WARM_UP_ROUNDS = 25
WARM_UP_PAUSE_S = 0.02


class Outbox:
    """All wires of one replica."""

    def __init__(self, program: Program, level: int, name: str, replica: int, counters: ReplicaCounters) -> None:
        self._program = program
        self._name = name
        self._number = program.senders.index(name)
        self._counters = counters
        self.mail = Mailbox()
        self._online: dict[str, OnlineSender] = {}  # by receiver
        self._keyed: dict[str, KeyedSender] = {}
        self._wires: dict[str, list[Wire]] = {}
        for edge in program.edges[name]:
            self._wires.setdefault(edge.stream, []).append(self._wire(edge, level, replica))
        self._all = [wire for wires in self._wires.values() for wire in wires]
        self.streams: tuple[str, ...] = tuple(self._wires)

    def _wire(self, edge: Edge, level: int, replica: int) -> Wire:
        if edge.grouping == WITH_STATE:
            if edge.receiver not in self._keyed:
                self._keyed[edge.receiver] = KeyedSender(edge, self._program, level, replica)
            return KeyedWire(edge, self._program, level, replica, self._keyed[edge.receiver])
        if edge.online is None:
            return Wire(edge, self._program, level, replica)
        if edge.receiver not in self._online:
            self._online[edge.receiver] = OnlineSender(edge, self.mail)
        return OnlineWire(edge, self._program, level, replica, self._online[edge.receiver])

    def begin(self, tables: dict[str, Table]) -> None:
        """The batch begins with these owners of key groups."""
        for receiver, sender in self._keyed.items():
            sender.begin(tables[receiver])

    def declare(self, streams: tuple[str, ...]) -> None:
        """The streams the operator may emit to, the first being the one of plain events."""
        self.streams = streams

    def add_one(self, event_id: str, born: float, event: Any) -> None:
        """Emit one plain event derived from the event of that id."""
        if type(event) is To:
            stream, event = event.stream, event.event
        else:
            stream = self.streams[0]
        wires = self._wires.get(stream) or self._no_wires(stream)
        emitted, copies = self._counters.emitted, len(wires) > 1
        emitted[stream] = emitted.get(stream, 0) + 1
        for copy, wire in enumerate(wires):
            wire.ids.append(f"{event_id}.{copy}" if copies else event_id)
            wire.born.append(born)
            wire.events.append(event)

    def add_many(self, event_id: str, born: float, outputs: Iterable[Any]) -> None:
        """Emit several events; each gets an id of its own, the same every time the event is repeated."""
        outputs = list(outputs)
        if len(outputs) == 1:
            self.add_one(event_id, born, outputs[0])
            return
        for ordinal, output in enumerate(outputs):
            self.add_one(f"{event_id}.{ordinal}", born, output)

    def _no_wires(self, stream: str) -> list[Wire]:
        """A stream that nobody reads is fine, one that was not declared is not."""
        if stream in self.streams:
            return []
        label = self._program.labels[self._name]
        raise EngineError(f"{label}: emits to {stream!r}; its streams are {', '.join(self.streams)}")

    def rows(self, routing: Routing, used: Utilisations = UNKNOWN) -> pa.RecordBatch | None:
        """Everything that waits, as rows for the next stage, each bundle with a nudge behind it."""
        partitions: list[int] = []
        bundles: list[bytes] = []
        for sender in self._keyed.values():
            for partition, marker in sender.markers(routing, self._number):
                partitions.append(partition)
                bundles.append(marker)
        for wire in self._all:
            if not wire.events:
                continue
            sent, receiver = self._counters.sent, wire.edge.receiver
            sent[receiver] = sent.get(receiver, 0) + len(wire.events)
            wire.route(routing, used, self._name)
            for partition, bundle in self._leave(wire):
                partitions.append(partition)
                bundles.append(bundle)
        return nudged_rows(self._program, partitions, bundles) if bundles else None

    def _leave(self, wire: Wire) -> list[tuple[int, bytes]]:
        events = wire.events
        try:
            return list(wire.leave(self._number))
        except Exception as error:  # the user's own key function may raise anything
            label, receiver = self._program.labels[self._name], wire.edge.receiver
            culprit = next((event for event in events if not wire.takes(event)), events[0])
            reason = f"{type(error).__name__}: {error}"
            raise EngineError(
                f"{label}: an event for {receiver!r} cannot be sent: {reason}; got {culprit!r}"
            ) from error


def warm_up(program: Program, level: int, batch: int) -> Iterator[pa.RecordBatch]:
    """Nudges to every replica of the next stage when a shift starts, so that its first events find the paths warm."""
    stages = program.layout.stages
    first = program.generation == program.first_generation and batch == first_batch(program.shift)
    if not program.realtime or not first or level + 1 >= len(stages):
        return
    partitions = list(range(len(stages[level + 1])))
    for _ in range(WARM_UP_ROUNDS):
        yield rows_of(partitions, [NUDGE] * len(partitions))
        time.sleep(WARM_UP_PAUSE_S)


def nudged_rows(program: Program, partitions: list[int], bundles: list[bytes]) -> pa.RecordBatch:
    """Bundles as rows, with a nudge behind them to each of their partitions where rows must not wait."""
    if program.realtime:
        nudged = list(dict.fromkeys(partitions))
        partitions, bundles = partitions + nudged, bundles + [NUDGE] * len(nudged)
    return rows_of(partitions, bundles)


def rows_of(partitions: list[int], bundles: list[bytes]) -> pa.RecordBatch:
    """Rows as Spark takes them."""
    return pa.RecordBatch.from_arrays([pa.array(partitions, pa.int32()), pa.array(bundles, pa.binary())], schema=_ARROW)
