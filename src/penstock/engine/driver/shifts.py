"""A shift: one layout of the pools at work, a query of its own with a checkpoint of its own.

Two can be at work at the same time. The next one starts while the last goes on; when all its replicas are ready, the
sources of the last stop and those of the next go on from there. The last finishes what it has and is ended. Until then
operators of the next that process events of one key in order only queue them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.numbers import Slot
from penstock.errors import InputError
from penstock.topology import Topology


@dataclass
class Shift:
    """A layout at work.

    `halted` has where its source slots stopped, `left` whether another has taken over. `begun` has the generation in
    which each slot last began, `owed` how far it had come, as far as that was heard, before its query died.
    """

    number: int
    layout: Layout
    supervisor: Supervisor
    halted: dict[Slot, int] = field(default_factory=dict)
    begun: dict[Slot, int] = field(default_factory=dict)
    owed: dict[Slot, int] = field(default_factory=dict)
    left: bool = False
    ended: Event = field(default_factory=Event)

    @property
    def source_slots(self) -> set[Slot]:
        """All slots of all sources."""
        return {(slot.operator, slot.replica) for slot in self.layout.stages[0] if slot.operator is not None}

    @property
    def replicas(self) -> set[tuple[str, int]]:
        """All that report: replicas of operators, and slots of sources."""
        return {(s.operator, s.replica) for stage in self.layout.stages for s in stage if s.operator is not None}


def check_pools(topology: Topology, pools: Mapping[str, Sequence[int]], active: Mapping[str, tuple[int, ...]]) -> None:
    """Raise an InputError unless every operator's pool has its active replicas, and none beyond its declared pool."""
    for name, operator in topology.operators.items():
        missing = sorted(set(active[name]) - set(pools.get(name, ())))
        wrong = sorted(replica for replica in pools.get(name, ()) if not 0 <= replica < operator.pool)
        if missing or wrong:
            raise InputError(
                f"{operator}: its pool must have the active replicas and none beyond 0..{operator.pool - 1}; "
                f"missing: {missing}, beyond: {wrong}"
            )
