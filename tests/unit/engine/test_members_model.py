"""Checkpoints and replicas that become active, in a model: what a committed checkpoint has is what was sent before it.

Two slots send to an operator, which sends to a sink, each to whichever replicas are active as far as it has heard, and
that may be long ago. Barriers go among members only. Whatever the order in which everything arrives and is heard: when
a checkpoint is committed the sink's replicas have processed, before their barriers, just the events before the slots',
and under a label beyond the checkpoint before.
"""

from __future__ import annotations

import random
from collections import deque
from types import SimpleNamespace
from typing import Any

from penstock.engine.driver.checkpoints import Round
from penstock.engine.driver.members import Members
from penstock.engine.plan.layout import Layout, lay_out
from penstock.engine.protocol.bundle import Barrier, Events, Header, Unpacker, pack, pack_sign
from penstock.engine.protocol.messages import Done, OperatorRouting, Routing
from penstock.engine.worker.alignment import Alignment
from penstock.engine.worker.inbox import WAKE, Arrival
from penstock.topology import ReplicaId, Topology

POOL, STEPS = 4, 1500
NAMES = ("s", "a", "b")
READER = {"s": "a", "a": "b"}


def laid_out() -> Layout:
    topology = Topology("model", pool=POOL)
    first = topology.operator("a", print, inputs=topology.source("s"))
    topology.operator("b", print, inputs=first)
    return lay_out(topology, {"a": range(POOL), "b": range(POOL)}, source_slots=2)


LAYOUT = laid_out()


class Node:
    """A slot or a replica: what it has heard, sent and done."""

    def __init__(self, world: World, name: ReplicaId) -> None:
        self.world, self.name = world, name
        self.heard = self.sent = self.barrier = 0
        self.label, self.joined = 1, name[1] in world.routings[0].operators.get(name[0], OperatorRouting(())).active
        self.log: list[tuple[Any, int]] = []  # events that a sink has processed, with their labels
        senders = [one for one in LAYOUT.unpacked(b"") if READER.get(one[0]) == name[0]]
        self.alignment = Alignment(senders, NAMES, members=LAYOUT.unpacked)

    @property
    def routing(self) -> Routing:
        return self.world.routings[self.heard]

    def send(self, event: Any) -> None:
        to = (READER[self.name[0]], self.world.draw.choice(self.routing.operators[READER[self.name[0]]].active))
        self.world.channels[self.name, to].append(pack(self.header(to, 1), Events(["0"], [0.0], [event])))

    def header(self, to: ReplicaId, events: int) -> Header:
        return Header(NAMES.index(self.name[0]), self.name[1], 1, LAYOUT.partition(*to), events)

    def pass_on(self, barrier: Barrier) -> None:
        """Send the barrier behind all else, and say so."""
        self.barrier, self.label = barrier.number, barrier.number + 1
        for to in LAYOUT.unpacked(barrier.members):
            if to[0] == READER.get(self.name[0]):
                self.world.channels[self.name, to].append(pack_sign(self.header(to, 0), barrier))
        count = self.sent if self.name[0] == "s" else len(self.log)
        done = Done(0, *self.name, barrier.number, sent=count, routing=self.routing.version)
        if self.name[0] in self.routing.operators:
            self.joined = self.name[1] in self.routing.operators[self.name[0]].receiving
        if self.world.round is not None:
            self.world.round.hear(done)

    def get(self, *bundles: bytes) -> None:
        arrived = deque(Arrival(one, 1) for one in bundles)
        while arrived or self.alignment.pending():
            one = self.alignment.take(lambda: arrived.popleft() if arrived else Arrival(WAKE, 0))
            if isinstance(one, Barrier):
                self.pass_on(one)
            elif one is not None and one.bundle:
                self.process(Unpacker()(one.bundle).events[0])

    def process(self, event: Any) -> None:
        if not self.joined:  # it asks, and the answer comes behind all that was published
            self.joined, self.heard = True, len(self.world.routings) - 1
            self.label = max(self.label, self.world.committed + 1)
        if self.name[0] == "a":
            self.send(event)
        else:
            self.log.append((tuple(event), self.label))


