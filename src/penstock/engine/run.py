"""A running topology: start, change replicas, look, wait, stop."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from penstock.control.clock import SteadyClock
from penstock.control.utilisation_feed import UtilisationFeed
from penstock.engine.binding import AnySource, bind_sources, check_ends, check_operators
from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.driver import Driver
from penstock.engine.driver.faults import Fault
from penstock.engine.driver.routing import RoutingTable
from penstock.engine.driver.tally import Drain, ReplicaPlace, Tally
from penstock.engine.options import RunOptions
from penstock.engine.plan.job import Job
from penstock.engine.plan.layout import Layout, full_layout, lay_out
from penstock.engine.plan.libraries import PRELOAD
from penstock.engine.plan.queries import executors_of
from penstock.engine.run_folder import RunFolder
from penstock.engine.session import (
    NEEDED,
    await_slots,
    check_java,
    check_python,
    check_session,
    check_settings,
    open_session,
    slots_for,
)
from penstock.errors import EngineError
from penstock.metrics.counters import CheckpointStatus, RunCounters
from penstock.metrics.utilisation import Utilisation
from penstock.topology import ReplicaId, Topology

log = logging.getLogger(__name__)

SILENT_REPORTS = 10  # a process that misses so many is gone
CHECKPOINT_S = 30.0  # for the last checkpoint of a run


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
        self.topology = topology
        self.options = options or RunOptions()
        check_operators(topology, self.options)
        self.sources = bind_sources(topology, sources, self.options)
        if self.options.realtime:
            check_settings(self.options.spark)
        self._home = RunFolder(topology, self.options)
        self.id = self._home.file.id
        self._server = ControlServer(self.id, max(self.options.silent_s, SILENT_REPORTS * self.options.report_every_s))
        self._named = dict(replicas or {})  # by the user; a policy may say with how many of the others it begins
        self._routing = RoutingTable(topology, self._named, self._server)
        self._tally = Tally(topology)
        self._spark = spark
        self._owns_spark = spark is None
        self._first_layout = full_layout(topology, self.options.source_slots)
        self._laying_out = threading.Lock()
        self._stopped = threading.Event()
        self._checked = False
        self.clock = SteadyClock(self._stopped)
        self._driver: Driver | None = None
        self._drain = Drain(self._asked_at_the_end)
        self._feed = UtilisationFeed(self.counters, self._routing.use)

    # ── life ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Run:
        """Start Spark if need be, then the query; returns when every replica is ready and the sources begin."""
        self.check()
        check_java()
        self.folder = self._home.make()
        try:
            self._home.enter()
            self._open_driver(self._open_spark())
            if self.balanced:
                self._feed.start()
        except BaseException as error:
            self._home.kept |= isinstance(error, EngineError)  # its log tells more
            self._shut_down()
            raise
        return self

    def check(self) -> None:
        """Raise an InputError if a source or a sink cannot be reached; once, before anything starts.

        A run that is carried on waits for one that is away: that it is the right one has been seen.
        """
        if not self._checked:
            check_ends(self.topology, self.sources, self._home)
        self._checked = True

    @property
    def carried_on(self) -> int:
        """Starts of the query under earlier drivers; 0 for a new run."""
        return self._home.carried_on

    def begin_with(self, replicas: Mapping[str, int]) -> None:
        """Before the start: have so many replicas active at first, of operators for which the user named none."""
        if self.started:
            raise EngineError("the run has been started: set_replicas changes how many are active")
        self._routing = RoutingTable(self.topology, {**replicas, **self._named}, self._server)
        self._feed = UtilisationFeed(self.counters, self._routing.use)

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Stop the sources, finish what is in flight within the time, end the query; whether all was finished.

        Raises why the run has failed, if it has, once all is ended.
        """
        if self._driver is None or self._stopped.is_set():
            return True
        finished = False
        try:
            self.stop_sources()
            finished = self._finish(self._driver, timeout_s)
        finally:
            self._shut_down()
        self._raise_if_failed()
        return finished

    def _finish(self, driver: Driver, timeout_s: float) -> bool:
        """Whether all that is in flight is processed, and in a checkpoint, within the time; then operators close."""
        deadline = time.monotonic() + timeout_s
        if not self.wait_drained(timeout_s):
            log.warning("stop: events were still in flight after %g s", timeout_s)
            return False
        if not driver.work.checkpoint_now(max(CHECKPOINT_S, deadline - time.monotonic())):
            log.warning("stop: all events were processed, but the last checkpoint was not committed in time")
            return False
        driver.close_operators()
        driver.ask_all(2.0)
        return True

    def stop_sources(self) -> None:
        """Let no more events in; what is in flight goes on."""
        if self._driver is not None:
            self._driver.stop_sources()

    @property
    def started(self) -> bool:
        """Whether it has been started, and perhaps ended since."""
        return self._driver is not None

    def stopped(self) -> bool:
        """Whether the run has ended."""
        return self._stopped.is_set()

    def wait_drained(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight; False if the time is over first."""
        return Drain(self._asked).wait(time.monotonic() + timeout_s)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the sources have ended and everything is processed; False if the time is over first."""
        deadline = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while True:
            self._raise_if_failed()
            if self._at_work.work.all_read() and self._drain.wait(deadline) and self._committed(deadline):
                return True
            if time.monotonic() >= deadline or self._stopped.wait(0.1):
                return False

    def _committed(self, deadline: float) -> bool:
        """Whether all that was processed is in a checkpoint before the deadline, and the sources are at their end."""
        left_s = min(CHECKPOINT_S, max(1.0, deadline - time.monotonic()))
        return self._at_work.work.checkpoint_now(left_s) and self._at_work.work.all_read()

    def __enter__(self) -> Run:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(*() if kind is None else (EngineError,)):  # what was raised first says more
            self.stop(timeout_s=30.0 if kind is None else 0.0)

    # ── looking and steering ────────────────────────────────────────────────────────────────────────────────────────

    def set_replicas(self, operator: str, replicas: int | Sequence[int]) -> None:
        """Make this many replicas of the operator active, or just these, of its pool at work; nothing is restarted."""
        self._routing.activate(operator, replicas)

    @property
    def balanced(self) -> tuple[str, ...]:
        """The operators with the load-balancing grouping: nobody looks at how used the replicas of others are."""
        return tuple(name for name, one in self.topology.operators.items() if one.grouping == "load_balancing")

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
        driver = self._at_work
        with self._laying_out, self._routing.laying_out(pools, lambda: driver.work.layout):
            return driver.work.take_over(lay_out(self.topology, pools, self.options.source_slots))

    def wait_settled(self, timeout_s: float) -> bool:
        """Wait until no earlier shift is at work any more; False if the time is over first."""
        return self._driver is None or self._driver.work.wait_settled(timeout_s)

    @property
    def pools(self) -> dict[str, tuple[int, ...]]:
        """The replicas that each operator has now, active or not."""
        return {name: self._layout.replicas(name) for name in self.topology.operators}

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """The active replicas of each operator."""
        return self._routing.active

    def counters(self) -> RunCounters:
        """What the run has done so far, as of the replicas' last reports."""
        restarts = self._driver.work.restarts if self._driver is not None else 0
        return self._tally.counters(self.clock.now(), self._routing.active, restarts, self._routing.pools)

    def fresh_counters(self, timeout_s: float = 0.5) -> RunCounters:
        """The counters after asking every replica to report now; those that do not answer in time show by their age."""
        self._at_work.ask_all(timeout_s)
        return self.counters()

    def checkpoint_status(self) -> CheckpointStatus:
        """The last committed checkpoint, its age, how long it took, and how many there were."""
        return self._driver.checkpoint_status if self._driver is not None else CheckpointStatus()

    def watch_jumps(self, told: Callable[[Mapping[str, float]], None]) -> None:
        """Have this called when what enters jumps, with the rate since by source, from another thread."""
        self._at_work.jumps.subscribe(told)

    def faults(self) -> list[Fault]:
        """When the query died, of what, and for how long no new event reached a sink; the last thousand times."""
        return self._driver.faults.all if self._driver is not None else []

    def places(self) -> dict[ReplicaId, ReplicaPlace]:
        """On which executor, host and process each replica sits."""
        executors: dict[ReplicaId, str] = {}
        if self._driver is not None and (query := self._driver.work.query) is not None:
            executors = executors_of(self.spark, query, self._layout)
        return {key: replace(place, executor=executors.get(key)) for key, place in self._tally.places().items()}

    def hosts(self) -> dict[ReplicaId, str]:
        """Where each replica sits, as it said itself: its worker, or its machine. Asks Spark nothing."""
        return {key: place.host for key, place in self._tally.places().items()}

    def online_states(self) -> dict[str, dict[str, int]]:
        """For each operator whose grouping is online shuffle: how many of those who send to it are in which state."""
        return self._driver.online_states() if self._driver is not None else {}

    def cut_channel(self, cut: bool) -> None:
        """Break the control channel, or let it come back: a fault, for tests."""
        self._at_work.cut_channel(cut)

    @property
    def spark(self) -> SparkSession:
        """The session that it runs on."""
        if self._spark is None:
            raise EngineError("the run has not been started")
        return self._spark

    @property
    def epoch_s(self) -> float | None:
        """When the sources began."""
        return self._driver.epoch_s if self._driver is not None else None

    @property
    def failure(self) -> EngineError | None:
        """Why the run has ended for good, if it has."""
        return self._home.failure or (self._driver.work.failure if self._driver is not None else None)

    # ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _at_work(self) -> Driver:
        if self._driver is None:
            raise EngineError("the run has not been started")
        return self._driver

    @property
    def _layout(self) -> Layout:
        """Of the shift at work."""
        return self._driver.work.layout if self._driver is not None else self._first_layout

    def _open_spark(self) -> SparkSession:
        needed = self._first_layout.tasks * (1 + self.options.standby) if self.options.realtime else 1
        if self._spark is None:
            settings = (NEEDED if self.options.realtime else {}) | self.options.spark
            self._spark = open_session(slots_for(self._first_layout), settings, self.folder / "spark.log")
        elif self.options.realtime:
            check_session(self._spark)
            check_python(self._spark)
        await_slots(self._spark, needed, self.options.executors, self.options.slots_within_s)
        return self._spark

    def _open_driver(self, spark: SparkSession) -> None:
        parts = (self.id, self.topology, self.sources, self.options, spark, self.folder, self._home.elsewhere)
        job = Job(*parts, check_alone=self._home.check_alone)
        if self._owns_spark:  # in a session of the user's own there may be a daemon for all that runs in it
            spark.sparkContext.environment[PRELOAD] = ",".join(job.libraries())
        self._driver = Driver(job, self._home.file, self._server, self._routing, self._tally, self.clock)
        self._driver.open(self._first_layout)

    def _raise_if_failed(self) -> None:
        if (failure := self.failure) is not None:
            raise failure

    def _asked(self) -> RunCounters | None:
        self._raise_if_failed()
        return self.counters() if self._at_work.ask_all(1.0) and self._at_work.work.all_sent() else None

    def _asked_at_the_end(self) -> RunCounters | None:
        counters = self._asked()
        return counters if self._at_work.work.all_read() else None  # a query that has died meanwhile sends again

    def _shut_down(self) -> None:
        self._stopped.set()
        self._feed.stop()
        if self._driver is not None:
            self._driver.end()
        if self._owns_spark and self._spark is not None:
            with contextlib.suppress(Exception):
                self._spark.stop()
        self._server.stop()
        self._home.leave(keep=self.failure is not None)
