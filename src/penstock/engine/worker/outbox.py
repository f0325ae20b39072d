"""What a replica has emitted: kept by edge, sent in bundles, each event to the replica it is for."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.engine.direct.sender import Lines
from penstock.engine.online.mailbox import Mailbox
from penstock.engine.online.sender import OnlineSender, OnlineWire
from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import Barrier, Header, pack_sign
from penstock.engine.protocol.messages import Address, Routing, Utilisations
from penstock.engine.pull.post import Post, RoomNote
from penstock.engine.pull.sender import PullSender, PullWire
from penstock.engine.worker.failures import Cause, Failures, described, shortened
from penstock.engine.worker.wire import KeyedSender, KeyedWire, Wire
from penstock.errors import EngineError
from penstock.grouping.names import LATE, WITH_STATE
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.topology.on_error import DEAD_LETTERS
from penstock.topology.operator import DEFAULT_STREAM, To

UNKNOWN = Utilisations()
LEFT_BYTES = 16 << 20  # of events that a source takes in at once
UNKNOWN_BYTES = 16 << 10  # of an event, until some have left
ROWS_BYTES = 4 << 20  # of bundles that Spark is given at once: Java has them in memory together
_ARROW = pa.schema([("partition", pa.int32()), ("bundle", pa.binary())])


class Outbox:
    """All wires of one replica."""

    def __init__(self, program: Program, level: int, name: str, replica: int, counters: ReplicaCounters) -> None:
        self._program = program
        self._name = name
        self._replica, self._level = replica, level
        self._number = program.senders.index(name)
        self._counters = counters
        self.mail = Mailbox()
        self.post: Callable[[], Post] | None = None  # by which it hears of room, once there is one
        self.lines: Lines | None = None  # by which bundles leave; in a micro-batch Spark takes them
        self.left_s = 0.0  # when something last left, on the clock of time.perf_counter
        self._online: dict[str, OnlineSender] = {}  # by receiver
        self._keyed: dict[str, KeyedSender] = {}
        self._late: dict[str, PullSender] = {}
        self._fenced: dict[str, deque[Barrier]] = {}  # by receiver: barriers that are to leave behind what is held
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
        if edge.grouping in LATE and self._program.realtime:
            sender = self._late.setdefault(edge.receiver, PullSender(edge))
            return PullWire(edge, self._program, level, replica, sender, self._address)
        if edge.grouping in LATE:  # in a batch all is sent before anybody could have room
            edge = replace(edge, grouping="shuffle")
        if edge.online is None:
            return Wire(edge, self._program, level, replica)
        if edge.receiver not in self._online:
            self._online[edge.receiver] = OnlineSender(edge, self.mail)
        return OnlineWire(edge, self._program, level, replica, self._online[edge.receiver])

    def _address(self) -> Address | None:
        """Where this process hears of room."""
        return self.post().address if self.post is not None else None

    def close(self) -> None:
        """Nothing leaves any more, and nobody is heard."""
        self.mail.close()
        if self.lines is not None:
            self.lines.close()

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
        copies, sent, emitted = len(wires) > 1, self._counters.sent, self._counters.emitted
        emitted[stream] = emitted.get(stream, 0) + 1
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
            return []
        label = self._program.labels[self._name]
        raise EngineError(f"{label}: emits to {stream!r}; its streams are {', '.join(self.streams)}")

    def rows(
        self, routing: Routing, used: Utilisations = UNKNOWN, barrier: Barrier | None = None
    ) -> list[pa.RecordBatch]:
        """Let everything that waits leave, and a barrier behind it; in a micro-batch as rows for Spark to take."""
        going = [row for sender in self._keyed.values() for row in sender.switches(routing, self._number)]
        going += self._leave_all(routing, used)
        if barrier is not None:
            self._fence(barrier)
        while passed := list(self._pass_barriers()):
            going += passed
            going += self._leave_all(routing, used)
        if not going:
            return []
        self.left_s = time.perf_counter()
        if self.lines is not None:
            self.lines.send(going)
            return []
        return rows_of(going)

    def _leave_all(self, routing: Routing, used: Utilisations) -> list[tuple[int, bytes]]:
        """Everything that can leave, as (first partition, bundle)."""
        plain = self._leave([wire for wire in self._plain if wire.events], routing, used)
        return plain + self._leave([wire for wire in self._letters if wire.events], routing, used)  # some may be new

    def room(self) -> int:
        """How many events a source may take in at once, by how large the last ones were and how many are held."""
        largest = max((wire.event_bytes or UNKNOWN_BYTES for wire in self._all), default=UNKNOWN_BYTES)
        space = min((wire.space for wire in self._all), default=sys.maxsize)
        return min(max(1, int(LEFT_BYTES / largest)), max(0, space))

    @property
    def waiting(self) -> int:
        """Events that wait, and could leave."""
        return sum(wire.ready for wire in self._all)

    @property
    def full(self) -> bool:
        """Whether so much is held for a replica with room that nothing more should be put here."""
        return any(wire.space <= 0 for wire in self._all)

    @property
    def holding(self) -> bool:
        """Whether something stays until a replica has room."""
        return any(wire.held for wire in self._all)

    def held(self) -> dict[str, int]:
        """What stays until a replica has room, by receiving operator."""
        held: dict[str, int] = {}
        for wire in self._all:
            if count := wire.held:
                held[wire.edge.receiver] = held.get(wire.edge.receiver, 0) + count
        return held

    def hear(self, note: RoomNote) -> bool:
        """A replica has room; whether something is held."""
        if (sender := self._late.get(note.receiver)) is not None:
            sender.notes.append(note)
        return self.holding

    def _fence(self, barrier: Barrier) -> None:
        """The barrier goes to each operator behind all that is here for it."""
        for wire in self._all:
            wire.fences.append(len(wire.events))
        for receiver in dict.fromkeys(wire.edge.receiver for wire in self._all):
            self._fenced.setdefault(receiver, deque()).append(barrier)

    def _pass_barriers(self) -> Iterator[tuple[int, bytes]]:
        """Barriers before which nothing is left, to an operator's members of the checkpoint; as `rows` sends them."""
        layout = self._program.layout
        for receiver, barriers in self._fenced.items():
            if not barriers:
                continue
            wires = [wire for wire in self._all if wire.edge.receiver == receiver]
            if any(wire.fences[0] for wire in wires):
                continue
            barrier, level = barriers.popleft(), wires[0].edge.level
            for wire in wires:
                del wire.fences[0]
            members = layout.unpacked(barrier.members)
            for replica in (one for one in layout.replicas(receiver) if (receiver, one) in members):
                target = layout.partition(receiver, replica)
                first = layout.next_partition(self._level, level, target)
                yield first, pack_sign(Header(self._number, self._replica, level, target, 0), barrier)

    def _leave(self, wires: list[Wire], routing: Routing, used: Utilisations) -> list[tuple[int, bytes]]:
        """What can leave of these wires, as (first partition, bundle)."""
        for wire in wires:
            wire.route(routing, used, self._name)
        packed = self._packed(wires)
        for wire in wires:
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
            gone = len(wire.causes) - len(rows)
            self._counters.sent[wire.edge.receiver] -= gone
            if wire is self._wires[wire.edge.stream][0]:
                self._counters.emitted[wire.edge.stream] -= gone
            wire.keep(rows)
        for cause, why, what in failed.values():
            self._counters.processed -= 1
            self.failures.reject(cause, why, what)


def rows_of(going: Sequence[tuple[int, bytes]]) -> list[pa.RecordBatch]:
    """Bundles, each with its partition, as rows that Spark takes."""
    batches: list[list[tuple[int, bytes]]] = [[]]
    size = 0
    for row in going:
        if size and size + len(row[1]) > ROWS_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += len(row[1])
    return [_batch(rows) for rows in batches if rows]


def _batch(rows: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
    partitions, bundles = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(partitions, pa.int32()), pa.array(bundles, pa.binary())], schema=_ARROW)