class World:
    """Everything that happens, one step at a time."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.members, self.routings = Members(), list[Routing]()
        self.round: Round | None = None
        self.number = self.given_up = self.committed = self.followed = self.anew = self.smaller = 0
        self.announced = Barrier(0)
        self.counted: dict[ReplicaId, int] = {}  # what each sink's replica had at the last commit
        self.publish({"a": (0,), "b": (0,)})
        self.nodes = {one: Node(self, one) for one in sorted(LAYOUT.unpacked(b""))}
        self.slots = [one for name, one in self.nodes.items() if name[0] == "s"]
        self.channels: dict[tuple[ReplicaId, ReplicaId], deque[bytes]] = {
            (one, to): deque() for one in self.nodes for to in self.nodes if READER.get(one[0]) == to[0]
        }

    def publish(self, active: dict[str, tuple[int, ...]]) -> None:
        operators = {name: OperatorRouting(replicas) for name, replicas in active.items()}
        routing = Routing(len(self.routings) + 1, operators)
        self.members.follow(routing)
        self.routings.append(routing)

    def activate(self) -> None:
        now = {name: one.active for name, one in self.routings[-1].operators.items()}
        count = self.draw.choice((1, 1, 2, POOL))
        self.publish(now | {self.draw.choice("ab"): tuple(self.draw.sample(range(POOL), count))})

    def slot_sends(self) -> None:
        slot = self.draw.choice(self.slots)
        slot.send([slot.name[1], slot.sent])
        slot.sent += 1

    def somebody_hears(self) -> None:
        node = self.draw.choice(list(self.nodes.values()))
        node.heard = min(node.heard + self.draw.choice((1, 1, 3)), len(self.routings) - 1)
        node.alignment.give_up(self.given_up)
        node.get()

    def most_hear(self) -> None:
        """All there is to hear; who does not goes on with what may be very old."""
        for node in self.nodes.values():
            if self.draw.random() < 0.8:
                node.heard = len(self.routings) - 1
                node.alignment.give_up(self.given_up)
                node.get()

    def something_arrives(self) -> None:
        if full := [key for key, channel in self.channels.items() if channel]:
            key = self.draw.choice(full)
            self.nodes[key[1]].get(self.channels[key].popleft())

    def checkpoint_begins(self) -> None:
        if self.round is None:
            self.number += 1
            members = self.members.begin(LAYOUT, self.followed)
            shift: Any = SimpleNamespace(source_slots=LAYOUT.source_slots)
            self.round = Round(self.number, shift, 0, 0.0, False, members)
            self.announced = Barrier(self.number, LAYOUT.packed(members))
            self.smaller += len(members) < len(self.nodes)

    def slot_sends_its_barrier(self) -> None:
        slot = self.draw.choice(self.slots)
        if slot.barrier < self.announced.number:
            slot.pass_on(self.announced)

    def driver_looks(self) -> None:
        if self.round is None:
            return
        if self.members.joined:
            self.round, self.given_up, self.anew = None, self.number, self.anew + 1
        elif not self.round.missing:
            self.check(self.round)
            self.followed = min(done.routing for done in self.round.done.values())
            self.round, self.committed = None, self.number

    def check(self, going: Round) -> None:
        sent = {slot.name: going.done[slot.name].sent for slot in self.slots}
        counts = self.counted | {name: done.sent for name, done in going.done.items() if name[0] == "b"}
        kept = [event for name, count in counts.items() for event, _ in self.nodes[name].log[:count]]
        assert sorted(kept) == [(slot, number) for (_, slot), count in sorted(sent.items()) for number in range(count)]
        for name, count in counts.items():
            labels = [label for _, label in self.nodes[name].log[self.counted.get(name, 0) : count]]
            assert all(self.committed < label <= self.number for label in labels)
        self.counted = counts

    def settle(self) -> None:
        """All is heard, and arrives."""
        for node in self.nodes.values():
            node.heard = len(self.routings) - 1
            node.alignment.give_up(self.given_up)
            node.get()
        while any(self.channels.values()):
            self.something_arrives()


STEP_WEIGHTS = {
    World.slot_sends: 20,
    World.something_arrives: 120,
    World.somebody_hears: 15,
    World.most_hear: 8,
    World.activate: 6,
    World.checkpoint_begins: 8,
    World.slot_sends_its_barrier: 20,
    World.driver_looks: 20,
}


def played(seed: int) -> World:
    """A long run, at the end of which all arrives and a last checkpoint is committed."""
    world = World(seed)
    for step in world.draw.choices([*STEP_WEIGHTS], [*STEP_WEIGHTS.values()], k=STEPS):
        step(world)
    for _ in range(3):
        world.settle()
        world.driver_looks()
        world.checkpoint_begins()
        for slot in world.slots:
            if slot.barrier < world.announced.number:
                slot.pass_on(world.announced)
    world.settle()
    world.driver_looks()
    assert world.committed == world.number
    assert len([one for node in world.nodes.values() for one in node.log]) == sum(slot.sent for slot in world.slots)
    return world


def test_a_committed_checkpoint_has_all_that_was_sent_before_it() -> None:
    worlds = [played(seed) for seed in range(60)]
    assert sum(world.anew > 0 for world in worlds) > len(worlds) / 2, "hardly anybody joins one that is under way"
    assert sum(world.smaller > 0 for world in worlds) > len(worlds) / 2, "hardly any is of fewer than all"
