"""Shifts without Spark: their replicas say what the test has them say."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from penstock.engine.driver.attempts import Attempted
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.checkpoints import Checkpoints
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.phases import Phases
from penstock.engine.driver.records import Record, Records
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shifts
from penstock.engine.driver.tally import Tally
from penstock.engine.plan.layout import lay_out
from penstock.engine.protocol.messages import Done, Report, Reports, Start, StartQuery
from penstock.engine.protocol.progress import Phase, first_batch
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters, RunCounters
from penstock.topology import Topology
from tests.waiting import LONG_S, until

from ..made import LONG_AGO, Published

SLOT, FIRST, SECOND = ("s", 0), ("o", 0), ("o", 1)
EVERY_S = 1000.0  # checkpoints begin when the test asks for one

T = TypeVar("T")


class Watched:
    """A supervisor whose query is in the test's hands; as the real one it prepares each start."""

    def __init__(self, numbers: itertools.count[int], prepare: Callable[[int], None]) -> None:
        self._numbers = numbers
        self._prepare = prepare
        self.changing = threading.RLock()
        self.generation = next(numbers)
        self.restarts = self.renewals = 0
        self.failure: EngineError | None = None
        self.cause: Cause | None = None
        self.died_s = 0.0
        self.started = self.stopped = self.died = False
        self.standbys_ended = 0
        self.restarting = True

    def start(self) -> None:
        self._prepare(self.generation)
        self.started = True

    def stop(self) -> None:
        self.stopped = True

    def end_standby(self) -> None:
        self.standbys_ended += 1

    def die(self) -> None:
        """The query dies; it is started again, if that is what is done now."""
        with self.changing:
            if not self.restarting:
                self.died = True
                return
            self.restarts += 1
            self.cause = Cause(Kind.ENVIRONMENT, "it was killed")
            self._begin_again()

    def leave(self, generation: int) -> bool:
        with self.changing:
            self.restarting = generation != self.generation
            return not self.restarting

    def renew(self, between: Callable[[], None], unless: Callable[[], bool] = lambda: False) -> None:
        with self.changing:
            if unless():
                return
            between()
            self._begin_again()
            self.renewals += 1

    def _begin_again(self) -> None:
        self.generation = next(self._numbers)
        self._prepare(self.generation)


