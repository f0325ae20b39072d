"""The online shuffle under everything that can happen to messages, senders and replicas."""

from __future__ import annotations

import math
import pickle
from collections import deque
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.grouping.base import Receivers, Sender
from penstock.grouping.online_shuffle import OnlineShuffle, OnlineShuffleOptions, Reply, Request, Sketch, Sketching

SENDERS, POOL, VALUES = 2, 4, 6
OPTIONS = OnlineShuffleOptions(window=2, mu=0.5, patience=15)

senders = st.integers(0, SENDERS - 1)
replicas = st.integers(0, POOL - 1)
bundles = st.lists(st.integers(0, VALUES - 1), max_size=12)


class Queued(NamedTuple):
    """An event at a replica."""

    sender: int
    value: int
    request: Request | None


class Message(NamedTuple):
    """On its way to the senders, or to one of them."""

    replica: int
    to: tuple[int, ...]
    content: Sketch | Reply


class Traffic(RuleBasedStateMachine):
    """Two senders and a pool of four replicas; queues keep their order, replies and sketches may do anything.

    Every sender has a twin that gets the same events one by one, and must do the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shuffles = [OnlineShuffle(Sender(n, SENDERS), options=OPTIONS) for n in range(SENDERS)]
        self.active = [(0, 1)] * SENDERS
        for shuffle in self.shuffles:
            shuffle.update(Receivers((0, 1)))
        self.twins = [pickle.loads(pickle.dumps(shuffle)) for shuffle in self.shuffles]
        self.sketchings = [Sketching(SENDERS, OPTIONS) for _ in range(POOL)]
        self.queues: list[deque[Queued]] = [deque() for _ in range(POOL)]
        self.messages: list[Message] = []

    # What senders do

    @rule(sender=senders, bundle=bundles)
    def send(self, sender: int, bundle: list[int]) -> None:
        shuffle, twin = self.shuffles[sender], self.twins[sender]
        chosen = shuffle.assign(bundle)
        requests = {request.event: request for request in shuffle.requests()}
        for event, value in enumerate(bundle):
            assert chosen[event] in self.active[sender]
            assert twin.assign([value]) == [chosen[event]]
            request = requests.get(event)
            assert twin.requests() == ([] if request is None else [request._replace(event=0)])
            self.queues[chosen[event]].append(Queued(sender, value, request))

    @rule(sender=senders, active=st.sets(replicas, min_size=1))
    def change(self, sender: int, active: set[int]) -> None:
        self.active[sender] = tuple(sorted(active))
        for shuffle in (self.shuffles[sender], self.twins[sender]):
            shuffle.update(Receivers(self.active[sender]))

    # What replicas do

    @rule(replica=replicas, count=st.integers(1, 8))
    def execute(self, replica: int, count: int) -> None:
        queue = self.queues[replica]
        for _ in range(min(count, len(queue))):
            event = queue.popleft()
            requests = [] if event.request is None else [event.request._replace(event=0)]
            time_s = (1 + event.value) * (1 + replica) / 16
            sketch, replies = self.sketchings[replica].executed(
                event.sender, [self.hash(event.value)], [time_s], requests
            )
            if sketch is not None:
                self.messages.append(Message(replica, tuple(range(SENDERS)), sketch))
            self.messages += [Message(replica, (event.sender,), reply) for reply in replies]

    def hash(self, value: int) -> int:
        return self.shuffles[0].hashes.of(value)

    @rule(replica=replicas)
    def start_anew(self, replica: int) -> None:
        self.sketchings[replica] = Sketching(SENDERS, OPTIONS)
        self.queues[replica].clear()

    # What happens to messages

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), again=st.booleans())
    def deliver(self, data: st.DataObject, again: bool) -> None:
        place = data.draw(st.integers(0, len(self.messages) - 1))
        self.receive(self.messages[place])
        if not again:
            del self.messages[place]

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        del self.messages[data.draw(st.integers(0, len(self.messages) - 1))]

    @rule()
    def deliver_all(self) -> None:
        for message in self.messages:
            self.receive(message)
        self.messages.clear()

    def receive(self, message: Message) -> None:
        for sender in message.to:
            for shuffle in (self.shuffles[sender], self.twins[sender]):
                if isinstance(message.content, Sketch):
                    shuffle.take_sketch(message.replica, message.content)
                else:
                    shuffle.take_reply(message.replica, *message.content)

    @rule(sender=senders, replica=replicas, age=st.integers(1, 3), delta_s=st.floats(-1e6, 1e6))
    def old_reply(self, sender: int, replica: int, age: int, delta_s: float) -> None:
        shuffle = self.shuffles[sender]
        before = pickle.dumps(shuffle)
        shuffle.take_reply(replica, int(shuffle._state.status["epoch"][0]) - age, delta_s)
        assert pickle.dumps(shuffle) == before

    # What always holds

    @invariant()
    def estimates_are_times(self) -> None:
        for shuffle, active in zip(self.shuffles, self.active, strict=True):
            assert tuple(shuffle.loads_s) == active
            for load_s in shuffle.loads_s.values():
                assert 0.0 <= load_s < math.inf

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        for shuffle in self.shuffles:
            assert shuffle.state != "WAIT_ALL" or shuffle._state.status["since"][0] < OPTIONS.patience

    @invariant()
    def twins_are_alike(self) -> None:
        for shuffle, twin in zip(self.shuffles, self.twins, strict=True):
            for mine, other in zip(shuffle._state, twin._state, strict=True):
                assert np.array_equal(mine, other)

    def teardown(self) -> None:
        """With every message lost from now on, all epochs end; with none lost, no sender goes round for ever."""
        for sender in range(SENDERS):
            self.send(sender, [0] * 2 * (OPTIONS.patience + POOL))
            assert self.shuffles[sender].state in ("ROUND_ROBIN", "RUN")
        for _ in range(40):
            for sender in range(SENDERS):
                self.send(sender, list(range(VALUES)) * 3)
            for replica in range(POOL):
                self.execute(replica, len(self.queues[replica]))
            self.deliver_all()
        assert all(shuffle.state != "ROUND_ROBIN" for shuffle in self.shuffles)
        self.estimates_are_times()


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
