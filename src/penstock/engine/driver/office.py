"""The driver's office while a run is at work: it hears what replicas report, answers what they ask, runs the shifts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from penstock.control.clock import SteadyClock
from penstock.engine.driver.channel import SILENT_S, ControlServer
from penstock.engine.driver.drain import ask_all
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.launch import Launcher, Setup
from penstock.engine.driver.ledger import Ledger
from penstock.engine.driver.microbatch import MicroBatches, MicroBatchQuery
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.resuming import carry_on
from penstock.engine.driver.rota import Books, Rota
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.supervisor import Supervisor
from penstock.engine.online.exchange import Exchange
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import Channel
from penstock.engine.plan.queries import RealTimeQuery
from penstock.engine.protocol.messages import OnlineNews, OperatorRouting, Position, Question, Reports, TablesQuery
from penstock.engine.protocol.numbers import Slot, shift_of
from penstock.engine.run_file import RunFile, next_batch
from penstock.errors import EngineError
from penstock.state.files import StateFiles
from penstock.state.handover import Table

LOCALHOST = "127.0.0.1"
SILENT_REPORTS = 20  # a process that misses so many is gone


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

    def answer(self, question: Question) -> Position:
        """What a source slot wants to know, or to have kept."""

    def check(self, question: TablesQuery) -> object:
        """Raise an EngineError if whoever asks has been replaced."""

    def take_over(self, layout: Layout) -> float:
        """Have the next shift take over; how long no source could send."""

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no earlier shift is at work."""


class Office:
    """Listens from the beginning; `open` starts the first shift."""

    def __init__(self, setup: Setup, file: RunFile, routing: RoutingTable, ledger: Ledger, clock: SteadyClock) -> None:
        self._setup = setup
        self._routing = routing
        self._ledger = ledger
        self._clock = clock
        self._exchange = Exchange()
        options = setup.options
        files = _state_files(setup)
        self._handovers = Handovers(routing, files, options.handover_timeout_s)
        positions = Positions(setup.folder / "positions.json")
        self.begin: Mapping[Slot, int] = {}  # where sources go on: behind what earlier drivers of the run have sent
        books = Books(routing, ledger, positions, self.ask_all, self._handovers)
        self._server, channel = _listen(setup, file.id)
        self._launcher = Launcher(setup, file, books, channel)
        self.work: Work = self._microbatches(files) if not options.realtime else self._rota(books, files)

    def open(self, layout: Layout) -> None:
        """Start the first shift; the sources begin when all its replicas are ready."""
        self._server.on_reports = self._hear
        self._server.on_tables = self._tables
        self._server.on_question = self.work.answer
        self._routing.on_change = self._server.publish
        self._server.publish(self._routing.current)
        self.work.open(layout)
        if self.work.lasting:
            self._handovers.start()
        self.work.await_ready()
        self._launcher.begin_sources()

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        self.work.stop_sources()

    def end(self) -> None:
        """End all shifts."""
        self._handovers.stop()
        self.work.stop()
        self._routing.change(closing=True)  # agents in processes that live on end, too

    def close(self) -> None:
        """Listen no more."""
        self._server.stop()

    def ask_all(self, timeout_s: float) -> bool:
        """Have every process report; whether all have within the time."""
        return ask_all(self._routing, self._server, timeout_s, least=1 if self.work.lasting else 0)

    def all_sent(self) -> bool:
        """Whether nothing that was let in has yet to be sent, again or at all: no counter shows that."""
        return self.work.all_sent()

    def cut_channel(self, cut: bool) -> None:
        """Break the control channel, or let it come back: a fault, for tests."""
        self._server.cut(cut)

    def online_states(self) -> dict[str, dict[str, int]]:
        """For each operator whose grouping is online shuffle: how many of those who send to it are in which state."""
        return self._exchange.states()

    def _hear(self, reports: Reports) -> list[OnlineNews]:
        self._ledger.enter(reports, self._clock.now())
        self._handovers.hear(reports)
        reports.online = [one for one in reports.online if shift_of(one.batch) == self._ledger.current]
        return self._exchange.enter(reports)

    def _tables(self, question: TablesQuery) -> dict[str, Table]:
        self.work.check(question)
        return self._handovers.tables(question)

    def _rota(self, books: Books, files: dict[str, StateFiles]) -> Rota:
        setup, options = self._setup, self._setup.options
        slots = [(name, slot) for name in setup.sources for slot in range(options.source_slots)]
        resumed = carry_on(books.positions, setup.folder / "checkpoint", slots, files.values())
        self.begin = resumed.begin

        def supervise(shift: int, layout: Layout) -> Supervisor:
            query = RealTimeQuery(setup.spark, self._checkpoint(shift), options.checkpoint_every_s)
            return self._launcher.supervise(shift, layout, query)

        rota = Rota(
            books,
            supervise,
            ready_within_s=options.start_timeout_s,
            log_file=setup.folder / "spark.log",
            first=resumed.shift,
        )
        self._handovers.roll_back = rota.roll_back
        return rota

    def _microbatches(self, files: dict[str, StateFiles]) -> MicroBatches:
        (frame,) = self._setup.sources.values()
        assert isinstance(frame, DataFrame)
        for one in files.values():
            one.forget_from(next_batch(self._checkpoint(0)))
        query = MicroBatchQuery(frame, self._checkpoint(0), self._setup.topology, self._settled_routing)
        return MicroBatches(query, self._launcher.supervise)

    def _settled_routing(self) -> Mapping[str, OperatorRouting]:
        self._handovers.settle()
        return self._routing.current.operators

    def _checkpoint(self, shift: int) -> Path:
        return self._setup.folder / "checkpoint" / str(shift)


def _state_files(setup: Setup) -> dict[str, StateFiles]:
    """Of the operators that keep state."""
    kept = [name for name, operator in setup.topology.operators.items() if operator.state is not None]
    return {name: StateFiles(setup.folder / "state" / name) for name in kept}


def _listen(setup: Setup, run: str) -> tuple[ControlServer, Channel]:
    """The driver's end of the control channel, and how replicas reach it."""
    host, secret, every_s = _host_of(setup.spark), secrets.token_bytes(32), setup.options.report_every_s
    server = ControlServer(run, secret, host, silent_s=max(SILENT_S, SILENT_REPORTS * every_s))
    return server, Channel(host, server.start(), secret, every_s)


def _host_of(spark: SparkSession) -> str:
    """Where replicas reach the driver."""
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return LOCALHOST
    return context.getConf().get("spark.driver.host", LOCALHOST) or LOCALHOST
