"""A run on a cluster: workers that come and go beneath it, and where its replicas sit."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.run import Run
from penstock.errors import EngineError, InputError
from penstock.infra.executors import SETTINGS
from penstock.infra.standalone import StandaloneCluster
from penstock.infra.worker import Worker, Workers, WorkerSize, WorkerState

log = logging.getLogger(__name__)

EXECUTOR_MEMORY_MB = 512
FINISH_S = 60.0  # how often it is said that an earlier shift is still at work
AGAIN_S = 10.0  # after a change that failed


@dataclass(frozen=True, slots=True)
class Pause:
    """The next shift took over: when, why, and how long no source could send."""

    time_s: float
    why: str
    seconds: float


class Cluster(Workers, Protocol):
    """Workers, and which executors of the run they have."""

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""

    def executors(self, name: str) -> Collection[str]:
        """The executors that a worker has for the run; none while it starts."""

    def named(self, host: str) -> str | None:
        """The worker that replicas which report this host sit on."""


class Scheduler(Protocol):
    """What is asked of Spark; see `penstock.infra.executors`."""

    def ids(self) -> tuple[str, ...]:
        """The executors that are registered."""

    def ready(self) -> frozenset[str]:
        """Those that Spark puts tasks on."""

    def leaving(self) -> frozenset[str]:
        """Those that have been decommissioned and are not gone."""

    def request(self, total: int) -> None:
        """Have so many, those that are leaving among them."""

    def decommission(self, executor: str) -> None:
        """Put nothing more on one; it leaves once what it runs has ended."""


def spark_settings(cluster: StandaloneCluster) -> dict[str, str]:
    """What a session on the cluster needs: one executor for each worker, with all its cores."""
    return {
        "spark.master": cluster.url,
        "spark.executor.cores": str(cluster.options.cores),
        "spark.executor.memory": f"{EXECUTOR_MEMORY_MB}m",
        **cluster.settings,
        **SETTINGS,
    }


def foreign_settings(url: str, cores: int, executors: int) -> dict[str, str]:
    """What a session on somebody's cluster needs: so many executors to begin with, which can be let go."""
    return {
        "spark.master": url,
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(executors),
        "spark.executor.memory": f"{EXECUTOR_MEMORY_MB}m",
        **SETTINGS,
    }


