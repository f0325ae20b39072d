"""The receiver's side of late binding: what a replica has finished of each sender's events, and when it says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from penstock.engine.plan.program import Program, active_senders
from penstock.engine.protocol.bundle import Header
from penstock.engine.protocol.messages import Address, Routing
from penstock.engine.pull.post import Post, RoomNote
from penstock.grouping import Credits, Room
from penstock.grouping.names import LATE
from penstock.topology import ReplicaId

REPEATS = 60  # of the last note to each sender


class Rooms:
    """Counts by sender, and notes to those that may need one.

    A sender is told when less than half of its credit is left, as far as it can know, and something has been finished;
    and once at the beginning, so that it knows that it can be heard. With each report all are told again, as notes may
    be lost.
    """

    def __init__(self, program: Program, name: str, replica: int, post: Callable[[], Post]) -> None:
        self._program = program
        self._name = name
        self._replica = replica
        self._post = post
        self._credits = Credits()
        self._addresses: dict[ReplicaId, Address] = {}
        self._arrived: dict[ReplicaId, int] = {}
        self._told: dict[ReplicaId, Room] = {}
        self._unfinished: deque[tuple[ReplicaId, int]] = deque()
        every = (edge for edges in program.edges.values() for edge in edges)
        self._senders = next(edge.senders for edge in every if edge.receiver == name)
        self._routing: Routing | None = None
        self._lost: Mapping[ReplicaId, int] = {}
        self._repeats: dict[ReplicaId, tuple[int, int]] = {}  # of how much finished, how often

    def watch(self, lost: Mapping[ReplicaId, int]) -> None:
        """Where the queue counts what it had no place for."""
        self._lost = lost

    def arrive(self, header: Header, back: Address | None, kept: int) -> None:
        """A bundle is here, and so many of its events are to be processed."""
        sender = (self._program.senders[header.sender], header.replica)
        self._arrived[sender] = self._arrived.get(sender, 0) + header.events
        if kept < header.events:
            self._credits.executed(sender, header.events - kept, 0.0)
        self._unfinished.append((sender, kept))
        if back is not None and self._addresses.get(sender) != tuple(back):
            self._addresses[sender] = (back[0], back[1])
            self._tell(sender)

    def finish(self, events: int, busy_s: float, routing: Routing) -> None:
        """So many events, in the order in which they came, are finished after this time."""
        if routing is not self._routing:
            self._routing = routing
            self._credits.senders = sum(len(active_senders(self._program, routing, one)) for one in self._senders)
        each_s, touched = busy_s / events if events else 0.0, []
        while events > 0:
            sender, count = self._unfinished.popleft()
            done = min(count, events)
            if done < count:
                self._unfinished.appendleft((sender, count - done))
            self._credits.executed(sender, done, done * each_s)
            events -= done
            touched.append(sender)
        for sender in dict.fromkeys(touched):
            told, come = self._told.get(sender), self._arrived[sender] + self._lost.get(sender, 0)
            if told is not None and 2 * (come - told.finished) > told.credit:
                self._tell(sender)

    def repeat(self) -> None:
        """Tell all senders again, for a while."""
        for sender in list(self._addresses):
            finished = self._finished(sender)
            before, times = self._repeats.get(sender, (0, 0))
            times = times + 1 if finished == before else 0
            self._repeats[sender] = finished, times
            if times < REPEATS:
                self._tell(sender)

    @property
    def _credit(self) -> int:
        """One more than is needed if there is only one sender, who has to hear of room before it sends."""
        return self._credits.credit + (self._credits.senders == 1)

    def _finished(self, sender: ReplicaId) -> int:
        return self._credits.room(sender).finished + self._lost.get(sender, 0)

    def _tell(self, sender: ReplicaId) -> None:
        self._told[sender] = room = Room(self._finished(sender), self._credit)
        note = RoomNote(self._program.generation, self._name, self._replica, *sender, *room)
        self._post().send(note, self._addresses[sender])


def rooms_of(program: Program, name: str, replica: int, post: Callable[[], Post]) -> Rooms | None:
    """What the replica keeps of its room, if its events are bound late."""
    late = any(edge.receiver == name and edge.grouping in LATE for edges in program.edges.values() for edge in edges)
    return Rooms(program, name, replica, post) if late and program.realtime else None
