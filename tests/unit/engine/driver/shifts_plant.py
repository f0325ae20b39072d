"""Shifts without Spark: their replicas say what the test has them say."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.phases import Phases
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shifts
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.messages import Halted, Position, Report, Reports, StartQuery
from penstock.engine.protocol.progress import Phase, first_batch
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

from ..made import Published

SLOT = ("s", 0)


class Watched:
    """A supervisor whose query is in the test's hands."""

    def __init__(self, number: int) -> None:
        self.generation = number
        self.restarts = 0
        self.failure: EngineError | None = None
        self.started = self.stopped = False

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True


class Plant:
    """Shifts over one source and one operator whose replicas say what the test has them say."""

    def __init__(self, folder: Path, ready_within_s: float = 5.0) -> None:
        self.topology = Topology("t", pool=2)
        self.topology.operator("o", print, inputs=self.topology.source("s"))
        self.layout = lay_out(self.topology, {"o": [0, 1]})
        self.routing = RoutingTable(self.topology, {}, Published())
        self.tally = Tally(self.topology)
        self.positions = Positions(folder / "positions.json")
        self.positions.begin(0, {SLOT: 0})
        self.supervisors: list[Watched] = []
        self.handovers = Handovers(self.routing, {}, 1.0, lambda: None)
        self.phases = Phases(self.tally, self.positions, Published())
        self.ready_within_s, self.log_file = ready_within_s, folder / "spark.log"
        self.shifts = Shifts(self, self.tally, self.positions, self.phases, self.handovers)

    def ask_all(self, timeout_s: float) -> bool:
        return True

    @property
    def at_work(self) -> tuple[int, Phase]:
        """The newest shift that has sent, and what it does."""
        number, state = max(self.phases.current.shifts.items())
        return number, state.phase

    def supervise(self, shift: int, layout: Any) -> Any:
        assert layout is self.layout
        self.supervisors.append(Watched(shift))
        return self.supervisors[shift]

    def report(self, shift: int, *, sent: int = 0, done: int = 0, generation: int | None = None) -> None:
        """What all replicas of a shift have done in its first batch."""
        of = self.supervisors[shift].generation if generation is None else generation
        batch = first_batch(shift)
        reports = [
            Report(of, batch, "s", 0, ReplicaCounters(processed=sent, sent={"o": sent})),
            Report(of, batch, "o", 0, ReplicaCounters(received={"s": done}, processed=done)),
            Report(of, batch, "o", 1, ReplicaCounters()),
        ]
        self.tally.enter(Reports("host", shift, 0, reports), now_s=0.0)

    def die(self, shift: int, generation: int | None = None) -> None:
        """The query of a shift is started again."""
        died = self.supervisors[shift]
        died.generation = died.generation + 1 if generation is None else generation

    def begin(self, shift: int, batch: int = 0) -> Position:
        """The source slot of a shift asks where its batch starts."""
        return self.shifts.answer(StartQuery(self.supervisors[shift].generation, *SLOT, first_batch(shift) + batch))

    def halt(self, shift: int, position: int) -> Position:
        """The source slot of a shift says where it has stopped, once it is told to."""
        until(lambda: self.at_work[1] is Phase.HALTED)
        return self.halted(shift, position)

    def halted(self, shift: int, position: int) -> Position:
        """The source slot of a shift says where it has stopped."""
        asked = Halted(self.supervisors[shift].generation, *SLOT, first_batch(shift), position, self.version)
        return self.shifts.answer(asked)

    @property
    def version(self) -> int:
        return self.phases.current.version

    def take_over(self) -> Taking:
        return Taking(self.shifts, self.layout)


class Taking:
    """A take-over in a thread of its own."""

    def __init__(self, shifts: Shifts, layout: Any) -> None:
        self.error: Exception | None = None
        self.pause_s = -1.0
        self._work = lambda: shifts.take_over(layout)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.pause_s = self._work()
        except Exception as error:
            self.error = error

    def done(self) -> Taking:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self


def until(true: Any, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def plant_ready_and_halted(plant: Plant, position: int) -> None:
    until(lambda: len(plant.supervisors) == 2)
    plant.report(1)
    plant.halt(0, position)
