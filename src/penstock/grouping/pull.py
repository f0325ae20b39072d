"""Pull, late binding: a sender keeps events until a replica has room for them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from penstock.common.checks import positive
from penstock.grouping.base import Receivers, Sender

AHEAD_S = 0.05  # the work that a replica is given ahead
_MANY = 16  # events for each replica; with more they are assigned in pieces
_LEARNT_S = 5.0  # of busy time, after which what was measured before counts half


class Room(NamedTuple):
    """What a replica tells one of its senders; both numbers replace those it told before."""

    finished: int  # events of this sender that it has finished or dropped, since the beginning
    credit: int  # how many of this sender's events it may have unfinished


def credit_of(execution_time_s: float | None, ahead_s: float = AHEAD_S, senders: int = 1) -> int:
    """The events that one sender may give a replica ahead: credit = max(1, ⌈ahead / (et · senders)⌉).

    As long as the execution time is not known, one.

    >>> credit_of(0.02), credit_of(0.3), credit_of(None), credit_of(0.001, senders=4)
    (3, 1, 1, 13)
    """
    if execution_time_s is None or not 0 < execution_time_s < math.inf:
        return 1
    return max(1, math.ceil(ahead_s / (execution_time_s * senders) - 1e-9))


@dataclass(slots=True)
class _Account:
    """One replica, as a sender knows it."""

    sent: int = 0
    finished: int = 0
    credit: int = 1
    turn: int = 0  # when it was last chosen

    @property
    def free(self) -> int:
        return self.credit - (self.sent - self.finished)


class Pull:
    """Each event goes to the active replica with most free credit, in turn among equals; without room it is kept.

        free = credit − (sent − finished)

    What was sent is counted here; what was finished, and the credit, is told by the replica (`hear`), as counts since
    the beginning: news that is lost is made good by the next, and news that comes late does no harm. A replica of
    which nothing was heard has a credit of one event.

    >>> pull = Pull(Sender())
    >>> pull.update(Receivers(active=(0, 1)))
    >>> pull.assign(3)  # of three events, two have a replica; the third is kept
    [0, 1]
    >>> pull.hear(1, Room(finished=1, credit=3))
    >>> pull.room, pull.assign(4)
    (3, [1, 1, 1])
    """

    def __init__(self, sender: Sender | None = None) -> None:
        self._first = (sender or Sender()).number
        self._accounts: dict[int, _Account] = {}
        self._turn = 0
        self.update(Receivers(active=(0,)))

    def update(self, receivers: Receivers) -> None:
        """Give to these replicas from now on; what the others have booked stays with them."""
        self._active = receivers.active
        count = len(self._active)
        for place in range(count):  # senders start at different replicas, so that they do not herd
            account = self._accounts.setdefault(self._active[(self._first + place) % count], _Account())
            if account.sent == 0:
                account.turn = place - count

    def hear(self, replica: int, room: Room) -> None:
        """Take what a replica says of its room; what is older than what is known is left."""
        account = self._accounts.setdefault(replica, _Account())
        if room.finished >= account.finished:
            account.finished, account.credit = room.finished, max(1, room.credit)

    @property
    def room(self) -> int:
        """How many events the active replicas have room for."""
        return sum(max(0, self._accounts[replica].free) for replica in self._active)

    @property
    def credit(self) -> int:
        """How many events the active replicas may have unfinished."""
        return sum(self._accounts[replica].credit for replica in self._active)

    def booked(self, replica: int) -> int:
        """Events that a replica was given and has not said to have finished."""
        account = self._accounts.get(replica)
        return account.sent - account.finished if account else 0

    def take_back(self, replica: int) -> None:
        """An event that was assigned to the replica is not sent."""
        self._accounts[replica].sent -= 1

    def assign(self, count: int) -> list[int]:
        """The replicas for the first of so many events: as many of them as there is room for."""
        if count > _MANY * len(self._active):
            return self._assign_many(count)
        waiting = [
            (-account.free, account.turn, replica)
            for replica in self._active
            if (account := self._accounts[replica]).free > 0
        ]
        heapq.heapify(waiting)
        chosen: list[int] = []
        while waiting and len(chosen) < count:
            replica = waiting[0][2]
            account = self._accounts[replica]
            self._turn += 1
            account.sent, account.turn = account.sent + 1, self._turn
            chosen.append(replica)
            if account.free > 0:
                heapq.heapreplace(waiting, (-account.free, account.turn, replica))
            else:
                heapq.heappop(waiting)
        return chosen

    def _assign_many(self, count: int) -> list[int]:
        """The same shares, each in one piece: with so many events the order matters less than the time it takes."""
        free = sorted(((self._accounts[replica].free, replica) for replica in self._active), reverse=True)
        shares = levelled([max(0, one) for one, _ in free], count)
        chosen: list[int] = []
        for (_, replica), share in zip(free, shares, strict=True):
            if share:
                account, self._turn = self._accounts[replica], self._turn + 1
                account.sent, account.turn = account.sent + share, self._turn
                chosen += [replica] * share
        return chosen

    def begin(self) -> None:
        """All replicas start anew, with nothing booked: the next attempt of a query."""
        for account in self._accounts.values():
            account.sent = account.finished = 0


def levelled(free: list[int], count: int) -> list[int]:
    """How much of each is taken so that `count` is, and what is left is level; `free` falls, none is below 0.

    >>> levelled([9, 5, 1], 8), levelled([9, 5, 1], 100), levelled([3, 3, 3], 4)
    ([6, 2, 0], [9, 5, 1], [2, 1, 1])
    """
    left, taken = min(count, sum(free)), [0] * len(free)
    for rank in range(1, len(free) + 1):  # bring the first `rank` down to the next
        below = free[rank] if rank < len(free) else 0
        step = min(free[rank - 1] - below, left // rank)
        taken[:rank] = [one + step for one in taken[:rank]]
        left -= step * rank
        if step < free[rank - 1] - below:
            break
    for place in range(left):
        taken[place] += 1
    return taken


class Credits:
    """The other end: what a replica has finished of each sender's events, and the room that it gives them.

    The execution time is a mean over events that fades with the time spent on them: what was measured 5 s of work ago
    counts half.

    >>> credits = Credits(ahead_s=0.05)
    >>> credits.executed("clean/0", events=4, busy_s=0.04)
    >>> credits.room("clean/0"), credits.room("clean/1")
    (Room(finished=4, credit=5), Room(finished=0, credit=5))
    >>> credits.senders = 3
    >>> credits.room("clean/0").credit
    2
    """

    def __init__(self, *, ahead_s: float = AHEAD_S, senders: int = 1) -> None:
        self.ahead_s = positive("grouping 'pull'", "ahead_s", ahead_s)
        self.senders = senders  # that share the credit
        self._finished: dict[Hashable, int] = {}
        self._busy_s = self._events = 0.0

    def executed(self, sender: Hashable, events: int, busy_s: float) -> None:
        """So many events of a sender are finished, in this time; dropped ones took none."""
        self._finished[sender] = self._finished.get(sender, 0) + events
        if busy_s > 0:
            fade = 2 ** (-busy_s / _LEARNT_S)
            self._busy_s, self._events = fade * self._busy_s + busy_s, fade * self._events + events

    @property
    def execution_time_s(self) -> float | None:
        """As learnt; None before the first event."""
        return self._busy_s / self._events if self._events else None

    @property
    def credit(self) -> int:
        """How many events each sender may have here unfinished."""
        return credit_of(self.execution_time_s, self.ahead_s, max(1, self.senders))

    def room(self, sender: Hashable) -> Room:
        """What to tell a sender."""
        return Room(self._finished.get(sender, 0), self.credit)
