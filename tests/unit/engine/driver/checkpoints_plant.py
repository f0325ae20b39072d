"""Checkpoints over replicas that say what the test has them say."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.engine.driver.checkpoints import Checkpoints
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.phases import Phases, Shift
from penstock.engine.driver.records import Records
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.messages import Done, OperatorRouting, Routing
from penstock.metrics.counters import ReplicaCounters
from penstock.state.files import StateFiles
from penstock.topology import ReplicaId, Topology

from ..made import Published

SLOT, FIRST, SECOND, SINK = ("s", 0), ("count", 0), ("count", 1), ("store", 0)
EVERY_S, TIMEOUT_S = 10.0, 60.0


def count(event: Any, state: dict[str, int]) -> None: ...


class Plant:
    """Checkpoints over a source, an operator with state and a sink, which say what the test has them say."""

    def __init__(self, folder: Path) -> None:
        topology = Topology("t", pool=2)
        counted = topology.operator("count", count, inputs=topology.source("s"), key="word", key_groups=4)
        topology.operator("store", print, inputs=counted, pool=1)
        self.folder = folder
        self.routing = RoutingTable(topology, {}, Published())
        self.routing.members.follow(Routing(0, {"count": OperatorRouting((0, 1))}))  # both have been active
        self.tally = Tally(topology)
        self.phases = Phases(Published())
        self.files = StateFiles(folder / "state" / "count")
        files = {"count": self.files}
        self.handovers = Handovers(self.routing, files, 1.0, lambda: None)
        self.checkpoints = Checkpoints(Records(folder), self.phases, self.tally, self.handovers, self.routing.members)
        layout = lay_out(topology, {"count": [0, 1], "store": [0]})
        self.shifts = [Shift(number, layout, self._supervisor(number)) for number in (0, 1)]
        self.shift: Shift | None = self.shifts[0]
        self.phases.open(self.shifts[0])
        self.began_s = time.monotonic()
        self.checkpoints.start(self, EVERY_S, TIMEOUT_S)

    def _supervisor(self, generation: int) -> Any:
        return SimpleNamespace(generation=generation)

    def to_checkpoint(self) -> Shift | None:
        return self.shift

    # ── what happens ────────────────────────────────────────────────────────────────────────────────────────────────

    def look(self, after_s: float = 0.0) -> None:
        """The thread looks, so long after the start."""
        with self.checkpoints._lock:
            self.checkpoints._look(self.began_s + after_s)

    def begin(self) -> int:
        """A checkpoint is due; its number."""
        self.checkpoints._due_s = 0.0
        self.look()
        return self.barrier

    def say(self, number: int, *who: ReplicaId, generation: int = 0, shown: int = 0, **more: Any) -> None:
        """All replicas, or these, say that they have done their part."""
        for operator, replica in who or (SLOT, FIRST, SECOND, SINK):
            done = Done(generation, operator, replica, number, ReplicaCounters(processed=number), shown=shown, **more)
            self.checkpoints.hear([done])
        self.look()

    def commit(self) -> int:
        """A checkpoint from its beginning to its end."""
        number = self.begin()
        self.say(number)
        self.say(number, shown=number)
        return number

    # ── what can be seen ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def barrier(self) -> int:
        return self.phases.current.of(0).barrier

    @property
    def last(self) -> int:
        """The number of the last record, as a new driver finds it."""
        found = Records(self.folder).last
        assert (found.number if found else 0) == self.phases.current.committed
        return self.phases.current.committed

    @property
    def held(self) -> bool:
        return self.routing.coordinate(lambda all_: all_["count"].held)
