"""Key groups in the simulator: who owns them, and when the state of those that move is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.metrics.latency import LatencyHistogram
from penstock.simulator.arrays import Floats, Ints, Routes
from penstock.state.owners import first_owners, reassigned


class Handing(NamedTuple):
    """What one replica has to hand over, and when the last marker has been sent and is about to reach it."""

    marked_s: float
    loser: int
    groups: Ints


class Moves:
    """The key groups of one operator, as `penstock.state.handover` moves them on Spark, with times.

    Senders mark the end of what goes to the old owners. A replica that loses groups hands all of them over when it has
    come to the last marker; until their state is there, whoever gains them holds back their events:

        ready = max(free of the loser, arrival of the last marker) + latency + bytes that it hands over / bandwidth

    One change at a time: the next begins when all state of this one is there, and of several wishes the last counts.

    >>> moves = Moves(groups=4, pool=2)
    >>> moves.want((0, 1), 10.0)
    >>> moves.next_s, moves.change(np.zeros(2)), moves.routes.active.tolist()
    (10.0, [1], [0, 0, 1, 1])
    >>> moves.next_handing.groups.tolist(), moves.hand_over(12.5), moves.ready_s.tolist()
    ([2, 3], None, [-inf, -inf, 12.5, 12.5])
    """

    def __init__(self, groups: int, pool: int) -> None:
        self.ready_s = np.full(groups, -np.inf)  # when the state of each is with its owner; infinite: not known yet
        self.moved = [0] * pool  # groups that each replica has gained
        self.waits = [LatencyHistogram() for _ in range(pool)]  # of these
        self.begin((0,))

    def begin(self, active: Sequence[int]) -> None:
        """Share the groups out among these replicas, before there is any state."""
        self.owners = first_owners(len(self.ready_s), active)
        self.routes = _routes(self.owners)
        self._handing: list[Handing] = []
        self._wish: tuple[int, ...] | None = None
        self._asked_s = self._since_s = 0.0

    def want(self, active: Sequence[int], now_s: float) -> None:
        """Have the groups spread over these replicas, as soon as can be."""
        self._wish, self._asked_s = tuple(active), now_s

    @property
    def next_handing(self) -> Handing | None:
        """The hand-over that is next; None if there is none."""
        return self._handing[0] if self._handing else None

    @property
    def next_s(self) -> float:
        """When the next hand-over or change is to be looked at; infinite if there is none."""
        if self._handing:
            return self._handing[0].marked_s
        return max(self._asked_s, float(self.ready_s.max())) if self._wish is not None else np.inf

    def change(self, delay_s: Floats) -> list[int]:
        """Follow the wish; a marker takes so much longer to each replica. The replicas that owned nothing before."""
        assert self._wish is not None
        before, self._since_s = np.array(self.owners), self.next_s
        self.owners, self._wish = reassigned(self.owners, self._wish), None
        self.routes = _routes(self.owners)
        moved = np.flatnonzero(before != self.routes.active)
        self.ready_s[moved] = np.inf
        losers = np.unique(before[moved]).tolist()
        handing = [Handing(self._since_s + float(delay_s[one]), one, moved[before[moved] == one]) for one in losers]
        self._handing = sorted(handing, key=lambda one: one.marked_s)
        return sorted(set(self.owners) - set(before.tolist()))

    def hand_over(self, ready_s: float) -> None:
        """The next hand-over is under way: the state of its groups is there at this time."""
        handing = self._handing.pop(0)
        self.ready_s[handing.groups] = ready_s
        for group in handing.groups.tolist():
            self.moved[self.owners[group]] += 1
            self.waits[self.owners[group]].add(1000 * (ready_s - self._since_s))

    def end(self, ready_s: float) -> None:
        """Whatever is going on, and the wish, are over at this time: then all state is where it belongs."""
        for again in (self._wish is not None, False):
            while self._handing:
                self.hand_over(ready_s)
            self.ready_s[:] = -np.inf
            if again:
                self.change(np.zeros(len(self.moved)))


def _routes(owners: Sequence[int]) -> Routes:
    """Owners by group, so that the grouping `fields` chooses the owner: key mod groups."""
    return Routes(np.array(owners, np.int64), np.array([len(owners)]))