class ClusterWorkers:
    """The workers as the Infrastructure Manager sees them: one is available once replicas sit on it.

    `settle` takes workers that have come up into the layout, and those that are to go out of it: the next shift is
    laid over the others and takes over, while the loop goes on. A worker is stopped when the shift before has finished
    what it had. One whose executor was replaced is taken in anew. Each change's pause is kept in `pauses`. After one
    that fails, as `failed` says, all is as it was.
    """

    def __init__(self, cluster: Cluster, run: Run, scheduler: Scheduler) -> None:
        self.pauses: list[Pause] = []
        self.failed: str | None = None  # why the last change was not made
        self._cluster = cluster
        self._run = run
        self._scheduler = scheduler
        up = [worker.name for worker in cluster.list() if worker.available]
        self._laid = {name: self._executors_of(name) for name in up}  # over which executors of each worker
        self._joining: set[str] = set()  # the next shift is being laid over them
        self._leaving: set[str] = set()
        self._change: threading.Thread | None = None
        self._not_before_s = 0.0

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""
        return self._cluster.seconds

    def list(self) -> Sequence[Worker]:
        """The workers: those without replicas as starting, those that are to go as draining."""
        workers = self._cluster.list()
        self._forget_all_but({worker.name for worker in workers})
        return [self._shown(worker) for worker in workers]

    def _forget_all_but(self, names: set[str]) -> None:
        for name in set(self._laid) - names:
            self._laid.pop(name, None)
        self._leaving &= names

    def _shown(self, worker: Worker) -> Worker:
        if worker.name in self._leaving:
            return worker.turned(WorkerState.DRAINING)
        if worker.available and worker.name not in self._laid:
            return worker.turned(WorkerState.JOINING if worker.name in self._joining else WorkerState.STARTING)
        return worker

    def sizes(self) -> Mapping[str, Sequence[WorkerSize]]:
        """What can be started."""
        return self._cluster.sizes()

    def add(self, region: str, size: WorkerSize) -> str:
        """Start a worker."""
        return self._cluster.add(region, size)

    def drain(self, name: str) -> None:
        """Put nothing more on it."""
        self._cluster.drain(name)

    def restore(self, name: str) -> None:
        """Make a draining worker available again."""
        self._leaving.discard(name)
        self._cluster.restore(name)

    def remove(self, name: str) -> None:
        """Stop it at once if no replicas sit on it; otherwise it drains until the next shift has taken over."""
        if name in self._laid or name in self._joining:
            self._leaving.add(name)
            self._cluster.drain(name)
        else:
            self._cluster.remove(name)

    def settle(self) -> None:
        """Begin a change if workers have come up or are to go, and none is being made."""
        if self.changing or time.monotonic() < self._not_before_s:
            return
        workers = self._cluster.list()
        self._forget_all_but({worker.name for worker in workers})
        up = {worker.name for worker in workers if worker.state is not WorkerState.STARTING}
        leaving = self._leaving & self._laid.keys()
        registered = self._scheduler.ids()
        sits = {name for name, executors in self._laid.items() if executors.intersection(registered)}
        new = {name for name in up - sits - leaving if self._has_executor(name, len(up))}
        if new or leaving:
            self._joining = new
            self._change = threading.Thread(
                target=self._make, args=(new, leaving), name="penstock-cluster", daemon=True
            )
            self._change.start()

    @property
    def changing(self) -> bool:
        """Whether a change is being made."""
        return self._change is not None and self._change.is_alive()

    def where(self, operator: str, replica: int) -> str | None:
        """The worker that a replica sits on."""
        host = self._run.hosts().get((operator, replica))
        return self._cluster.named(host) if host is not None else None

    def site(self, operator: str, worker: str, active: Collection[int], pool: int) -> int | None:
        """A replica on that worker that could be activated."""
        here = [n for (name, n), host in self._run.hosts().items() if name == operator and self._is(host, worker)]
        return min((n for n in here if n < pool and n not in active), default=None)

    def _is(self, host: str, worker: str) -> bool:
        return self._cluster.named(host) == worker

    def _executors_of(self, name: str) -> frozenset[str]:
        return frozenset(self._cluster.executors(name))

    def _has_executor(self, name: str, workers: int) -> bool:
        """Whether Spark can use an executor there; one is asked for if it does not start one by itself."""
        leaving, here = self._scheduler.leaving(), self._cluster.executors(name)
        if (self._scheduler.ready() - leaving).intersection(here):
            return True
        if not here:
            self._scheduler.request(workers + len(leaving))
        return False

    def _make(self, new: set[str], leaving: set[str]) -> None:
        why = ", ".join([*(f"{name} joins" for name in sorted(new)), *(f"{name} leaves" for name in sorted(leaving))])
        try:
            for name in leaving:
                for executor in self._cluster.executors(name):
                    self._scheduler.decommission(executor)
            seconds = self._run.lay_out_anew(self._run.pools)
        except Exception as error:  # whatever Spark may say: all goes on as it was
            if not self._run.stopped():
                self._give_up(leaving, f"{why}: {error}")
            return
        self.pauses.append(Pause(self._run.clock.now(), why, seconds))
        log.info("%s: the next shift has taken over; sources stood still for %.3f s", why, seconds)
        there = {worker.name for worker in self._cluster.list()}
        self._laid.update({name: self._executors_of(name) for name in new & there})
        for name in leaving:
            self._laid.pop(name, None)
        self._joining, self.failed = set(), None
        while not self._run.wait_settled(FINISH_S) and not self._run.stopped():
            log.info("%s: the last shift still finishes what it had", why)
        for name in leaving & {worker.name for worker in self._cluster.list()}:
            with contextlib.suppress(InputError):  # it has ended by itself meanwhile
                self._cluster.remove(name)

    def _give_up(self, leaving: set[str], why: str) -> None:
        """Everything stays as it was; executors that were told to leave are replaced when they have left."""
        log.warning("workers stay as they are: %s", why)
        self.failed, self._joining = why, set()
        self._not_before_s = time.monotonic() + AGAIN_S
        for name in leaving:
            self.restore(name)
        if leaving:
            self._scheduler.request(len(self._scheduler.ids()))


def await_workers(cluster: StandaloneCluster, count: int, timeout_s: float = 90.0) -> None:
    """Start so many workers, and wait until the Master has them."""
    for _ in range(count):
        cluster.add()
    deadline = time.monotonic() + timeout_s
    while sum(worker.available for worker in cluster.list()) < count:
        if time.monotonic() > deadline:
            raise EngineError(
                f"{count} workers did not come up within {timeout_s:g} s; their logs are in {cluster.folder}"
            )
        time.sleep(0.1)
