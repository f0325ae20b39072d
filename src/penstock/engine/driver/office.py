"""The driver's office while a run is at work: it hears what replicas report, answers what they ask, runs the shifts."""

from __future__ import annotations

import math
import secrets

from pyspark.sql import SparkSession

from penstock.control.clock import SteadyClock
from penstock.engine.binding import frames_of
from penstock.engine.driver.channel import SILENT_S, ControlServer
from penstock.engine.driver.drain import ask_all
from penstock.engine.driver.handovers import Handovers
from penstock.engine.driver.launch import Launcher, Setup
from penstock.engine.driver.ledger import Ledger
from penstock.engine.driver.positions import Positions
from penstock.engine.driver.resuming import Resumed, carry_on, go_on_in_place
from penstock.engine.driver.rota import Books, Rota
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.online.exchange import Exchange
from penstock.engine.plan.layout import Layout
from penstock.engine.plan.program import Channel
from penstock.engine.protocol.messages import OnlineNews, Reports, TablesQuery
from penstock.engine.protocol.numbers import shift_of
from penstock.engine.run_file import RunFile
from penstock.state.files import StateFiles
from penstock.state.handover import Table

LOCALHOST = "127.0.0.1"
SILENT_REPORTS = 20  # a process that misses so many is gone


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
        self._handovers = Handovers(routing, files, options.handover_timeout_s if options.realtime else math.inf)
        self._handovers.roll_back = self._roll_back
        positions = Positions(setup.folder / "positions.json")
        resumed = _resume(setup, positions, files)
        self.begin = resumed.begin  # where the sources go on: behind what earlier drivers of the run have sent
        books = Books(routing, ledger, positions, self.ask_all, self._handovers)
        self._server, channel = _listen(setup, file.id)
        self._launcher = Launcher(setup, file, books, channel)
        self.rota = Rota(
            books,
            self._launcher.supervise,
            ready_within_s=options.start_timeout_s,
            log_file=setup.folder / "spark.log",
            first=resumed.shift,
        )

    def open(self, layout: Layout) -> None:
        """Start the first shift; the sources begin when all its replicas are ready."""
        self._server.on_reports = self._hear
        self._server.on_tables = self._tables
        self._server.on_question = self.rota.answer
        self._routing.on_change = self._server.publish
        self._server.publish(self._routing.current)
        self.rota.open(layout)
        self._handovers.start()
        if self._setup.options.realtime:
            self.rota.await_ready(self.rota.current)
            self._launcher.begin_sources()

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        self.rota.current.supervisor.finishing = bool(frames_of(self._setup.sources))
        self.rota.stop_sources()

    def end(self) -> None:
        """End all shifts."""
        self._handovers.stop()
        self.rota.stop()
        self._routing.change(closing=True)  # agents in processes that live on end, too

    def close(self) -> None:
        """Listen no more."""
        self._server.stop()

    def ask_all(self, timeout_s: float) -> bool:
        """Have every process report; whether all have within the time."""
        return ask_all(self._routing, self._server, timeout_s)

    def all_sent(self) -> bool:
        """Whether nothing that was let in has yet to be sent, again or at all: no counter shows that."""
        if not self._setup.options.realtime:
            return not self.rota.current.supervisor.unfinished
        return self.rota.all_sent()

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
        self.rota.check(question)
        return self._handovers.tables(question)

    def _roll_back(self) -> None:
        self.rota.current.supervisor.renew(self._routing.roll_back)


def _state_files(setup: Setup) -> dict[str, StateFiles]:
    """Of the operators that keep state."""
    kept = [name for name, operator in setup.topology.operators.items() if operator.state is not None]
    return {name: StateFiles(setup.folder / "state" / name) for name in kept}


def _resume(setup: Setup, positions: Positions, files: dict[str, StateFiles]) -> Resumed:
    """Where to go on in the folder; at the beginning if it is new."""
    frames = frames_of(setup.sources)
    slots = [(name, slot) for name in setup.sources if name not in frames for slot in range(setup.options.source_slots)]
    go_on = carry_on if setup.options.realtime else go_on_in_place
    return go_on(positions, setup.folder / "checkpoint", slots, files.values())


def _listen(setup: Setup, run: str) -> tuple[ControlServer, Channel]:
    """The driver's end of the control channel, and how replicas reach it."""
    host, secret, every_s = _host_of(setup.spark), secrets.token_bytes(32), setup.options.report_every_s
    alone = not setup.options.realtime  # Spark ends processes that have had no batch for a minute
    server = ControlServer(run, secret, host, silent_s=max(SILENT_S, SILENT_REPORTS * every_s), alone=alone)
    return server, Channel(host, server.start(), secret, every_s)


def _host_of(spark: SparkSession) -> str:
    """Where replicas reach the driver."""
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return LOCALHOST
    return context.getConf().get("spark.driver.host", LOCALHOST) or LOCALHOST
