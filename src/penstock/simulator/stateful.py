"""An operator that keeps state by key: events go to whoever owns their group, and wait while its state moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.metrics.counters import OperatorCounters
from penstock.metrics.latency import merged
from penstock.simulator.arrays import (
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
from penstock.simulator.model import OperatorModel
from penstock.simulator.moves import Moves
from penstock.simulator.operator import SimulatedOperator
from penstock.simulator.options import STATE_BYTES, SimulationOptions
from penstock.simulator.regional import RegionalOperator


class StatefulOperator(RegionalOperator):
    """Sends by the owners of key groups, in regions or all at one place.

    An event whose state is still on its way is queued when that is there; others pass it by. So events of one group
    stay in order. That is exact: a replica's queue up to a marker is known once all that was sent before it has
    arrived, and with it when the state is there, before any event that has to wait for it could start.
    """

    def __init__(self, model: OperatorModel, options: SimulationOptions, tracking: Tracking, tally: Tally) -> None:
        super().__init__(model, options, tracking, tally)
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
        self._key_bytes = float(options.state_bytes.get(self.name, STATE_BYTES))

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

    def counters(self) -> OperatorCounters:
        """The counters now, with those of state."""
        counted, owners = super().counters(), self._moves.routes.active
        keys = np.bincount(owners, self._keys, self.pool)
        for replica, one in counted.replicas.items():
            one.state_keys = int(keys[replica])
            one.state_bytes = round(self._key_bytes * one.state_keys)
            one.groups_moved = self._moves.moved[replica]
            one.moving = merged([self._moves.waits[replica]])
        return counted

    def _send(self, until_s: float) -> None:
        """Let set out what is sent by then."""
        count = int(np.searchsorted(self._incoming.time, until_s, side="right"))
        if count:
            events, self._incoming = _cut(self._incoming, 0, count), _cut(self._incoming, count)
            super().take(events)

    def _go_on(self, at_s: float) -> None:
        """Hand over what one replica loses, or begin the next change."""
        handing, options = self._moves.next_handing, self._options
        if handing is None:
            delay_s = self._delay_s.max(axis=0)
            np.maximum.at(delay_s, self._sent.chosen, self._sent.events.time - at_s)  # markers overtake nothing
            super()._warm_up(self._moves.change(delay_s), at_s)
            return
        done_s = max(float(self._replicas.free[handing.loser]), at_s + options.hop_s)
        size = self._key_bytes * int(self._keys[handing.groups].sum())
        self._moves.hand_over(done_s + options.move_latency_s + size / options.move_bandwidth)

    def _due(self) -> Floats:
        """When each event on its way can be queued, but for the hop; at a group's old owner nothing has to wait."""
        times, groups = self._sent.events.time, self._of_value(self._group, self._sent.events.value)
        mine = self._moves.routes.active[groups] == self._sent.chosen
        return np.where(mine, np.maximum(times, self._moves.ready_s[groups] - self._options.hop_s), times)

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


def kind_of(model: OperatorModel, *, regional: bool) -> type[SimulatedOperator]:
    """What simulates an operator: with state, in regions, or all at one place."""
    if model.operator.state is not None:
        return StatefulOperator
    return RegionalOperator if regional else SimulatedOperator
