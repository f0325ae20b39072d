"""The sender's side of the online shuffle: who gets each event, and what goes along with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.engine.online.mailbox import Mailbox
from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.bundle import HASH, Keys
from penstock.engine.protocol.messages import Routing, Utilisations
from penstock.engine.worker.wire import Wire
from penstock.grouping import OnlineShuffle, Receivers, Sender, make_online_shuffle
from penstock.grouping.online_shuffle import Request, Sketch


class OnlineSender:
    """The one scheduler that a replica has for an operator, and what it hears from the operator's replicas.

    Streams that lead to the same operator share it, as the operator's replicas count a sender's events together.
    """

    def __init__(self, edge: Edge, mail: Mailbox) -> None:
        self.shuffle: OnlineShuffle = make_online_shuffle(Sender(), edge.key, edge.online)
        self._receiver = edge.receiver
        self._mail = mail
        self._news = mail.subscribe(edge.receiver)
        self._sketches: dict[int, Sketch] = {}  # the newest of each replica, for when it becomes active
        self._active: tuple[int, ...] = ()

    def follow(self, receivers: Receivers) -> None:
        """Go on with these replicas; those that join and have sent a sketch before are known at once."""
        joined = set(receivers.active).difference(self._active)
        self._active = receivers.active
        self.shuffle.update(receivers)
        for replica in sorted(joined & self._sketches.keys()):
            self.shuffle.take_sketch(replica, self._sketches[replica])

    def hear(self) -> None:
        """Take in what has come since the last time."""
        replies, sketches = self._news.replies, self._news.sketches
        while replies:
            reply = replies.popleft()
            self.shuffle.take_reply(reply.replica, reply.epoch, reply.delta_s)
        while sketches:
            replica, sketch = sketches.popitem()
            self._sketches[replica] = sketch
            self.shuffle.take_sketch(replica, sketch)
        self._mail.states[self._receiver] = self.shuffle.state


class OnlineWire(Wire):
    """A wire that asks its scheduler, and sends keys and requests along."""

    def __init__(self, edge: Edge, program: Program, level: int, replica: int, sender: OnlineSender) -> None:
        super().__init__(edge, program, level, replica)
        self._sender = sender
        self._shuffle = sender.shuffle
        self._hashes = self._shuffle.hashes(())
        self._requests: dict[int, Request] = {}

    def route(self, routing: Routing, used: Utilisations, sender: str) -> None:
        """Follow the routing, and what has been heard."""
        super().route(routing, used, sender)
        self._sender.hear()

    def _seat(self, me: Sender) -> None:
        self._shuffle.reseat(me)

    def _follow(self, receivers: Receivers) -> None:
        self._sender.follow(receivers)

    def _choose(self, events: list[Any]) -> Sequence[int]:
        self._hashes = self._shuffle.hashes(events)
        chosen: list[int] = self._shuffle.assign_hashes(self._hashes).tolist()
        self._requests = {request.event: request for request in self._shuffle.requests()}
        return chosen

    def _check_key(self, event: Any) -> None:
        self._shuffle.hashes([event])

    def _keep_keys(self, rows: list[int]) -> None:
        """A request whose event is left out is lost: it is as if the event had been dropped on arrival."""
        self._hashes = self._hashes[rows]
        self._requests = {place: self._requests[i] for place, i in enumerate(rows) if i in self._requests}

    def _keys(self, part: list[int]) -> Keys:
        asked = [(place, self._requests[i]) for place, i in enumerate(part) if i in self._requests]
        requests = [request._replace(event=place) for place, request in asked]
        return Keys(self._replica, self._hashes[part].astype(HASH).tobytes(), requests)
