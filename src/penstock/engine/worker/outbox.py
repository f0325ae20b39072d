"""What a replica has emitted: kept by edge, given out as rows of bundles, each event to the replica it is for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.online.sender import OnlineSender, OnlineWire
from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import NUDGE, Barrier, Header, pack_sign
from penstock.engine.protocol.messages import Routing, Utilisations
from penstock.engine.worker.failures import Cause, Failures, described, shortened
from penstock.engine.worker.wire import KeyedSender, KeyedWire, Wire
from penstock.errors import EngineError
from penstock.grouping.names import WITH_STATE
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.topology.on_error import DEAD_LETTERS
from penstock.topology.operator import DEFAULT_STREAM, To

_ARROW = pa.schema([("partition", pa.int32()), ("bundle", pa.binary())])
UNKNOWN = Utilisations()
ROWS_BYTES = 4 << 20  # of bundles that Spark is given at once: Java has them in memory together
LEFT_BYTES = 16 << 20  # of events that a source takes in at once
UNKNOWN_BYTES = 16 << 10  # of an event, until some have left
WARM_UP_ROUNDS = 25
WARM_UP_PAUSE_S = 0.02


class Outbox:
    """All wires of one replica."""

    def __init__(self, program: Program, level: int, name: str, replica: int, counters: ReplicaCounters) -> None:
        self._program = program
        self._name = name
        self._replica, self._level = replica, level
        self._number = program.senders.index(name)
        self._counters = counters
        self.mail = Mailbox()
        self._online: dict[str, OnlineSender] = {}  # by receiver
        self._keyed: dict[str, KeyedSender] = {}
        self._wires: dict[str, list[Wire]] = {}
        for edge in program.edges[name]:
            self._wires.setdefault(edge.stream, []).append(self._wire(edge, level, replica))
        self._all = [wire for wires in self._wires.values() for wire in wires]
        self._letters = self._wires.get(DEAD_LETTERS, [])
        self._plain = [wire for wire in self._all if wire not in self._letters]
        self.streams: tuple[str, ...] = (DEFAULT_STREAM,)
        self.failures = Failures(program, name, replica, counters, self._add_letter)

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

    def add_one(self, event_id: str, born: float, event: Any, cause: Cause | None = None) -> None:
        """Emit one plain event of that id, which came of `cause`, or of nothing else."""
        if cause is None:
            cause = (event_id, born, event)
        if type(event) is To:
            stream, event = event.stream, event.event
        else:
            stream = self.streams[0]
        wires = self._wires.get(stream) or self._no_wires(stream)
        copies, sent = len(wires) > 1, self._counters.sent
        for copy, wire in enumerate(wires):
            sent[wire.edge.receiver] = sent.get(wire.edge.receiver, 0) + 1  # now, so that nobody takes all for done
            wire.ids.append(f"{event_id}.{copy}" if copies else event_id)
            wire.born.append(born)
            wire.events.append(event)
            wire.causes.append(cause)

    def add_many(self, event_id: str, born: float, outputs: Iterable[Any], cause: Cause | None = None) -> None:
        """Emit several events; each gets an id of its own, the same every time the event is repeated."""
        outputs = list(outputs)
        if len(outputs) == 1:
            self.add_one(event_id, born, outputs[0], cause)
            return
        cause = cause or (event_id, born, outputs)
        for ordinal, output in enumerate(outputs):
            self.add_one(f"{event_id}.{ordinal}", born, output, cause)

    def _add_letter(self, letter: Cause) -> None:
        event_id, born, event = letter
        self.add_one(event_id, born, To(DEAD_LETTERS, event), letter)

    def check(self, output: Any) -> None:
        """Raise if the output could not be sent to all who read it."""
        stream, event = (output.stream, output.event) if type(output) is To else (self.streams[0], output)
        for wire in self._wires.get(stream, ()):
            wire.check(event)

    def _no_wires(self, stream: str) -> list[Wire]:
        """A stream that nobody reads is fine, one that was not declared is not."""
        if stream in self.streams:
            self._counters.emitted[stream] = self._counters.emitted.get(stream, 0) + 1
            return []
        label = self._program.labels[self._name]
        raise EngineError(f"{label}: emits to {stream!r}; its streams are {', '.join(self.streams)}")

    def rows(
        self, routing: Routing, used: Utilisations = UNKNOWN, barrier: Barrier | None = None
    ) -> list[pa.RecordBatch]:
        """Everything that waits, as rows for the next stage, and a barrier behind it; each bundle with a nudge."""
        partitions: list[int] = []
        bundles: list[bytes] = []
        for sender in self._keyed.values():
            for partition, marker in sender.markers(routing, self._number):
                partitions.append(partition)
                bundles.append(marker)
        for wires in (self._plain, self._letters):  # in this order: what cannot be sent may become a dead letter
            for partition, bundle in self._leave([wire for wire in wires if wire.events], routing, used):
                partitions.append(partition)
                bundles.append(bundle)
        for partition, bundle in self._barriers(barrier) if barrier is not None else ():
            partitions.append(partition)
            bundles.append(bundle)
        return nudged_rows(self._program, partitions, bundles) if bundles else []

    def room(self) -> int:
        """How many events a source may take in at once, by how large the last ones were."""
        largest = max((wire.event_bytes or UNKNOWN_BYTES for wire in self._all), default=UNKNOWN_BYTES)
        return max(1, int(LEFT_BYTES / largest))

    @property
    def waiting(self) -> int:
        """Events that wait to leave."""
        return sum(len(wire.events) for wire in self._all)

    def _barriers(self, barrier: Barrier) -> Iterator[tuple[int, bytes]]:
        """The barrier to every replica of every operator that reads, active or not, as (first partition, bundle)."""
        layout = self._program.layout
        for receiver, level in dict.fromkeys((wire.edge.receiver, wire.edge.level) for wire in self._all):
            for replica in layout.replicas(receiver):
                target = layout.partition(receiver, replica)
                first = layout.next_partition(self._level, level, target)
                yield first, pack_sign(Header(self._number, self._replica, level, target, 0), barrier)

    def _leave(self, wires: list[Wire], routing: Routing, used: Utilisations) -> list[tuple[int, bytes]]:
        """What waits on these wires, counted, as (first partition, bundle)."""
        for wire in wires:
            wire.route(routing, used, self._name)
        packed = self._packed(wires)
        emitted = self._counters.emitted
        for wire in wires:
            stream, count = wire.edge.stream, len(wire.events)
            if wire is self._wires[stream][0]:
                emitted[stream] = emitted.get(stream, 0) + count
            wire.clear()
        return packed

    def _packed(self, wires: list[Wire]) -> list[tuple[int, bytes]]:
        try:
            return [row for wire in wires for row in wire.pack(self._number)]
        except Exception as error:  # the user's own key function may raise anything
            self._withdraw(wires, error)
            return self._packed(wires)

    def _withdraw(self, wires: list[Wire], error: Exception) -> None:
        """Take all back that came of events of which something cannot be sent; these have failed."""
        failed: dict[int, tuple[Cause, Exception, str]] = {}
        for wire in wires:
            for cause, event in zip(wire.causes, wire.events, strict=True):
                try:
                    wire.check(event)
                except Exception as fault:
                    got = "it" if event is cause[2] else shortened(event)
                    failed.setdefault(id(cause), (cause, fault, f"cannot send {got} to {wire.edge.receiver!r}: "))
        if not failed or wires[0] in self._letters:
            label, what = self._program.labels[self._name], "events" if not failed else "its dead letters"
            raise EngineError(f"{label}: {what} cannot be sent: {described(error)}") from error
        for wire in wires:
            rows = [row for row, cause in enumerate(wire.causes) if id(cause) not in failed]
            self._counters.sent[wire.edge.receiver] -= len(wire.causes) - len(rows)
            wire.keep(rows)
        for cause, why, what in failed.values():
            self._counters.processed -= 1
            self.failures.reject(cause, why, what)


def warm_up(program: Program, level: int) -> Iterator[pa.RecordBatch]:
    """Nudges to every replica of the next stage when a shift starts, so that its first events find the paths warm."""
    stages = program.layout.stages
    if not program.realtime or program.generation != program.first_generation or level + 1 >= len(stages):
        return
    partitions = list(range(len(stages[level + 1])))
    for _ in range(WARM_UP_ROUNDS):
        yield rows_of(partitions, [NUDGE] * len(partitions))
        time.sleep(WARM_UP_PAUSE_S)


def nudged_rows(program: Program, partitions: list[int], bundles: list[bytes]) -> list[pa.RecordBatch]:
    """Bundles as rows, with a nudge behind them to each of their partitions where rows must not wait."""
    if program.realtime:
        nudged = list(dict.fromkeys(partitions))
        partitions, bundles = partitions + nudged, bundles + [NUDGE] * len(nudged)
    if sum(map(len, bundles)) <= ROWS_BYTES:
        return [rows_of(partitions, bundles)]
    starts, size = [0], 0
    for row, bundle in enumerate(bundles):
        if size and size + len(bundle) > ROWS_BYTES:
            starts.append(row)
            size = 0
        size += len(bundle)
    return [
        rows_of(partitions[start:end], bundles[start:end])
        for start, end in zip(starts, [*starts[1:], len(bundles)], strict=True)
    ]


def rows_of(partitions: list[int], bundles: list[bytes]) -> pa.RecordBatch:
    """Rows as Spark takes them."""
    return pa.RecordBatch.from_arrays([pa.array(partitions, pa.int32()), pa.array(bundles, pa.binary())], schema=_ARROW)
