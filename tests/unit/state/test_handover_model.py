"""The protocol in a model: senders, replicas and a driver, with everything that can be late being late.

Rows between two partitions stay in order; news of the driver come late and may skip some; replicas report late;
barriers cut through all of it, and any checkpoint may be given up; at any moment everything may crash and go on from
the last one that was committed. Whatever the order: in what is committed every event is in the state of its key once,
and of every sender in order.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from penstock.engine.driver.checkpoints import Round, made_record
from penstock.engine.driver.records import Record
from penstock.engine.protocol.bundle import (
    HASH,
    Barrier,
    Events,
    Keys,
    pack,
    pack_sign,
)
from penstock.engine.protocol.messages import Done, Restore
from penstock.engine.worker import keyed_replica
from penstock.engine.worker.inbox import WAKE, Arrival
from penstock.grouping import stable_hash
from penstock.state.codec import Codec
from penstock.state.files import StateFiles
from penstock.state.handover import Coordinator, SendingSide, Table
from penstock.state.keyed_state import KeyedState
from penstock.state.owners import first_owners

from .modelled import GROUPS, KEYS, REPLICAS, SENDERS, Replica, group_of, header, routing, switch

senders = st.sampled_from(range(len(SENDERS)))
replicas = st.sampled_from(range(REPLICAS))


class AtOnce:
    """Writes when it is told to, in the same thread."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def submit(self, write: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(write())
        return future

    def shutdown(self, wait: bool) -> None: ...


