"""Whom a checkpoint is of: sources' slots, and the replicas that may have been sent anything since the last one.

Only they get barriers and are waited for; an idle pool costs a checkpoint nothing. If one more may be sent to before
the checkpoint is complete, something may be on its way to it that belongs to the checkpoint: that one cannot count.
"""

from __future__ import annotations

import threading

from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import Routing
from penstock.topology import ReplicaId


class Members:
    """Follows the routing before anybody is told of it. Its lock is held for a moment only, with no other in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[ReplicaId, int] = {}  # the last routing in which each may be sent to
        self._outside: frozenset[ReplicaId] = frozenset()  # of the layout of a checkpoint, those that it is not of
        self._joined = False

    def follow(self, routing: Routing) -> None:
        """That is about to be published: a checkpoint that lacks one of its replicas is never complete."""
        with self._lock:
            receiving = {(name, one) for name, operator in routing.operators.items() for one in operator.receiving}
            self._until.update(dict.fromkeys(receiving, routing.version))
            self._joined = self._joined or not self._outside.isdisjoint(receiving)

    def begin(self, layout: Layout, since: int) -> frozenset[ReplicaId]:
        """Whom a checkpoint is of that begins now, if all who send follow that routing or a later one."""
        with self._lock:
            every = layout.of_operators
            members = {one for one in every if self._until.get(one, -1) >= since} | _first(layout)
            self._outside, self._joined = every - members, False
            return frozenset(members | layout.source_slots)

    def begin_whole(self, layout: Layout) -> frozenset[ReplicaId]:
        """The same for one that must not fail: it is of all."""
        with self._lock:
            self._outside, self._joined = frozenset(), False
            return layout.of_operators | layout.source_slots

    @property
    def joined(self) -> bool:
        """Whether somebody may be sent to whom the last one that began is not of."""
        with self._lock:
            return self._joined


def _first(layout: Layout) -> set[ReplicaId]:
    """The first replica of each operator, to which events go where a layout has none of the active ones."""
    first: dict[str, int] = {}
    for stage in layout.stages[1:]:
        for one in stage:
            if one.operator is not None:
                first.setdefault(one.operator, one.replica)
    return set(first.items())
