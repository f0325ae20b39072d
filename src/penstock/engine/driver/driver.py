"""The driver's side of a run at work: hears what replicas report, answers what they ask, runs the shifts."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from pyspark.sql import DataFrame, SparkSession

from penstock.common.files import once_there_is_room
from penstock.control.clock import SteadyClock
from penstock.engine.driver.catching_up import CatchingUp
from penstock.engine.driver.causes import Cause, Kind
from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.checkpoints import Checkpoints, CheckpointStatus
from penstock.engine.driver.credential import is_loopback, make_credential
from penstock.engine.driver.faults import Faults
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.jumps import JumpListeners
from penstock.engine.driver.microbatch import MicroBatches, MicroBatchQuery, next_batch
from penstock.engine.driver.phases import Phases
from penstock.engine.driver.places import PlaceBook
from penstock.engine.driver.records import Records
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.shifts import Shifts
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.driver.suspects import Suspects
from penstock.engine.driver.tally import Tally
from penstock.engine.online.exchange import Exchange
from penstock.engine.plan.job import Job
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import DriverAddress, Program
from penstock.engine.plan.queries import Query, RealTimeQuery
from penstock.engine.protocol.messages import (
    Answer,
    AtWork,
    OnlineNews,
    OperatorRouting,
    Question,
    Reports,
    Restore,
    Start,
    StartQuery,
    Tables,
    TablesQuery,
    Utilisations,
)
from penstock.engine.protocol.progress import shift_of
from penstock.engine.run_file import RunFile
from penstock.errors import EngineError
from penstock.metrics.counters import RunCounters
from penstock.sinks.base import Recovers, Recovery
from penstock.sinks.waiting import giving_up
from penstock.topology import ReplicaId

LOCALHOST = "127.0.0.1"
TOKEN = "seen-"  # how the name of a file begins that all workers must see
ASK_S = 0.2  # how long replicas have to say how far they are
HEAD_START_S = 0.2  # between "all are ready" and the first event

T = TypeVar("T")


class Work(Protocol):
    """What is at work under the driver: shifts, or in micro-batch mode the batches of a DataFrame."""

    lasting: bool  # its processes stay connected

    @property
    def layout(self) -> Layout:
        """Where its replicas are."""

    @property
    def failure(self) -> EngineError | None:
        """Why it has ended for good, if it has."""

    @property
    def restarts(self) -> int:
        """How often a query was started again."""

    def open(self, layout: Layout) -> None:
        """Start."""

    def await_ready(self) -> None:
        """Wait until the sources can begin."""

    def stop_sources(self) -> None:
        """Let no more events in."""

    def stop(self) -> None:
        """End."""

    def all_sent(self) -> bool:
        """Whether nothing that was let in has yet to be sent."""

    def is_ready(self) -> bool:
        """Whether all its replicas are there."""

    def all_read(self) -> bool:
        """Whether no source will ever have another event."""

    def checkpoint_now(self, timeout_s: float) -> bool:
        """Whether all that has been processed is in a checkpoint, and shown, within the time."""

    def start_of(self, question: StartQuery) -> Start:
        """Where a source's slot starts."""

    def is_starting(self, generation: int) -> bool:
        """Whether that is of a shift that is not at work yet, while another is."""

    def check(self, question: Question) -> object:
        """Raise an EngineError if whoever asks has been replaced."""

    def take_over(self, layout: Layout) -> float:
        """Have the next shift take over; how long no source could send."""

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no earlier shift is at work."""

    def give_up(self, generation: int, cause: Cause) -> None:
        """End that attempt, if it is still at work; it is started again as after any death."""

    def renew(self, between: Callable[[], None]) -> None:
        """Have what is at work begin again from the last checkpoint; nothing runs while `between` is called."""


class Driver:
    """Listens from the beginning; `open` starts what is to be at work."""

    def __init__(
        self, job: Job, file: RunFile, server: ControlServer, routing: RoutingTable, tally: Tally, clock: SteadyClock
    ) -> None:
        self._job = job
        self._file, self._keeping = file, threading.Lock()
        self._server = server
        self._routing = routing
        self._tally = tally
        self._clock = clock
        self._exchange = Exchange()
        self.faults = Faults()
        self._suspects = Suspects()
        self.jumps = JumpListeners(lambda source: len(self.work.layout.replicas(source)))
        self._ending = threading.Event()
        self._token = ""
        self.first_shift = file.generation + 1  # every shift has had a generation
        self._generations = itertools.count(file.generation + 1)
        self._files = job.state_files()
        self._places = PlaceBook(server)
        self._handovers = Handovers(routing, self._files, job.options.handover_timeout_s, self._roll_back)
        self._phases = Phases(server)
        records = Records(job.records, job.check_alone)
        self.checkpoints = Checkpoints(records, self._phases, tally, self._handovers, self._files)
        whole = routing if job.options.whole_pool else None
        self._catching_up = CatchingUp(whole, self._caught_up, self.checkpoints.soon)
        self.ready_within_s, self.log_file = job.options.start_timeout_s, job.folder / "spark.log"
        self.work: Work = self._shifts() if job.options.realtime else self._microbatches()
        self._address = self._listen(server, _host_of(job.spark))

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
        self._token = self.with_room(self._leave_token)
        self.work.open(layout)
        if self.work.lasting:
            self._handovers.start()
        self.work.await_ready()
        epoch_s = self._file.epoch_s or time.time() + HEAD_START_S
        self.with_room(lambda: self._keep(epoch_s=epoch_s))
        self._phases.begin(epoch_s)
        if isinstance(self.work, Shifts):
            options = self._job.options
            self.checkpoints.start(self.work, options.checkpoint_every_s, options.checkpoint_timeout_s)

    def with_room(self, act: Callable[[], T]) -> T:
        """What it gives; a run that is carried on waits while the disk is full, a new one says so at once."""
        return once_there_is_room(act, self.ready_within_s if self.first_shift else 0.0, self._ending)

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        self.work.stop_sources()

    def close_operators(self) -> None:
        """Nothing is in flight: have the operators closed."""
        self._phases.close()

    def end(self) -> None:
        """End all work; sinks that wait for what is away before an attempt begins wait no longer."""
        self._ending.set()
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
        self._places.hear(reports)
        self.checkpoints.hear(reports.done)
        reports.online = [one for one in reports.online if shift_of(one.batch) == self._tally.current]
        return self._exchange.enter(reports)

    def lost(self, last: AtWork) -> None:
        """A process is gone; this is the last that is known of what it did."""
        self._suspects.lost(last)

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

    def supervise(self, shift: int, layout: Layout, prepare: Callable[[int], None]) -> Supervisor:
        """Who runs a shift; `prepare` is called with the generation before each start of its query."""
        query = RealTimeQuery(self._job.spark, self._job.spark_folder)
        return self._supervisor(query, shift, layout, prepare, lambda: self.checkpoints.status.committed)

    def died(self, cause: Cause, died_s: float, generation: int) -> None:
        """The query of the shift at work has died, and is about to begin again, in that generation."""
        self._suspects.died(cause, self.checkpoints.status.committed, generation)
        self.faults.died(self._clock.now() - (time.monotonic() - died_s), cause.text)
        self._catching_up.begin()

    def _caught_up(self) -> RunCounters | None:
        """The counters of now, if sinks have all again that they had when the query died."""
        if self.faults.lasting:
            return None
        self.ask_all(ASK_S)
        return self._tally.counters(self._clock.now(), self._routing.active)

    def recover(self, generation: int) -> None:
        """Have sinks clean up, and state be looked at, before an attempt begins from the last checkpoint."""
        record = self.checkpoints.records.last
        for name, files in self._files.items():
            files.forget_moves()
            if record is not None:
                files.check(record.state.get(name, ()))
        self._recover_sinks(
            generation, record.number if record is not None else 0, record.parts if record is not None else {}
        )

    def _recover_sinks(self, generation: int, checkpoint: int, parts: Mapping[str, Mapping[int, Any]]) -> None:
        for name, operator in self._job.topology.operators.items():
            sink: Any = operator.run
            if isinstance(sink, Recovers):
                folder = self._job.storage / "sinks" / name
                with giving_up(self._ending):
                    sink.recover(Recovery(self._job.run, name, generation, checkpoint, parts.get(name, {}), folder))

    def _supervisor(
        self,
        query: Query,
        shift: int,
        layout: Layout,
        prepare: Callable[[int], None],
        checkpoints: Callable[[], int],
    ) -> Supervisor:
        first: list[int] = []

        def program(generation: int) -> Program:
            first.append(generation)
            self._keep(generation=generation)
            prepare(generation)
            self._places.begin(generation, layout.of_operators)
            made = self._job.program(layout, self._address, self._routing.current.operators)
            checkpoint = self.checkpoints.first_label(shift)
            suspects = self._suspects
            made = replace(made, token=self._token, checkpoint=checkpoint)
            made = replace(made, careful=suspects.careful, deadly=suspects.deadly)
            return replace(made, generation=generation, shift=shift, first_generation=first[0])

        return Supervisor(query, program, self._job.options, self._generations, checkpoints)

    def _shifts(self) -> Shifts:
        return Shifts(self, self._tally, self._phases, self._handovers, self.checkpoints)

    def _microbatches(self) -> MicroBatches:
        job, (frame,) = self._job, self._job.sources.values()
        assert isinstance(frame, DataFrame)
        folder = job.frames
        query = MicroBatchQuery(frame, folder, job.topology, self._settled_routing)

        def prepare(generation: int) -> None:
            batch = next_batch(folder)
            for files in self._files.values():
                files.forget_from(batch)
            self._recover_sinks(generation, batch, {})

        done = partial(next_batch, folder)
        return MicroBatches(query, lambda layout: self._supervisor(query, 0, layout, prepare, done))

    def _leave_token(self) -> str:
        """A new file that workers are to see, if the run keeps anything that they share."""
        storage = self._job.storage
        for name in storage.names():
            if name.startswith(TOKEN):
                storage.remove(name)
        if not self._job.shares:
            return ""
        token = f"{TOKEN}{secrets.token_hex(6)}"
        storage.write(token, self._job.run.encode())
        return token

    def _settled_routing(self) -> tuple[Mapping[str, OperatorRouting], Utilisations]:
        """With which the next micro-batch begins."""
        self._handovers.settle()
        return self._routing.current.operators, self._routing.used

    def _roll_back(self) -> None:
        """Begin again from the last checkpoint, under the owners before the change that does not get on."""
        self.work.renew(self._routing.roll_back)

    def _keep(self, *, epoch_s: float | None = None, generation: int = -1) -> None:
        """On disk, for a later driver of the run; two shifts may begin attempts at the same time, in any order."""
        with self._keeping:
            held = self._file
            latest, epoch_s = max(generation, held.generation), held.epoch_s if epoch_s is None else epoch_s
            self._file = msgspec.structs.replace(held, epoch_s=epoch_s, generation=latest)
            self._job.check_alone()
            self._file.write(self._job.storage)


def _host_of(spark: SparkSession) -> str:
    """Where replicas reach the driver."""
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return LOCALHOST
    return context.getConf().get("spark.driver.host", LOCALHOST) or LOCALHOST


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where a replica sits; the executor is None while Spark does not say."""

    executor: str | None
    host: str
    pid: int
    batch: int


def executors_of(spark: SparkSession, layout: Layout) -> dict[ReplicaId, str]:
    """The executor of every replica of the real-time query now running, from what Spark says of its tasks.

    The stages of a query run at once and are numbered in the order of the levels.
    """
    context: Any = spark.sparkContext._jsc.sc()
    running = sorted(spark.sparkContext.statusTracker().getActiveStageIds())
    if len(running) != len(layout.all_stages):
        return {}
    found: dict[ReplicaId, str] = {}
    for stage_id, partitions in zip(running, layout.all_stages, strict=True):
        if not partitions:
            continue
        tasks = context.statusStore().taskList(stage_id, 0, len(partitions))
        for number in range(tasks.size()):
            task = tasks.apply(number)
            replica = partitions[task.index()].id if task.index() < len(partitions) else None
            if replica is not None:
                found[replica] = str(task.executorId())
    return found