@pytest.fixture(autouse=True, scope="module")
def no_waiting() -> Iterator[None]:
    """Files need not outlive the machine; state moves one group at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(keyed_replica, "MOVE_S", 0.0)
        patch.setattr(keyed_replica, "ThreadPoolExecutor", AtOnce)
        yield


class Model(RuleBasedStateMachine):
    """The world: what is on disk survives a crash, nothing else does."""

    @initialize(active=st.sets(replicas, min_size=1))
    def set_up(self, active: set[int]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.files = StateFiles(self.folder / "state" / "count")
        self.driver = Coordinator(Table(1, first_owners(GROUPS, sorted(active))))
        self.scripts: list[list[int]] = [[] for _ in SENDERS]  # the key of each event that a source has ever had
        self.records: list[Record | None] = [None]  # all that were ever committed
        self.round: Round | None = None
        self.barrier = self.given_up = 0
        self.generation = 0
        self.start()

    # ── the machinery ───────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """An attempt begins: everybody starts with the same table and the state of the last checkpoint."""
        table = self.driver.begin()
        self.news = [table]  # what was published; everybody hears it late
        last = self.records[-1]
        self.positions = [last.start(slot)[1] if last is not None else 0 for slot in SENDERS]
        self.sending = [SendingSide(table) for _ in SENDERS]
        self.sent_barrier = [self.barrier] * len(SENDERS)
        self.replicas = [Replica(self, number, table) for number in range(REPLICAS)]
        self.heard = dict.fromkeys([*SENDERS, *range(REPLICAS)], 0)
        self.channels: dict[tuple[int, int], deque[bytes]] = {
            (sender, replica): deque() for sender in range(len(SENDERS)) for replica in range(REPLICAS)
        }

    def restore(self, _: object) -> Restore:
        last = self.records[-1]
        return Restore(0, []) if last is None else Restore(last.number, last.state.get("count", []))

    def publish(self) -> None:
        if self.driver.table != self.news[-1]:
            self.news.append(self.driver.table)

    def late_news(self, who: Any, skip: int) -> Table:
        self.heard[who] = min(self.heard[who] + 1 + skip, len(self.news) - 1)
        return self.news[self.heard[who]]

    # ── events and owners ───────────────────────────────────────────────────────────────────────────────────────────

    @rule(sender=senders, key=st.integers(0, KEYS - 1))
    def send(self, sender: int, key: int) -> None:
        position, script = self.positions[sender], self.scripts[sender]
        if position == len(script):
            script.append(key)  # otherwise it is one that has to be sent again
        key = script[position]
        owner = self.sending[sender].table.owners[group_of(key)]
        keys = Keys(0, np.array([stable_hash(key)], HASH).tobytes())
        event = {"key": key, "sender": sender, "number": position}
        packed = pack(header(sender, owner, 1), Events([str(position)], [0.0], [event], keys))
        self.channels[sender, owner].append(packed)
        self.positions[sender] += 1

    @rule(sender=senders, skip=st.integers(0, 3))
    def a_sender_hears_news(self, sender: int, skip: int) -> None:
        table = self.late_news(SENDERS[sender], skip)
        for loser in self.sending[sender].hear(table):
            self.channels[sender, loser].append(switch(sender, loser, table.version))

    @rule(replica=replicas, skip=st.integers(0, 3))
    def a_replica_hears_news(self, replica: int, skip: int) -> None:
        one = self.replicas[replica]
        one.agent.routing = routing(self.late_news(replica, skip))
        one.take(Arrival(WAKE, 0))

    @rule(sender=senders, replica=replicas, count=st.integers(1, 4))
    def rows_arrive(self, sender: int, replica: int, count: int) -> None:
        channel = self.channels[sender, replica]
        self.replicas[replica].get([channel.popleft() for _ in range(min(count, len(channel)))])

    @rule(replica=replicas)
    def a_replica_moves_state(self, replica: int) -> None:
        self.replicas[replica].move()

    @rule(replica=replicas)
    def a_replica_reports(self, replica: int) -> None:
        told = self.replicas[replica].state._told()
        self.driver.hear(replica, told.handed, told.taken)
        self.publish()

    @rule(active=st.sets(replicas, min_size=1))
    def replicas_change(self, active: set[int]) -> None:
        self.driver.want(sorted(active))
        self.publish()

    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.round is None)
    @rule()
    def a_checkpoint_begins(self) -> None:
        """Not while key groups are on the move, which must arrive first, nor before the last one is shown."""
        self.driver.held = True
        last = self.records[-1]
        hidden = [
            one for one in self.replicas if last and last.generation == self.generation and one.shown < last.number
        ]
        if self.driver.moving or hidden:
            return
        self.barrier += 1
        everybody = frozenset({*SENDERS, *(("count", number) for number in range(REPLICAS))})
        shift: Any = SimpleNamespace(source_slots=set(SENDERS))
        self.round = Round(self.barrier, shift, self.generation, 0.0, False, everybody)

    @rule(sender=senders)
    def a_sender_sends_the_barrier(self, sender: int) -> None:
        """It may hear of it after it was given up."""
        if self.sent_barrier[sender] == self.barrier:
            return
        self.sent_barrier[sender] = self.barrier
        for replica in range(REPLICAS):
            self.channels[sender, replica].append(pack_sign(header(sender, replica, 0), Barrier(self.barrier)))
        if self.round is not None:
            name, slot = SENDERS[sender]
            at = self.positions[sender]
            self.round.done[SENDERS[sender]] = Done(self.generation, name, slot, self.barrier, cursor=at, sent=at)

    @rule(replica=replicas)
    def a_replica_hears_of_checkpoints(self, replica: int) -> None:
        self.replicas[replica].hear_of_checkpoints()

    @rule()
    def the_driver_looks(self) -> None:
        """It commits what is done."""
        if self.round is None or self.round.missing:
            return
        before, record = self.records[-1], made_record(self.round, self.records[-1])
        self.records.append(record)
        self.round = None
        self.driver.release()
        self.publish()
        self.files.keep([*record.state["count"], *(before.state["count"] if before is not None else ())], record.number)
        self.check(record)
        if before is not None:
            self.check(before)

    @precondition(lambda self: self.round is not None)
    @rule()
    def the_driver_gives_up(self) -> None:
        self.round, self.given_up = None, self.barrier
        self.driver.release()
        self.publish()

    @precondition(lambda self: self.round is not None)
    @rule()
    def a_checkpoint_comes_to_its_end(self) -> None:
        """Everybody does its part."""
        for sender in range(len(SENDERS)):
            self.a_sender_sends_the_barrier(sender)
        self.all_arrives()
        self.the_driver_looks()
        assert self.round is None

    def all_arrives(self) -> None:
        for sender, replica in self.channels:
            self.rows_arrive(sender, replica, 10**6)
        for replica in self.replicas:
            while replica.state.moving:
                replica.move()
            replica.say()

    @rule(driver_too=st.booleans(), roll_back=st.booleans())
    def all_crash(self, driver_too: bool, roll_back: bool) -> None:
        """Some replicas may have written their segments of a checkpoint, which is never committed."""
        if self.round is not None:
            self.round, self.given_up = None, self.barrier
        self.driver.held = False
        if roll_back:
            self.driver.roll_back()
        if driver_too:
            self.driver = Coordinator(Table(self.driver.table.version, self.driver.table.owners))
        self.generation += 1
        self.files.forget_moves()
        if (last := self.records[-1]) is not None:
            self.files.check(last.state["count"])
        self.start()

    # ── what must be so ─────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, record: Record) -> None:
        """What a record says has every event that was sent up to its barrier, each once and in order."""
        kept: dict[int, dict[str, list[int]]] = {}
        found = self.files.load(range(GROUPS), sorted(record.state["count"], reverse=True))
        for group, loaded in found.items():
            state = KeyedState(Codec("model"))
            state.own(group, loaded.parts)
            kept |= state._groups[group].values
        expected: dict[int, dict[str, list[int]]] = {}
        for sender, script in enumerate(self.scripts):
            for number, key in enumerate(script[: record.start(SENDERS[sender])[1]]):
                expected.setdefault(key, {}).setdefault(str(sender), []).append(number)
        assert kept == expected

    def teardown(self) -> None:
        """Whatever has happened: changes come to their end, and then a checkpoint, within a few rounds."""
        if not hasattr(self, "driver"):
            return
        committed = len(self.records)
        for _ in range(8):
            for sender in range(len(SENDERS)):
                self.a_sender_hears_news(sender, 99)
            for replica in range(REPLICAS):
                self.a_replica_hears_news(replica, 99)
                self.a_replica_hears_of_checkpoints(replica)
            self.all_arrives()
            for replica in range(REPLICAS):
                self.a_replica_reports(replica)
            if self.round is None:
                self.a_checkpoint_begins()
            else:
                self.a_checkpoint_comes_to_its_end()
        assert len(self.records) > committed
        self._folder.cleanup()


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


def test_long_runs() -> None:
    """The same machine on long random runs, in which much flows between two changes."""
    for seed in range(100):
        draw = random.Random(seed)
        model = Model()
        model.set_up({0})
        for _ in range(400):
            sender, replica, skip = draw.randrange(len(SENDERS)), draw.randrange(REPLICAS), draw.randrange(3)
            happen = draw.choices(range(14), weights=(60, 12, 12, 60, 30, 12, 6, 9, 18, 12, 12, 2, 2, 1))[0]
            match happen:
                case 0:
                    model.send(sender, draw.randrange(KEYS))
                case 1:
                    model.a_sender_hears_news(sender, skip)
                case 2:
                    model.a_replica_hears_news(replica, skip)
                case 3:
                    model.rows_arrive(sender, replica, 2)
                case 4:
                    model.a_replica_moves_state(replica)
                case 5:
                    model.a_replica_reports(replica)
                case 6:
                    model.replicas_change(set(draw.sample(range(REPLICAS), draw.randint(1, REPLICAS))))
                case 7 if model.round is None:
                    model.a_checkpoint_begins()
                case 8:
                    model.a_sender_sends_the_barrier(sender)
                case 9:
                    model.a_replica_hears_of_checkpoints(replica)
                case 10:
                    model.the_driver_looks()
                case 11 if model.round is not None:
                    model.the_driver_gives_up()
                case 12 if model.round is not None:
                    model.a_checkpoint_comes_to_its_end()
                case 13:
                    model.all_crash(draw.random() < 0.5, draw.random() < 0.3)
        model.teardown()
