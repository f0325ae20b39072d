"""`penstock run --cluster spark://HOST:PORT`: a cluster that someone else runs, whose executors come and go."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import cast

from penstock.engine.cluster import EXECUTOR_MEMORY_MB, ClusterWorkers
from penstock.engine.run import Run
from penstock.errors import PenstockError
from penstock.infra.executor_workers import ExecutorWorkers
from penstock.infra.executors import SETTINGS
from penstock.infra.standalone import StandaloneCluster

log = logging.getLogger(__name__)


def foreign_settings(url: str, cores: int, most: int) -> dict[str, str]:
    """What a session there needs: executors with so many cores, so many of them at most, that can be let go."""
    return {
        "spark.master": url,
        "spark.executor.cores": str(cores),
        "spark.cores.max": str(cores * most),
        "spark.executor.memory": f"{EXECUTOR_MEMORY_MB}m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        **SETTINGS,
    }


class ForeignWorkers(ClusterWorkers):
    """Executors as workers under a run. One that leaves gets nothing more before the pools are laid out without it."""

    def __init__(self, workers: ExecutorWorkers, run: Run) -> None:
        super().__init__(cast(StandaloneCluster, workers), run)  # all that is asked of it is the port of workers
        self._workers = workers

    def remove(self, name: str) -> None:
        """Let it leave. If the pools cannot be laid out anew now, it goes when its batch ends."""
        self._workers.remove(name)
        if name not in self._laid:
            return
        self._laid.discard(name)
        try:
            self._renew(f"{name} leaves", lambda: None)
        except PenstockError as error:
            log.warning("%s leaves at the end of its batch: %s", name, error)

    def where(self, operator: str, replica: int) -> str | None:
        """The worker that a replica sits on."""
        place = self._run.places().get((operator, replica))
        return self._workers.worker_of(place.executor) if place and place.executor else None

    def site(self, operator: str, worker: str, active: Collection[int], pool: int) -> int | None:
        """A replica on that worker that could be activated."""
        executor = self._workers.executor(worker)
        places = self._run.places()
        here = [n for (name, n), place in places.items() if name == operator and place.executor == executor]
        return min((n for n in here if n < pool and n not in active), default=None)