class Plant:
    """Shifts over one source and one operator whose replicas say what the test has them say."""

    def __init__(self, folder: Path, ready_within_s: float = 5.0, first_generation: int = 0) -> None:
        self.topology = Topology("t", pool=2)
        self.topology.operator("o", print, inputs=self.topology.source("s"))
        self.layout = lay_out(self.topology, {"o": [0, 1]})
        self.routing = RoutingTable(self.topology, {}, Published())
        self.tally = Tally(self.topology)
        self.folder, self.numbers = folder, itertools.count(first_generation)
        self.first_shift = first_generation  # as of a driver that finds so many starts of the query in the run's file
        self.supervisors: list[Watched] = []
        self.attempted: list[Attempted] = []
        self.catches_up = False
        self.deaths: list[Cause] = []
        self.recovered: list[tuple[int, int]] = []  # generations, and the record that each began from
        self.handovers = Handovers(self.routing, {}, 1.0, lambda: None)
        self.phases = Phases(Published())
        self.checkpoints = Checkpoints(Records(folder), self.phases, self.tally, self.handovers, self.routing.members)
        self.ready_within_s, self.log_file = ready_within_s, folder / "spark.log"
        self.shifts = Shifts(self, self.tally, self.phases, self.handovers, self.checkpoints)  # type: ignore[arg-type]

    def open(self) -> Plant:
        """The first shift is at work, and its sources have begun."""
        self.shifts.open(self.layout)
        self.report(0)
        self.shifts.await_ready()
        self.phases.begin(LONG_AGO)
        self.checkpoints.start(self.shifts, EVERY_S, 60.0)
        return self

    # ── the driver's part ───────────────────────────────────────────────────────────────────────────────────────────

    def supervise(self, of: Attempted) -> Any:
        assert of.layout is self.layout
        self.attempted.append(of)
        self.supervisors.append(Watched(self.numbers, of.prepare))
        return self.supervisors[-1]

    def with_room(self, act: Callable[[], T]) -> T:
        return act()

    def died(self, cause: Cause, died_s: float, generation: int) -> None:
        assert died_s == 0.0
        self.deaths.append(cause)

    def recover(self, generation: int) -> None:
        self.recovered.append((generation, self.record.number if self.record else 0))

    # ── what replicas say ───────────────────────────────────────────────────────────────────────────────────────────

    def report(self, shift: int, *, sent: int = 0, done: int = 0, generation: int | None = None) -> None:
        """What all replicas of a shift have done in its present attempt; its slot has heard of the phase."""
        of = self.supervisors[shift].generation if generation is None else generation
        batch, still = first_batch(shift), self.phases.current.of(shift).phase is not Phase.SENDING
        reports = [
            Report(of, batch, *SLOT, ReplicaCounters(processed=sent, sent={"o": sent}), still=still),
            Report(of, batch, *FIRST, ReplicaCounters(received={"s": done}, processed=done)),
            Report(of, batch, *SECOND, ReplicaCounters()),
        ]
        self.tally.enter(Reports("host", shift, 0, reports), now_s=0.0)

    def reach(self, shift: int, sent: int, *, attempt: int = 0, generation: int | None = None) -> int:
        """The slot sends its barrier behind so many events of the run, so many in this attempt; the checkpoint."""
        number = self.phases.current.of(shift).barrier
        of = self.supervisors[shift].generation if generation is None else generation
        counters = ReplicaCounters(processed=attempt, sent={"o": attempt})
        self.checkpoints.hear([Done(of, *SLOT, number, counters, cursor={"at": sent}, sent=sent)])
        return number

    def process(self, shift: int, number: int, *, attempt: int = 0) -> None:
        """The operator has done all up to the barrier, so many events in this attempt."""
        of = self.supervisors[shift].generation
        first = Done(of, *FIRST, number, ReplicaCounters(processed=attempt))
        self.checkpoints.hear([first, Done(of, *SECOND, number, ReplicaCounters())])

    def show(self, shift: int, number: int) -> None:
        """All have shown what is committed."""
        of = self.supervisors[shift].generation
        self.checkpoints.hear([Done(of, *one, number, shown=number) for one in (SLOT, FIRST, SECOND)])

    def checkpoint(self, shift: int, sent: int, *, attempt: int | None = None) -> int:
        """A checkpoint from its beginning to its end."""
        before = self.phases.current.of(shift).barrier
        self.checkpoints._due_s = 0.0
        until(lambda: self.phases.current.of(shift).barrier > before)
        number = self.complete(shift, sent, attempt=attempt)
        until(lambda: self.checkpoints._round is None)
        return number

    def complete(self, shift: int, sent: int, *, attempt: int | None = None) -> int:
        """A checkpoint that has begun, to its end."""
        counted = sent if attempt is None else attempt
        number = self.reach(shift, sent, attempt=counted)
        self.process(shift, number, attempt=counted)
        until(lambda: self.phases.current.committed == number)
        self.show(shift, number)
        return number

    def halt(self, shift: int, sent: int, *, attempt: int | None = None) -> int:
        """The slot of a shift stands still behind its last barrier, once it is told to."""
        until(lambda: self.phases.current.of(shift).phase is Phase.HALTED and self.checkpoints._round is not None)
        return self.reach(shift, sent, attempt=sent if attempt is None else attempt)

    def finish(self, shift: int, sent: int) -> None:
        """The shift that was left has done all that it had; its last checkpoint is committed and shown."""
        number = self.phases.current.of(shift).barrier
        self.process(shift, number, attempt=sent)
        until(lambda: self.phases.current.committed == number)
        self.show(shift, number)

    def begin(self, shift: int) -> Start:
        """The source slot of a shift asks where it starts."""
        return self.shifts.start_of(StartQuery(self.supervisors[shift].generation, *SLOT))

    # ── what can be seen ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def at_work(self) -> tuple[int, Phase]:
        """The newest shift that has sent, and what it does."""
        number, state = max(self.phases.current.shifts.items())
        return number, state.phase

    @property
    def record(self) -> Record | None:
        """The last record, as a new driver finds it."""
        return Records(self.folder).last

    @property
    def counters(self) -> RunCounters:
        return self.tally.counters(0.0, {"o": (0,)})

    # ── take-overs ──────────────────────────────────────────────────────────────────────────────────────────────────

    def take_over(self) -> Taking:
        return Taking(self.shifts, self.layout)

    def be_ready(self, shift: int) -> None:
        """All replicas of the next shift have reported."""
        until(lambda: len(self.supervisors) == shift + 1 and self.supervisors[shift].started)
        self.report(shift)

    def relieve(self, last: int, sent: int, *, attempt: int | None = None) -> None:
        """The next shift takes over from the last one, whose slot has sent so much."""
        taking = self.take_over()
        self.be_ready(last + 1)
        self.halt(last, sent, attempt=attempt)
        assert taking.done().error is None


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
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        return self
