"""A run on a cluster of its own: workers that come and go, and where the replicas sit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.run import Run
from penstock.errors import EngineError
from penstock.infra.standalone import StandaloneCluster
from penstock.infra.worker import Worker, WorkerSize, WorkerState

log = logging.getLogger(__name__)

EXECUTOR_MEMORY_MB = 512
LONGEST_DRAIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Pause:
    """A new generation of the query: when, why, and how long events stood still."""

    time_s: float
    why: str
    seconds: float


def spark_settings(cluster: StandaloneCluster) -> dict[str, str]:
    """What a session on the cluster needs: one executor for each worker, with all its cores."""
    return {
        "spark.master": cluster.url,
        "spark.executor.cores": str(cluster.options.cores),
        "spark.executor.memory": f"{EXECUTOR_MEMORY_MB}m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }


class ClusterWorkers:
    """The workers as the Infrastructure Manager sees them: one is available once replicas sit on it.

    A worker that has come up is taken into the layout by `settle`, and one is taken out of it before it is stopped:
    both make a new generation of the query, whose pause is kept in `pauses`. If what is in flight is not finished in
    time, an EngineError says so and the worker stays as it was.
    """

    def __init__(self, cluster: StandaloneCluster, run: Run) -> None:
        self.pauses: list[Pause] = []
        self._cluster = cluster
        self._run = run
        self._laid = {worker.name for worker in cluster.list() if worker.available}

    @property
    def seconds(self) -> float:
        """Worker-seconds so far."""
        return self._cluster.seconds

    def list(self) -> Sequence[Worker]:
        """The workers, those without replicas as starting."""
        workers = self._cluster.list()
        self._laid &= {worker.name for worker in workers}
        return [
            worker if worker.name in self._laid or not worker.available else worker.turned(WorkerState.STARTING)
            for worker in workers
        ]

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
        self._cluster.restore(name)

    def remove(self, name: str) -> None:
        """Lay the pools out without it, and stop it while no query runs."""
        if name in self._laid:
            self._renew(f"{name} is stopped", lambda: self._cluster.remove(name))
            self._laid.discard(name)
        else:
            self._cluster.remove(name)

    def settle(self) -> None:
        """Take workers that have come up into the layout, at a time when little has to be finished first."""
        up = {worker.name for worker in self._cluster.list() if worker.state is not WorkerState.STARTING}
        new = up - self._laid
        if new and executors(self._run) >= len(up) and self._soon_finished():
            self._renew(f"{', '.join(sorted(new))} joined", lambda: None)
            self._laid = up

    def where(self, operator: str, replica: int) -> str | None:
        """The worker that a replica sits on."""
        return self._run.hosts().get((operator, replica))

    def site(self, operator: str, worker: str, active: Collection[int], pool: int) -> int | None:
        """A replica on that worker that could be activated."""
        here = [n for (name, n), host in self._run.hosts().items() if name == operator and host == worker]
        return min((n for n in here if n < pool and n not in active), default=None)

    def _soon_finished(self) -> bool:
        """Whether what is queued takes no longer than events may stand still for."""
        operators = self._run.counters().operators.values()
        times_s = [one.backlog * (one.execution_time_s or 0.0) / len(one.active) for one in operators]
        return sum(times_s) <= LONGEST_DRAIN_S

    def _renew(self, why: str, between: Callable[[], None]) -> None:
        seconds = self._run.lay_out_anew(self._run.pools)
        between()
        self.pauses.append(Pause(self._run.clock.now(), why, seconds))
        log.info("pools laid out anew, as %s: events stood still for %.2f s", why, seconds)


def executors(run: Run) -> int:
    """How many executors Spark has for the run."""
    context: Any = run.spark.sparkContext._jsc.sc()
    return int(context.getExecutorMemoryStatus().size()) - 1  # the driver counts as one


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
