"""An operator that keeps state by key: events go to whoever owns their group, and wait while its state moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.metrics.latency import LatencyHistogram, merged
from penstock.simulator.kernels.arrays import (
    PROCESSED,
    Events,
    Flags,
    Floats,
    Ints,
    Routes,
    Small,
    Tally,
    Tracking,
    empty_events,
)
from penstock.simulator.plant.model import OperatorModel
from penstock.simulator.plant.regional import RegionalOperator
from penstock.simulator.plant.rows import Kept, Rows, with_state
from penstock.simulator.scenario import Plant
from penstock.state.owners import first_owners, reassigned

STATE_BYTES = 60.0  # of one key, where nothing is said: a word with a dict of three numbers, encoded


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


class StatefulOperator(RegionalOperator):
    """Sends by the owners of key groups, in regions or all at one place.

    An event whose state is still on its way is queued when that is there; others pass it by. So events of one group
    stay in order. That is exact: a replica's queue up to a marker is known once all that was sent before it has
    arrived, and with it when the state is there, before any event that has to wait for it could start.
    """

    def __init__(self, model: OperatorModel, plant: Plant, tracking: Tracking, tally: Tally) -> None:
        super().__init__(model, plant, tracking, tally)
        assert model.operator.state is not None
        groups = model.operator.state.groups
        self._moves = Moves(groups, self.pool)
        self._incoming = empty_events(0)
        self._group = self._work.key % groups  # by value
        self._key = model.keys  # by value
        self._group_of_key = np.zeros(1 + int(self._key.max(initial=0)), np.int64)
        self._group_of_key[self._key] = self._group
        self._seen = np.zeros(len(self._group_of_key), bool)
        self._keys = np.zeros(groups, np.int64)  # seen so far, by group
        self._key_bytes = float(plant.state_bytes.get(self.name, STATE_BYTES))

    @property
    def _targets(self) -> Routes:
        return self._moves.routes

    def activate(self, replicas: Sequence[int], now_s: float) -> None:
        """Have these own the groups; those that did not own any work after the activation delay."""
        super().activate(replicas, now_s)
        if now_s > 0:
            self._moves.want(self.active, now_s)
        else:
            self._moves.begin(self.active)

    def _warm_up(self, new: Sequence[int], now_s: float) -> None:
        """Not before they own something."""

    def take(self, events: Events) -> None:
        """Let events set out, given in order of time; who gets them depends on what moves meanwhile."""
        self._incoming = events

    def give(self, until_s: float) -> None:
        """Queue what arrives by then, move state, and let leave what finishes."""
        while (at_s := self._moves.next_s) <= until_s:
            self._send(at_s)
            self._arrive(at_s)
            self._go_on(at_s)
        self._send(np.inf)
        super().give(until_s)

    def restart(self, until_s: float, *, lossy: bool) -> None:
        """Stand still until then; meanwhile state moves, too."""
        self._moves.end(until_s)
        super().restart(until_s, lossy=lossy)

    def _rows_now(self) -> Rows:
        """The counters now, with those of state."""
        keys = np.bincount(self._moves.routes.active, self._keys, self.pool).astype(np.int64).tolist()
        waits = [merged([one]) for one in self._moves.waits]
        return with_state(super()._rows_now(), Kept(keys, self._key_bytes, list(self._moves.moved), waits))

    def _send(self, until_s: float) -> None:
        """Let set out what is sent by then."""
        count = int(np.searchsorted(self._incoming.time, until_s, side="right"))
        if count:
            events, self._incoming = _cut(self._incoming, 0, count), _cut(self._incoming, count)
            super().take(events)

    def _go_on(self, at_s: float) -> None:
        """Hand over what one replica loses, or begin the next change."""
        handing, plant = self._moves.next_handing, self._plant
        if handing is None:
            delay_s = self._delay_s.max(axis=0)
            np.maximum.at(delay_s, self._sent.chosen, self._sent.events.time - at_s)  # markers overtake nothing
            super()._warm_up(self._moves.change(delay_s), at_s)
            return
        done_s = max(float(self._replicas.free[handing.loser]), at_s + plant.hop_s)
        size = self._key_bytes * int(self._keys[handing.groups].sum())
        self._moves.hand_over(done_s + plant.move_latency_s + size / plant.move_bandwidth)

    def _due(self) -> Floats:
        """When each event on its way can be queued, but for the hop; at a group's old owner nothing has to wait."""
        times, groups = self._sent.events.time, self._of_value(self._group, self._sent.events.value)
        mine = self._moves.routes.active[groups] == self._sent.chosen
        return np.where(mine, np.maximum(times, self._moves.ready_s[groups] - self._plant.hop_s), times)

    def _queue_up(self, events: Events, kind: int, chosen: Ints, asked: Flags) -> None:
        """Queue events; the keys of those that will be processed are seen from now on."""
        self._make_room(len(events.time))
        first = int(self._queue.size[0])
        super()._queue_up(events, kind, chosen, asked)
        new = slice(first, int(self._queue.size[0]))
        keys = self._of_value(self._key, self._queue.value[new][self._queue.fate[new] == PROCESSED])
        fresh = np.unique(keys[~self._seen[keys]])
        self._seen[fresh] = True
        np.add.at(self._keys, self._group_of_key[fresh], 1)

    @staticmethod
    def _of_value(table: Ints, values: Small) -> Ints:
        """What a table has of these values; one number where all are alike."""
        return table[np.minimum(values, len(table) - 1)]


def _cut(events: Events, first: int, last: int | None = None) -> Events:
    time, born, source, value, row = events
    part = slice(first, last)
    return Events(time[part], born[part], source[part], value[part], row[part])
