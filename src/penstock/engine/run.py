"""A running topology: start, change replicas, look, wait, stop."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cloudpickle
import msgspec
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.binding import AnySource, bind_sources
from penstock.engine.channel import ControlServer
from penstock.engine.clock import SteadyClock
from penstock.engine.drain import ask_all, await_drained
from penstock.engine.exchange import Exchange
from penstock.engine.feed import UtilisationFeed
from penstock.engine.handovers import Handovers
from penstock.engine.layout import Layout, lay_out
from penstock.engine.ledger import Ledger
from penstock.engine.messages import OnlineNews, OperatorRouting, Reports, TablesQuery
from penstock.engine.numbers import shift_of
from penstock.engine.options import RunOptions
from penstock.engine.places import ReplicaPlace, executors_of
from penstock.engine.positions import Positions
from penstock.engine.program import Channel, Limits, Program, edges_of
from penstock.engine.queries import MicroBatchQuery, Query, RealTimeQuery
from penstock.engine.resuming import Resumed, carry_on, go_on_in_place
from penstock.engine.rota import Books, Rota
from penstock.engine.routing import RoutingTable
from penstock.engine.run_file import run_file
from penstock.engine.session import REALTIME, await_slots, check_java, check_session, check_slots, open_session
from penstock.engine.shifts import check_pools
from penstock.engine.state_files import StateFiles
from penstock.engine.supervisor import Supervisor
from penstock.errors import EngineError, InputError
from penstock.grouping.names import SIMULATED_ONLY
from penstock.metrics.counters import RunCounters
from penstock.metrics.utilisation import Utilisation
from penstock.state.handover import Table
from penstock.topology import Topology
from penstock.topology.event_type import event_type

log = logging.getLogger(__name__)

SPARE_SLOTS = 2  # besides those of two shifts at once
SLOTS_WITHIN_S = 60.0
HEAD_START_S = 0.2  # between "all are ready" and the first event


class Run:
    """One topology at work on Spark. Use it as a context manager, or call `start` and `stop`."""

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[str, AnySource] | AnySource,
        *,
        replicas: Mapping[str, int | Sequence[int]] | None = None,
        options: RunOptions | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        topology.check()
        for operator in topology.operators.values():
            if operator.grouping in SIMULATED_ONLY:
                raise InputError(f"{operator}: grouping {operator.grouping!r} is for the simulator only")
        self.topology = topology
        self.options = options or RunOptions()
        self.sources = bind_sources(topology, sources, self.options)
        self._file = run_file(self.options.folder, topology, self.options, secrets.token_hex(6))
        self.id = self._file.id
        self.carried_on = self._file.generation + 1  # starts of the query under earlier drivers; 0 for a new run
        self._resumed = Resumed(0, {})
        self._routing = RoutingTable(topology, replicas or {})
        self._ledger = Ledger(topology)
        self._exchange = Exchange()
        self._secret = secrets.token_bytes(32)
        self._spark = spark
        self._owns_spark = spark is None
        self._own_folder = self.options.folder is None
        self._first_layout = self._full_layout()
        self._stopped = threading.Event()
        self.clock = SteadyClock(self._stopped)
        self._rota: Rota | None = None
        self._generations = itertools.count(self._file.generation + 1)
        self._feed = UtilisationFeed(self.counters, self._routing.use)

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Run:
        """Start Spark if need be, then the query; returns when every replica is ready and the sources begin."""
        check_java()
        self.folder = self.options.folder or Path(tempfile.mkdtemp(prefix="penstock-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._open_spark()
            self._open_channel()
            self._open_rota()
            if any(operator.grouping == "load_balancing" for operator in self.topology.operators.values()):
                self._feed.start()
        except BaseException as error:
            self._own_folder = self._own_folder and not isinstance(error, EngineError)  # its log tells more
            self._shut_down()
            raise
        return self

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Stop the sources, finish what is in flight within the time, end the query; whether all was finished."""
        if self._rota is None or self._stopped.is_set():
            return True
        finished = False
        try:
            self.stop_sources()
            finished = self.failure is None and self.wait_drained(timeout_s)
            if finished:
                self._ask_all(2.0, closing=True)
            else:
                log.warning("stop: events were still in flight after %g s", timeout_s)
        finally:
            self._shut_down()
        return finished

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        if self._rota is not None:
            self._rota.current.supervisor.finishing = any(
                isinstance(source, DataFrame) for source in self.sources.values()
            )
        self._routing.change(stopping=True)

    def stopped(self) -> bool:
        """Whether the run has ended."""
        return self._stopped.is_set()

    def wait_drained(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight; False if the time is over first."""
        return self._await_drained(time.monotonic() + timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the sources have ended and everything is processed; False if the time is over first."""
        deadline = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while not self._all_sent():
            self._raise_if_failed()
            if time.monotonic() >= deadline or self._stopped.wait(0.1):
                return False
        return self._await_drained(deadline)

    def __enter__(self) -> Run:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(timeout_s=30.0 if kind is None else 0.0)

    # ── looking and steering ────────────────────────────────────────────────────────────────────────────────────────

    def set_replicas(self, operator: str, replicas: int | Sequence[int]) -> None:
        """Make this many replicas of the operator active, or just these; at once, nothing is restarted."""
        self._routing.activate(operator, replicas)

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Feed the load-balancing grouping: U of each replica in the last interval, and what an event adds to it.

        Who does this once does it for the rest of the run; until then the engine feeds it by itself every second.
        """
        self._feed.stop()
        self._routing.use(utilisation)

    def lay_out_anew(self, pools: Mapping[str, Sequence[int]]) -> float:
        """Have other pools, or the same on other workers, with nothing lost; how long no source could send.

        The next shift starts while the present one goes on. When it is ready it takes over, and the present one
        finishes what it has. If the next is not ready in time, everything goes on as it was, and an EngineError says
        so.
        """
        if self.options.mode != "realtime":
            raise InputError("pools: in micro-batch mode every batch is laid out anew over the active replicas")
        if self._rota is None:
            raise EngineError("the run has not been started")
        check_pools(self.topology, pools, self.active)
        return self._rota.take_over(lay_out(self.topology, pools, self.options.source_slots))

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no earlier shift is at work any more; False if the time is over first."""
        return self._rota is None or self._rota.wait_settled(timeout_s)

    @property
    def pools(self) -> dict[str, tuple[int, ...]]:
        """The replicas that each operator has now, active or not."""
        slots = [slot for stage in self._layout.stages[1:] for slot in stage]
        return {name: tuple(s.replica for s in slots if s.operator == name) for name in self.topology.operators}

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """The active replicas of each operator."""
        return self._routing.active

    def counters(self) -> RunCounters:
        """What the run has done so far, as of the replicas' last reports."""
        restarts = self._rota.restarts if self._rota else 0
        return self._ledger.counters(self.clock.now(), self._routing.active, restarts)

    def fresh_counters(self, timeout_s: float = 0.5) -> RunCounters:
        """The counters after asking every replica to report now; those that do not answer in time show by their age."""
        self._ask_all(timeout_s)
        return self.counters()

    def places(self) -> dict[tuple[str, int], ReplicaPlace]:
        """On which executor, host and process each replica sits."""
        executors = executors_of(self._spark, self._layout) if self._spark is not None else {}
        return {
            key: ReplicaPlace(executors.get(key), place.host, place.pid, place.batch)
            for key, place in self._ledger.places().items()
            if key[0] in self.topology.operators
        }

    def hosts(self) -> dict[tuple[str, int], str]:
        """Where each replica sits, as it said itself: its worker, or its machine. Asks Spark nothing."""
        return {key: place.host for key, place in self._ledger.places().items() if key[0] in self.topology.operators}

    def online_states(self) -> dict[str, dict[str, int]]:
        """For each operator whose grouping is online shuffle: how many of those who send to it are in which state."""
        return self._exchange.states()

    def cut_channel(self, cut: bool) -> None:
        """Break the control channel, or let it come back: a fault, for tests."""
        self._server.cut(cut)

    @property
    def spark(self) -> SparkSession:
        """The session that it runs on."""
        if self._spark is None:
            raise EngineError("the run has not been started")
        return self._spark

    @property
    def epoch_s(self) -> float | None:
        """When the sources began."""
        return self._routing.current.epoch_s

    @property
    def failure(self) -> EngineError | None:
        """Why the run has ended for good, if it has."""
        return self._rota.failure if self._rota else None

    # ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _layout(self) -> Layout:
        """Of the shift at work."""
        return self._rota.current.layout if self._rota is not None else self._first_layout

    def _full_layout(self) -> Layout:
        pools = {name: range(operator.pool) for name, operator in self.topology.operators.items()}
        return lay_out(self.topology, pools, self.options.source_slots)

    def _open_spark(self) -> None:
        needed = self._layout.tasks if self.options.mode == "realtime" else 1
        if self._spark is None:
            settings = (REALTIME if self.options.mode == "realtime" else {}) | self.options.spark
            check_slots(settings.get("spark.master", ""), needed)
            self._spark = open_session(2 * self._layout.tasks + SPARE_SLOTS, settings, self.folder / "spark.log")
            await_slots(self._spark, needed, self.options.executors, SLOTS_WITHIN_S)
        else:
            check_session(self._spark, needed, REALTIME if self.options.mode == "realtime" else {})

    def _open_channel(self) -> None:
        assert self._spark is not None
        host = self._spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1")
        if (self._spark.sparkContext.master or "").startswith("local"):
            host = "127.0.0.1"
        self._server = ControlServer(self.id, self._secret, host or "127.0.0.1")
        self._server.on_reports = self._hear
        self._server.on_tables = self._tables
        kept = [name for name, operator in self.topology.operators.items() if operator.state is not None]
        files = {name: StateFiles(self.folder / "state" / name) for name in kept}
        timeout_s = self.options.handover_timeout_s if self.options.mode == "realtime" else math.inf
        self._handovers = Handovers(self._routing, files, timeout_s)
        self._handovers.roll_back = self._roll_back
        self._routing.on_change = self._server.publish
        self._channel = Channel(host or "127.0.0.1", self._server.start(), self._secret, self.options.report_every_s)
        self._server.publish(self._routing.current)
        self._positions = Positions(self.folder / "positions.json")
        own = [name for name, source in self.sources.items() if not isinstance(source, DataFrame)]
        slots = [(slot.operator, slot.replica) for slot in self._first_layout.stages[0] if slot.operator in own]
        go_on = carry_on if self.options.mode == "realtime" else go_on_in_place
        self._resumed = go_on(self._positions, self.folder / "checkpoint", slots, files.values())

    def _open_rota(self) -> None:
        """Start the first shift; the sources begin when all its replicas are ready."""
        books = Books(self._routing, self._ledger, self._positions, self._ask_all, self._handovers)
        self._rota = Rota(
            books,
            self._supervise,
            ready_within_s=self.options.start_timeout_s,
            log_file=self.folder / "spark.log",
            first=self._resumed.shift,
        )
        self._server.on_question = self._rota.answer
        self._rota.open(self._first_layout)
        self._handovers.start()
        if self.options.mode == "realtime":
            self._rota.await_ready(self._rota.current)
            self._begin_sources()

    def _supervise(self, shift: int, layout: Layout) -> Supervisor:
        """Who runs a shift."""
        first: list[int] = []

        def program(generation: int) -> Program:
            first.append(generation)
            return replace(self._program(generation, layout), shift=shift, first_generation=first[0])

        return Supervisor(self._query(shift), program, self.options, self._generations)

    def _query(self, shift: int) -> Query:
        assert self._spark is not None
        checkpoint = self.folder / "checkpoint" / str(shift)
        if self.options.mode == "realtime":
            return RealTimeQuery(self._spark, checkpoint, self.options.checkpoint_every_s)
        self._begin_sources()
        return MicroBatchQuery(
            self._spark, checkpoint, self.topology, self.sources, self._positions, self._batch_routing
        )

    def _batch_routing(self) -> tuple[Mapping[str, OperatorRouting], float, bool]:
        self._handovers.settle()
        current = self._routing.current
        return current.operators, current.epoch_s or 0.0, current.stopping

    def _program(self, generation: int, layout: Layout) -> Program:
        self._file = msgspec.structs.replace(self._file, generation=generation)
        self._file.write(self.folder)
        topology = self.topology
        frames = [name for name, source in self.sources.items() if isinstance(source, DataFrame)]
        blobs = {name: cloudpickle.dumps((one, event_type(one.run))) for name, one in topology.operators.items()}
        blobs |= {name: cloudpickle.dumps(source) for name, source in self.sources.items() if name not in frames}
        return Program(
            run=self.id,
            generation=generation,
            realtime=self.options.mode == "realtime",
            layout=layout,
            channel=self._channel,
            limits=Limits(self.options.t_out_s, self.options.q_size),
            edges=edges_of(topology),
            senders=(*topology.sources, *topology.operators),
            routing=self._routing.current.operators,
            blobs=blobs,
            frame_source=frames[0] if frames else None,
            path=tuple(str(Path(entry).resolve()) for entry in sys.path),
            labels={name: str(thing) for name, thing in (topology.sources | topology.operators).items()},
            state_folder=str((self.folder / "state").resolve()),
        )

    def _hear(self, reports: Reports) -> list[OnlineNews]:
        self._ledger.enter(reports, self.clock.now())
        self._handovers.hear(reports)
        reports.online = [one for one in reports.online if shift_of(one.batch) == self._ledger.current]
        return self._exchange.enter(reports)

    def _tables(self, question: TablesQuery) -> dict[str, Table]:
        assert self._rota is not None
        self._rota.check(question)
        return self._handovers.tables(question)

    def _roll_back(self) -> None:
        assert self._rota is not None
        self._rota.current.supervisor.renew(self._routing.roll_back)

    def _begin_sources(self) -> None:
        """They began when the run did, whoever drives it."""
        epoch_s = self._file.epoch_s or time.time() + HEAD_START_S
        self._file = msgspec.structs.replace(self._file, epoch_s=epoch_s)
        self._file.write(self.folder)
        self._routing.change(epoch_s=epoch_s)

    def _all_sent(self) -> bool:
        sent = self.counters().sources
        return all(
            source.total is not None and sent[name] + self._sent_before(name) >= source.total
            for name, source in self.sources.items()
            if not isinstance(source, DataFrame)
        ) and not any(isinstance(source, DataFrame) for source in self.sources.values())

    def _sent_before(self, source: str) -> int:
        """Events that an earlier driver of the run had sent, and that are not sent again."""
        return sum(position for (name, _), position in self._resumed.begin.items() if name == source)

    def _raise_if_failed(self) -> None:
        if (failure := self.failure) is not None:
            raise failure

    def _ask_all(self, timeout_s: float, **changes: bool) -> bool:
        """Have every process report; whether all have within the time."""
        if changes:
            self._routing.change(**changes)
        return ask_all(self._routing, self._server, timeout_s)

    def _await_drained(self, deadline: float) -> bool:
        def counters() -> RunCounters | None:
            self._raise_if_failed()
            return self.counters() if self._ask_all(1.0) else None

        return await_drained(counters, deadline)

    def _shut_down(self) -> None:
        self._stopped.set()
        self._feed.stop()
        if hasattr(self, "_handovers"):
            self._handovers.stop()
        if self._rota is not None:
            self._rota.stop()
            self._routing.change(closing=True)  # agents in processes that live on end, too
        if self._owns_spark and self._spark is not None:
            with contextlib.suppress(Exception):
                self._spark.stop()
        if hasattr(self, "_server"):
            self._server.stop()
        if self._own_folder and self.failure is None:
            shutil.rmtree(self.folder, ignore_errors=True)
