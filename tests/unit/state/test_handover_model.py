"""The protocol in a model: senders, replicas and a driver, with everything that can be late being late.

Rows between two partitions stay in order; news of the driver come late and may skip some; replicas report late; at any
moment everything may crash and go on from the last batch that was committed. Whatever the order: every event is in the
state of its key once, and of every sender in order.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from penstock.state.codec import Codec
from penstock.state.handover import Coordinator, ReceivingSide, SendingSide, Table
from penstock.state.keyed_state import KeyedState
from penstock.state.owners import first_owners
from penstock.state.segments import Compaction, SegmentName, newest_first
from penstock.topology import ReplicaId

GROUPS, REPLICAS, KEYS = 3, 3, 4
SENDERS: list[ReplicaId] = [("words", 0), ("names", 0)]

senders = st.sampled_from(range(len(SENDERS)))
replicas = st.sampled_from(range(REPLICAS))


class Replica:
    """One replica in one batch: its state, its side of the protocol, and the events that it holds back."""

    def __init__(self, model: Handover, number: int, table: Table) -> None:
        self._model = model
        self.number = number
        self.side = ReceivingSide(number, table, SENDERS)
        self.held: dict[int, list[tuple[int, Any]]] = {}
        cached = model.cached.get(number)
        if cached is not None and cached[0].owned == table.of(number):
            self.state, self.compaction = cached
            return
        self.state, self.compaction = KeyedState(Codec("model")), Compaction()
        for group in table.of(number):
            self.state.own(group, model.load(group))

    def get(self, sender: int, item: tuple[str, Any]) -> None:
        what, value = item
        if what == "marker":
            self.side.mark(value, SENDERS[sender])
        elif value[0] % GROUPS in self.state.owned:
            self.process(*value)
        else:
            self.held.setdefault(value[0] % GROUPS, []).append(value)
        self.act()

    def process(self, key: int, event: tuple[int, int]) -> None:
        sender, number = event
        seen = self.state.value(key % GROUPS, key, 0.0)
        assert number > seen.get(str(sender), [-1])[-1], f"event {number} of sender {sender} again, or too late"
        seen.setdefault(str(sender), []).append(number)

    def act(self) -> None:
        """Give and take what can be given and taken now."""
        if lost := self.side.to_hand_over():
            self._model.moves[self.side.version, self.number] = {group: self.state.whole(group) for group in lost}
            for group in lost:
                self.state.forget(group)
                self.compaction.past.pop(group, None)
            self.side.hand_over()
        for loser, groups in self.side.to_take().items():
            file = self._model.moves[self.side.version, loser]
            for group in groups:
                self.state.own(group, [file[group]])
                for event in self.held.pop(group, []):
                    self.process(*event)
            self.side.take(groups)


class Handover(RuleBasedStateMachine):
    """The world: what is on disk survives a crash, nothing else does."""

    @initialize(active=st.sets(replicas, min_size=1))
    def set_up(self, active: set[int]) -> None:
        self.driver = Coordinator(Table(1, first_owners(GROUPS, sorted(active))))
        self.scripts: list[list[int]] = [[] for _ in SENDERS]  # the key of each event that a source has ever had
        self.committed = [0] * len(SENDERS)  # positions
        self.segments: dict[SegmentName, dict[int, tuple[bool, bytes]]] = {}
        self.batch = self.generation = 0
        self.cached: dict[int, tuple[KeyedState, Compaction]] = {}
        self.start()

    # ── the machinery ───────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """A batch begins: everybody starts with the same table and the state of the batches before."""
        table = self.driver.begin()
        self.news = [table, self.driver.table]  # what was published; everybody hears it late
        self.moves: dict[tuple[int, int], dict[int, bytes]] = {}
        self.positions = list(self.committed)
        self.sending = [SendingSide(table) for _ in SENDERS]
        self.replicas = [Replica(self, number, table) for number in range(REPLICAS)]
        self.heard = dict.fromkeys([*SENDERS, *range(REPLICAS)], 0)
        self.channels: dict[tuple[int, int], deque[Any]] = {
            (sender, replica): deque() for sender in range(len(SENDERS)) for replica in range(REPLICAS)
        }

    def load(self, group: int) -> list[bytes]:
        """The newest whole of a group and the changes after it."""
        parts: list[bytes] = []
        for name in newest_first(self.segments, self.batch):
            if group in self.segments[name]:
                whole, data = self.segments[name][group]
                parts.insert(0, data)
                if whole:
                    break
        return parts

    def publish(self) -> None:
        if self.driver.table != self.news[-1]:
            self.news.append(self.driver.table)

    def late_news(self, who: Any, skip: int) -> Table:
        self.heard[who] = min(self.heard[who] + 1 + skip, len(self.news) - 1)
        return self.news[self.heard[who]]

    # ── what may happen ─────────────────────────────────────────────────────────────────────────────────────────────

    @rule(sender=senders, key=st.integers(0, KEYS - 1))
    def send(self, sender: int, key: int) -> None:
        position, script = self.positions[sender], self.scripts[sender]
        if position == len(script):
            script.append(key)  # otherwise it is one that has to be sent again
        key = script[position]
        owner = self.sending[sender].table.owners[key % GROUPS]
        self.channels[sender, owner].append(("event", (key, (sender, position))))
        self.positions[sender] += 1

    @rule(sender=senders, skip=st.integers(0, 3))
    def a_sender_hears_news(self, sender: int, skip: int) -> None:
        table = self.late_news(SENDERS[sender], skip)
        for loser in self.sending[sender].hear(table):
            self.channels[sender, loser].append(("marker", table.version))

    @rule(replica=replicas, skip=st.integers(0, 3))
    def a_replica_hears_news(self, replica: int, skip: int) -> None:
        self.replicas[replica].side.hear(self.late_news(replica, skip))
        self.replicas[replica].act()

    @rule(sender=senders, replica=replicas, count=st.integers(1, 4))
    def rows_arrive(self, sender: int, replica: int, count: int) -> None:
        channel = self.channels[sender, replica]
        for _ in range(min(count, len(channel))):
            self.replicas[replica].get(sender, channel.popleft())

    @rule(replica=replicas)
    def a_replica_reports(self, replica: int) -> None:
        side = self.replicas[replica].side
        self.driver.hear(replica, side.handed, side.taken)
        self.publish()

    @rule(active=st.sets(replicas, min_size=1))
    def replicas_change(self, active: set[int]) -> None:
        self.driver.want(sorted(active))
        self.publish()

    @rule(driver_too=st.booleans(), half_written=st.sets(replicas), roll_back=st.booleans())
    def all_crash(self, driver_too: bool, half_written: set[int], roll_back: bool) -> None:
        """Some replicas may have written their segments of the batch, which will be done again."""
        for replica in half_written:
            self.write(self.replicas[replica])
        if roll_back:
            self.driver.roll_back()
        if driver_too:
            self.driver = Coordinator(Table(self.driver.table.version, self.driver.table.owners))
        self.generation += 1
        self.cached = {}
        self.start()

    @rule(order=st.randoms(use_true_random=False), news=st.booleans())
    def the_batch_ends(self, order: Any, news: bool) -> None:
        """Replicas end one after another, as their input does; some have not heard of the last change till then."""
        ending = list(range(REPLICAS))
        order.shuffle(ending)
        table = None
        for replica in ending:
            for sender in order.sample(range(len(SENDERS)), len(SENDERS)):
                self.rows_arrive(sender, replica, 10**6)
            self.replicas[replica].side.end()
            table = table or self.driver.freeze()
            self.replicas[replica].side.hear(table)
            self.replicas[replica].act()
            if news:
                self.driver.want([order.randrange(REPLICAS)])
        for replica in ending * 2:
            self.a_replica_reports(replica)
            for one in self.replicas:
                one.side.hear(self.driver.table)
                one.act()
        self.commit()

    def commit(self) -> None:
        for replica in self.replicas:
            assert replica.side.settled
            assert not replica.held
            self.write(replica)
            replica.state.settle()
            self.cached[replica.number] = (replica.state, replica.compaction)
        self.committed = list(self.positions)
        self.batch += 1
        self.check()
        self.start()

    def write(self, replica: Replica) -> None:
        parts = {group: (whole, data) for group, whole, data in replica.compaction.parts(replica.state)}
        self.segments[SegmentName(self.batch, self.generation, replica.number)] = parts

    def check(self) -> None:
        """What is on disk has every event that was sent up to here, each once and in order."""
        kept: dict[int, dict[str, list[int]]] = {}
        for group in range(GROUPS):
            state = KeyedState(Codec("model"))
            state.own(group, self.load(group))
            kept |= state._groups[group].values
        expected: dict[int, dict[str, list[int]]] = {}
        for sender, script in enumerate(self.scripts):
            for number, key in enumerate(script[: self.committed[sender]]):
                expected.setdefault(key, {}).setdefault(str(sender), []).append(number)
        assert kept == expected

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.want([0])
            self.the_batch_ends(random.Random(1), news=False)


TestHandover = Handover.TestCase
TestHandover.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


def test_long_runs() -> None:
    """The same machine on long random runs, in which much flows between two changes."""
    for seed in range(200):
        draw = random.Random(seed)
        model = Handover()
        model.set_up({0})
        for _ in range(400):
            sender, replica, skip = draw.randrange(len(SENDERS)), draw.randrange(REPLICAS), draw.randrange(3)
            happen = draw.choices(range(8), weights=(60, 12, 12, 60, 12, 8, 1, 1))[0]
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
                    model.a_replica_reports(replica)
                case 5:
                    model.replicas_change(set(draw.sample(range(REPLICAS), draw.randint(1, REPLICAS))))
                case 6:
                    model.all_crash(draw.random() < 0.5, set(draw.sample(range(REPLICAS), 2)), draw.random() < 0.3)
                case 7:
                    model.the_batch_ends(draw, draw.random() < 0.5)
        model.teardown()
