"""One replica in the model of the protocol: the real one, with bundles that arrive when the world wants."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from penstock.common.storage import storage_at
from penstock.engine.driver.checkpoints import Round
from penstock.engine.driver.records import Record
from penstock.engine.protocol.bundle import (
    Barrier,
    Events,
    Header,
    Switch,
    Unpacker,
    pack_sign,
)
from penstock.engine.protocol.messages import Done, OperatorRouting, Report, Restore, Routing
from penstock.engine.worker.alignment import Alignment
from penstock.engine.worker.inbox import WAKE, Arrival
from penstock.engine.worker.keyed_replica import KeyedReplica
from penstock.engine.worker.lifecycle import Opened, ReplicaContext
from penstock.grouping import stable_hash
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.topology import ReplicaId, Topology

GROUPS, REPLICAS, KEYS = 4, 3, 12
SENDERS: list[ReplicaId] = [("words", 0), ("names", 0)]
NAMES = tuple(name for name, _ in SENDERS)


def note(event: dict[str, int], state: dict[str, list[int]]) -> None:
    """Keep the numbers of the events of a key, by sender."""
    numbers = state.setdefault(str(event["sender"]), [])
    assert event["number"] > max(numbers, default=-1), f"again, or too late: {event}"
    numbers.append(event["number"])


def counting() -> Topology:
    topology = Topology("model", pool=REPLICAS)
    sources = [topology.source(name) for name in NAMES]
    topology.operator("count", note, inputs=sources, key="key", key_groups=GROUPS)
    return topology


SPEC = counting()["count"]


def group_of(key: int) -> int:
    return stable_hash(key) % GROUPS


class World(Protocol):
    """What a replica knows of the world around it."""

    folder: Path
    generation: int
    given_up: int
    round: Round | None
    records: list[Record | None]

    def restore(self, _: object) -> Restore: ...


class Replica:
    """One replica in one attempt: barriers are aligned, events processed, parts of checkpoints told."""

    def __init__(self, world: World, number: int, table: Table) -> None:
        self._world, self.number = world, number
        self._unsaid = self.shown = 0
        self.alignment = Alignment(SENDERS, NAMES)
        self.alignment.give_up(world.given_up)
        self.agent = SimpleNamespace(routing=routing(table), wake=lambda: None, ask_restore=world.restore)
        program = SimpleNamespace(
            run="model", storage=storage_at(world.folder), senders=NAMES, senders_to=lambda _: SENDERS
        )
        report = Report(world.generation, 0, "count", number, ReplicaCounters())
        opened = Opened(SPEC, ReplicaContext("model", "count", number), note, None, Any)  # type: ignore[arg-type]
        self.state = KeyedReplica(program, opened, report, self.agent)  # type: ignore[arg-type]
        self.state.begin(table, SimpleNamespace())  # type: ignore[arg-type]

    def get(self, bundles: list[bytes]) -> None:
        """Take bundles as they arrive."""
        arrivals = deque(Arrival(one, 1) for one in bundles)
        nothing = Arrival(WAKE, 0)
        while arrivals or self.alignment.pending():
            self.take(self.alignment.take(lambda: arrivals.popleft() if arrivals else nothing))

    def take(self, taken: Arrival | Barrier | None) -> None:
        assert taken is not None
        if isinstance(taken, Barrier):
            self._unsaid = taken.number
            self.state.checkpoint(taken.number, lambda: None)
        elif not taken.bundle or len(taken.bundle) == len(switch(0, 0, 0)):
            self.state.heed(taken)
        else:
            self.process(self.state.admit(Unpacker()(taken.bundle)))
        self.say()

    def process(self, events: Events[Any]) -> None:
        for call in events.events:
            self.state.process(call)

    def move(self) -> None:
        """One step of what is to be written, given or taken."""
        if self.state.moving:
            released = Events[Any]([], [], [])
            self.state.move(released)
            self.process(released)
        self.say()

    def say(self) -> None:
        written, going = self.state.written(), self._world.round
        if written is not None and written.number == self._unsaid and going is not None:
            done = Done(self._world.generation, "count", self.number, written.number)
            done.segments, done.oldest = written.segments, written.oldest
            going.done["count", self.number] = done

    def hear_of_checkpoints(self) -> None:
        self.alignment.give_up(self._world.given_up)
        self.get([])
        if (last := self._world.records[-1]) is not None and last.number > self.shown:
            self.state.committed(last.number)
            self.shown = last.number


def routing(table: Table) -> Routing:
    return Routing(table.version, {"count": OperatorRouting((0,), table=table)})


def header(sender: int, replica: int, events: int) -> Header:
    return Header(sender, 0, 1, replica, events)


def switch(sender: int, replica: int, version: int) -> bytes:
    return pack_sign(header(sender, replica, 0), Switch(version))
