"""The driver's side of a run at work: hears what replicas report, answers what they ask, runs the shifts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from penstock.common.files import once_there_is_room
from penstock.control.clock import SteadyClock
from penstock.engine.driver.attempts import Attempted, Attempts
from penstock.engine.driver.catching_up import CatchingUp
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.checkpoints import Checkpoints
from penstock.engine.driver.credential import is_loopback, make_credential
from penstock.engine.driver.faults import Faults
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.jumps import JumpListeners
from penstock.engine.driver.microbatch import MicroBatches, MicroBatchQuery, next_batch
from penstock.engine.driver.phases import Phases
from penstock.engine.driver.records import Records
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shifts
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.tally import Tally
from penstock.engine.driver.work import Work
from penstock.engine.online.exchange import Exchange
from penstock.engine.plan.job import Job
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import DriverAddress
from penstock.engine.plan.queries import RealTimeQuery
from penstock.engine.protocol.messages import (
    Answer,
    AtWork,
    OnlineNews,
    OperatorRouting,
    Question,
    Reports,
    Restore,
    StartQuery,
    Tables,
    TablesQuery,
    Utilisations,
)
from penstock.engine.protocol.progress import shift_of
from penstock.engine.run_file import KeptFile, RunFile
from penstock.infra.processes import process_mark
from penstock.metrics.counters import CheckpointStatus, RunCounters

LOCALHOST = "127.0.0.1"
ASK_S = 0.2  # how long replicas have to say how far they are
HEAD_START_S = 0.2  # between "all are ready" and the first event

T = TypeVar("T")


class Driver:
    """Listens from the beginning; `open` starts what is to be at work."""

    def __init__(
        self, job: Job, file: RunFile, server: ControlServer, routing: RoutingTable, tally: Tally, clock: SteadyClock
    ) -> None:
        self._job = job
        self._file = KeptFile(file, job.storage, job.check_alone)
        self._server = server
        self._routing = routing
        self._tally = tally
        self._clock = clock
        self._exchange = Exchange()
        self.faults = Faults()
        self.jumps = JumpListeners(lambda source: len(self.work.layout.replicas(source)))
        files = job.state_files()
        self._handovers = Handovers(routing, files, job.options.handover_timeout_s, self._roll_back)
        self._phases = Phases(server)
        records = Records(job.records, job.check_alone)
        self.checkpoints = Checkpoints(records, self._phases, tally, self._handovers, routing.members)
        self.attempts = Attempts(job, self._file, routing, self.checkpoints, server)
        self.first_shift = self.attempts.first  # every shift has had a generation
        whole = routing if job.options.whole_pool else None
        self._catching_up = CatchingUp(whole, self._caught_up, self.checkpoints.soon)
        self.ready_within_s, self.log_file = job.options.start_timeout_s, job.folder / "spark.log"
        self.work: Work = self._shifts() if job.options.realtime else self._microbatches()
        host = _host_of(job.spark)
        self._here = is_loopback(host) and process_mark(os.getpid()) is not None  # who has ended can be seen
        self.attempts.address = self._listen(server, host)

    def _listen(self, server: ControlServer, host: str) -> DriverAddress:
        options = self._job.options
        encrypt = not is_loopback(host) if options.encrypt is None else options.encrypt
        credential = make_credential() if encrypt else None
        port = server.start(host, self, credential, options.port_range)
        return DriverAddress(host, port, server.secret, options.report_every_s, credential, options.port_range)

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, layout: Layout) -> None:
        """Start the work; the sources begin when all its replicas are ready, or began when the run did."""
        for notice in (self._phases.current, self._routing.used, self._routing.current):
            self._server.publish(notice)
        self.with_room(self.attempts.leave_token)
        self.work.open(layout)
        if self.work.lasting:
            self._handovers.start()
        self.work.await_ready()
        epoch_s = self._file.now.epoch_s or time.time() + HEAD_START_S
        self.with_room(lambda: self._file.keep(epoch_s=epoch_s))
        self._phases.begin(epoch_s)
        if isinstance(self.work, Shifts):
            options = self._job.options
            self.checkpoints.start(self.work, options.checkpoint_every_s, options.checkpoint_timeout_s)

    def with_room(self, act: Callable[[], T]) -> T:
        """What it gives; a run that is carried on waits while the disk is full, a new one says so at once."""
        return once_there_is_room(act, self.ready_within_s if self.first_shift else 0.0, self.attempts.ending)

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        self.work.stop_sources()

    def close_operators(self) -> None:
        """Nothing is in flight: have the operators closed."""
        self._phases.close()

    def end(self) -> None:
        """End all work; sinks that wait for what is away before an attempt begins wait no longer."""
        self.attempts.ending.set()
        self._catching_up.stop()
        self._handovers.stop()
        self.checkpoints.stop()
        self.work.stop()
        self._handovers.join()
        self._phases.close()  # agents in processes that live on end, too

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask_all(self, timeout_s: float) -> bool:
        """Have every process report now; whether all have within the time."""
        poll, deadline = self._server.poll(), time.monotonic() + timeout_s
        while not self._server.answered(poll, least=1 if self.work.lasting else 0):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    @property
    def epoch_s(self) -> float | None:
        """When the sources began."""
        return self._phases.current.epoch_s

    @property
    def checkpoint_status(self) -> CheckpointStatus:
        """How checkpoints go."""
        return self.checkpoints.status

    def online_states(self) -> dict[str, dict[str, int]]:
        """For each operator whose grouping is online shuffle: how many of those who send to it are in which state."""
        return self._exchange.states()

    def cut_channel(self, cut: bool) -> None:
        """Break the control channel, or let it come back: a fault, for tests."""
        self._server.cut(cut)

    # ── what replicas say (Listener) ────────────────────────────────────────────────────────────────────────────────

    def hear(self, reports: Reports) -> list[OnlineNews]:
        """Take reports; what is new to who reports."""
        now_s = self._clock.now()
        self._tally.enter(reports, now_s)
        self.faults.deliver(now_s, self._tally.delivered(), self.work.is_ready)
        self.jumps.hear(reports)
        self._handovers.hear(reports)
        self.attempts.places.hear(reports)
        self.checkpoints.hear(reports.done)
        reports.online = [one for one in reports.online if shift_of(one.batch) == self._tally.current]
        return self._exchange.enter(reports)

    def lost(self, last: AtWork) -> None:
        """A process is gone, or its connection; this is the last that is known of what it did."""
        self.attempts.suspects.lost(last)
        pid = self._tally.process_of((last.operator, last.replica)) if self._here else None
        if pid is not None and not self._server.fails(last.generation):
            self.work.suspect(last.generation, pid, f"the process of {last.operator}/{last.replica} has ended")

    def fell_silent(self, last: AtWork, silent_s: float) -> None:
        """A process has said nothing for so long: its attempt ends, and what it may do later counts no more."""
        said = f"{last.operator}/{last.replica} has said nothing for {silent_s:g} s"
        self.work.give_up(last.generation, Cause(Kind.ENVIRONMENT, said))

    def answer(self, question: Question) -> Answer:
        """What a replica or a source's slot wants to know as it begins."""
        self.work.check(question)
        if isinstance(question, StartQuery):
            return self.work.start_of(question)
        if isinstance(question, TablesQuery):
            alone = not self.work.is_starting(question.generation)
            return Tables(self._handovers.tables(question.generation, alone=alone))
        record = self.checkpoints.records.last
        if record is None:
            return Restore(0, [])
        return Restore(record.number, record.state.get(question.operator, []))

    # ── what is at work ─────────────────────────────────────────────────────────────────────────────────────────────

    def supervise(self, of: Attempted) -> Supervisor:
        """Who runs a shift."""
        query = RealTimeQuery(self._job.spark, self._job.spark_folder)
        return self.attempts.supervise(query, of, lambda: self.checkpoints.status.committed)

    @property
    def catches_up(self) -> bool:
        """Whether what a fault has held up is not worked off yet."""
        return self._catching_up.lasting

    def recover(self, generation: int) -> None:
        """Have sinks clean up, and state be looked at, before an attempt begins from the last checkpoint."""
        self.attempts.recover(generation)

    def died(self, cause: Cause, died_s: float, generation: int) -> None:
        """The query of the shift at work has died, and is about to begin again, in that generation."""
        self.attempts.suspects.died(cause, self.checkpoints.status.committed, generation)
        self.faults.died(self._clock.now() - (time.monotonic() - died_s), cause.text)
        self._catching_up.begin()

    def _caught_up(self) -> RunCounters | None:
        """The counters of now, if sinks have all again that they had when the query died."""
        if self.faults.lasting:
            return None
        self.ask_all(ASK_S)
        return self._tally.counters(self._clock.now(), self._routing.active)

    def _shifts(self) -> Shifts:
        return Shifts(self, self._tally, self._phases, self._handovers, self.checkpoints)

    def _microbatches(self) -> MicroBatches:
        job, (frame,) = self._job, self._job.sources.values()
        assert isinstance(frame, DataFrame)
        query = MicroBatchQuery(frame, job.frames, job.topology, self._settled_routing)
        done = partial(next_batch, job.frames)

        def prepare(generation: int) -> None:
            self.attempts.recover_batch(generation, done())

        return MicroBatches(query, lambda layout: self.attempts.supervise(query, Attempted(0, layout, prepare), done))

    def _settled_routing(self) -> tuple[Mapping[str, OperatorRouting], Utilisations]:
        """With which the next micro-batch begins."""
        self._handovers.settle()
        return self._routing.current.operators, self._routing.used

    def _roll_back(self) -> None:
        """Begin again from the last checkpoint, under the owners before the change that does not get on."""
        self.work.renew(self._routing.roll_back)


def _host_of(spark: SparkSession) -> str:
    """Where replicas reach the driver."""
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return LOCALHOST
    return context.getConf().get("spark.driver.host", LOCALHOST) or LOCALHOST
