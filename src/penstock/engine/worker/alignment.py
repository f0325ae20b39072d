"""Barriers at a replica: a checkpoint is reached when all senders' barriers are here; who is ahead waits meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Set

from penstock.engine.plan.program import QUEUE_BYTES
from penstock.engine.protocol.bundle import Barrier, Header, read_header, read_sign
from penstock.engine.worker.inbox import WAKE, Arrival
from penstock.topology import ReplicaId

_NOTHING = Arrival(WAKE, 0)


class Alignment:
    """Takes arrivals and gives them on, in order by sender; those behind a barrier once the barriers of all are in.

    All are the senders among the members of a checkpoint, which `members` reads out of a barrier.
    """

    def __init__(
        self,
        senders: Iterable[ReplicaId],
        names: tuple[str, ...],
        most_bytes: int = QUEUE_BYTES,
        members: Callable[[bytes], Set[ReplicaId]] | None = None,
    ) -> None:
        self._senders = self._awaited = frozenset(senders)
        self._members = members
        self._names = names  # of senders, by their number in headers
        self._ahead: set[ReplicaId] = set()  # whose barrier of the next checkpoint is here
        self._held: list[Arrival] = []
        self._held_bytes = 0
        self._most_bytes = most_bytes  # more than this is not held back: the checkpoint is given up
        self._released: deque[Arrival] = deque()
        self._next = 0  # the checkpoint for which barriers are collected; 0: none
        self._over = 0  # reached or given up

    def take(self, take: Callable[[], Arrival | None]) -> Arrival | Barrier | None:
        """The next arrival, or the barrier that all senders have sent; None when there will be none.

        What has to wait comes as an empty arrival: whoever takes it has a look round before it waits for more.
        """
        arrival = self._released.popleft() if self._released else take()
        if arrival is None or not arrival.bundle:
            return arrival
        header = read_header(arrival.bundle)
        sender = self._sender(header)
        if sender in self._ahead:
            self._hold(arrival)
            return _NOTHING
        sign = None if header.events else read_sign(arrival.bundle)
        if not isinstance(sign, Barrier):
            return arrival
        return sign if self._reached(sign, sender) else _NOTHING

    def pending(self) -> bool:
        """Whether something can be taken without waiting for more to arrive."""
        return bool(self._released)

    def give_up(self, number: int) -> None:
        """Checkpoints up to this one will not be reached: nobody waits for them."""
        if self._next and self._next <= number:
            self._release()
        self._over = max(self._over, number)

    def _reached(self, barrier: Barrier, sender: ReplicaId) -> bool:
        number = barrier.number
        if number <= self._over:
            return False
        if number != self._next:  # another one was given up by whoever sends this
            self._release()
            self._next, self._over = number, number - 1
            members = self._members(barrier.members) if self._members is not None else self._senders
            self._awaited = self._senders & members
        self._ahead.add(sender)
        if not self._ahead >= self._awaited:
            return False
        self._over = number
        self._release()
        return True

    def _hold(self, arrival: Arrival) -> None:
        self._held.append(arrival)
        self._held_bytes += len(arrival.bundle)
        if self._held_bytes > self._most_bytes:
            self.give_up(self._next)

    def _release(self) -> None:
        self._released.extendleft(reversed(self._held))
        self._held, self._held_bytes, self._next = [], 0, 0
        self._ahead.clear()

    def _sender(self, header: Header) -> ReplicaId:
        return self._names[header.sender], header.replica
