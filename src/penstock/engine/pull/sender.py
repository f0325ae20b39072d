"""The sender's side of late binding: what leaves for whom, and what is kept until somebody has room."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.engine.plan.program import Edge, Program
from penstock.engine.protocol.messages import Address, Routing, Utilisations
from penstock.engine.pull.post import RoomNote
from penstock.engine.worker.wire import Wire
from penstock.grouping import Pull, Receivers, Room, Sender

log = logging.getLogger(__name__)

LEAST_HELD = 64  # a sender keeps so many events, or twice the credit of all active replicas, before it is full
SILENT_S = 5.0  # a replica of which nothing is heard for so long cannot be heard
UNHEARD = Room(0, 1 << 40)


class PullSender:
    """What a replica knows of the room of an operator that it sends to. Streams that lead there share it."""

    def __init__(self, edge: Edge) -> None:
        self.pull = Pull()
        self.notes: deque[RoomNote] = deque()  # that the agent has heard
        self._receiver = edge.receiver
        self._waiting_s: dict[int, float] = {}  # for the first word of each replica, since when

    def hear(self) -> None:
        """Take in what has come since the last time."""
        while self.notes:
            note = self.notes.popleft()
            self.pull.hear(note.replica, note.room)
            self._waiting_s[note.replica] = 0.0

    def sent(self, replicas: Iterable[int]) -> None:
        """Something leaves for these; what says nothing for long, though it has been sent something, is not waited for.

        It says a word when the first bundle arrives, however long its events take.
        """
        now_s = time.monotonic()
        for replica in replicas:
            self._waiting_s.setdefault(replica, now_s)

    def give_up_silent(self) -> None:
        """Send as if there were room to replicas of which nothing has ever been heard."""
        now_s = time.monotonic()
        for replica, since_s in self._waiting_s.items():
            if since_s and now_s - since_s > SILENT_S:
                log.warning(
                    "%s: nothing is heard of replica %d after %g s: datagrams between workers do not pass; "
                    "it is sent to without regard to its room",
                    self._receiver,
                    replica,
                    SILENT_S,
                )
                self._waiting_s[replica] = 0.0
                self.pull.hear(replica, UNHEARD)


class PullWire(Wire):
    """A wire of which only so much leaves as there is room for."""

    def __init__(
        self,
        edge: Edge,
        program: Program,
        level: int,
        replica: int,
        sender: PullSender,
        address: Callable[[], Address | None],
    ) -> None:
        super().__init__(edge, program, level, replica)
        self._sender = sender
        self._pull = sender.pull
        self._address = address  # to which notes are sent
        self._checked = 0  # of the events that stay, so many can be sent for certain

    @property
    def ready(self) -> int:
        """How many events can leave now."""
        if not self.events:
            return 0
        self._sender.hear()
        return min(self.limit, self._pull.room)

    @property
    def held(self) -> int:
        """Events that stay until there is room."""
        return len(self.events)

    @property
    def space(self) -> int:
        """How many more events may be put here."""
        return max(LEAST_HELD, 2 * self._pull.credit) - len(self.events)

    def route(self, routing: Routing, used: Utilisations, sender: str) -> None:
        """Follow the routing, and what has been heard."""
        super().route(routing, used, sender)
        self._sender.hear()
        if self.events and not self._pull.room:
            self._sender.give_up_silent()

    def _seat(self, me: Sender) -> None:
        """What is known of replicas does not depend on who else sends to them."""

    def _follow(self, receivers: Receivers) -> None:
        self._pull.update(receivers)

    def _choose(self, events: list[Any]) -> Sequence[int]:
        chosen = self._pull.assign(len(events))
        self._sender.sent(set(chosen))
        return chosen

    def pack(self, sender: int) -> Iterable[tuple[int, bytes]]:
        """As any wire does, and what stays is looked at now: later it is too late to take back what it came with."""
        yield from super().pack(sender)
        assert self._chosen is not None
        for event in self.events[max(self._checked, len(self._chosen)) :]:
            self.check(event)

    def keep(self, rows: list[int]) -> None:
        """Leave all but these out; replicas are chosen anew."""
        for replica in self._chosen or ():
            self._pull.take_back(replica)
        self._chosen = None
        self._checked = sum(row < self._checked for row in rows)
        super().keep(rows)

    def clear(self) -> None:
        """What was packed has left; all that stays has been looked at."""
        super().clear()
        self._checked = len(self.events)

    def _back(self) -> Address | None:
        return self._address()
