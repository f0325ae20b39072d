"""Workers that come and go beneath a run: E2DF's managers on Spark's executors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.control.declare import expected_workload
from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.levels_view import LevelsView
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.engine.options import RunOptions
from penstock.engine.plan.layout import full_layout
from penstock.engine.run import Run
from penstock.engine.session import slots_for
from penstock.errors import InputError
from penstock.infra.cluster_workers import ClusterWorkers, await_workers, foreign_settings, spark_settings
from penstock.infra.executor_workers import ExecutorWorkers
from penstock.infra.executors import Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.metrics.paper import overestimated_replicas
from penstock.policy.base import Policy
from penstock.topology import Topology
from penstock.workload import Trace

LOCAL = "local"
_URL = re.compile(r"spark://[^\s:/,]+:\d+")


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """How many workers, how many active replicas each hosts, and how many slots are kept free."""

    least: int
    most: int
    capacity: int
    spare: int

    def rules(self, td_s: float) -> LevelRules:
        """What the managers go by: the infrastructure's look every second interval, as in E2DF."""
        return LevelRules(
            every_s=2 * td_s,
            application=ApplicationRules(first_workers=self.least),
            region=RegionRules(spare=self.spare, least=self.least),
            infrastructure=InfrastructureRules(most=self.most, free_within_s=8 * td_s, start_within_s=90.0),
        )


def worker_bounds(workers: str, replicas: int, fewest: int = 1) -> WorkerBounds:
    """From `4` or `2..8`: sized so that all of them host so many replicas, and the fewest all that there must be.

    >>> worker_bounds("2..8", replicas=14)
    WorkerBounds(least=2, most=8, capacity=2, spare=2)
    >>> worker_bounds("1..4", replicas=4, fewest=3)
    WorkerBounds(least=1, most=4, capacity=3, spare=3)
    >>> worker_bounds("0..2", replicas=14)
    Traceback (most recent call last):
    penstock.errors.InputError: workers must be a number or least..most, from 1 on; got '0..2'
    """
    found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", workers)
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= least <= most:
        raise InputError(f"workers must be a number or least..most, from 1 on; got {workers!r}")
    capacity = max(math.ceil(replicas / most), math.ceil(fewest / least))
    return WorkerBounds(least, most, capacity, spare=capacity if least < most else 0)


class ElasticWorkers:
    """Where a run's workers come from, and how many there may be: `local` or `spark://HOST:PORT`, and `2..8`.

    `local` are workers of this machine, started and stopped with the run, their logs in the folder. On a cluster that
    someone else runs, workers are executors. They are sized so that all of them host what the peak of the `expected`
    trace needs, or all pools, if none is known. A run on them is made with `options`:

        workers = ElasticWorkers(topology, "2..8", cluster="spark://10.0.0.1:7077")
        run = Run(topology, source, options=workers.options(RunOptions()))
        with Elastic(run, "e2df", workers=workers) as live: ...
    """

    def __init__(
        self,
        topology: Topology,
        workers: str = "2..4",
        *,
        cluster: str = LOCAL,
        expected: Trace | None = None,
        folder: Path | None = None,
    ) -> None:
        if cluster != LOCAL and not _URL.fullmatch(cluster):
            raise InputError(f"cluster must be local or spark://HOST:PORT; got {cluster!r}")
        self._sources = sources = len(topology.sources)
        self.bounds = worker_bounds(workers, _peak(topology, expected) + sources, len(topology.operators) + sources)
        self._cores = slots_for(full_layout(topology))  # so that one worker alone can carry the run on
        self._url = None if cluster == LOCAL else cluster
        self.cluster: StandaloneCluster | None = None
        if cluster == LOCAL:
            if folder is None:
                raise InputError("cluster 'local': needs a folder for its logs; got none")
            sizes = StandaloneOptions(capacity=self.bounds.capacity, cores=self._cores)
            self.cluster = StandaloneCluster(folder / "cluster", sizes)

    @property
    def first_slots(self) -> int:
        """What the first workers have for replicas."""
        return self.bounds.least * self.bounds.capacity - self._sources

    def options(self, options: RunOptions) -> RunOptions:
        """The options with what Spark's session needs on these workers."""
        if self.cluster is not None:
            settings = spark_settings(self.cluster)
        else:
            assert self._url is not None
            settings = foreign_settings(self._url, math.ceil(self._cores / self.bounds.least), self.bounds.least)
        return replace(options, executors=self.bounds.least, spark=settings | options.spark)

    @contextmanager
    def started(self) -> Iterator[None]:
        """A cluster of the run's own with its first workers; someone else's is there."""
        if self.cluster is None:
            yield
            return
        with self.cluster:
            await_workers(self.cluster, self.bounds.least)
            yield

    def manage(self, run: Run, policy: Policy, td_s: float) -> ManagedRun:
        """The managers around a run that has been started."""
        executors = Executors(run.spark)
        place = self.cluster if self.cluster is not None else ExecutorWorkers(executors, self.bounds.capacity)
        return ManagedRun(run, policy, ClusterWorkers(place, run, executors), self.bounds.rules(td_s))


def _peak(topology: Topology, expected: Trace | None) -> int:
    """The replicas that are active at the peak."""
    if expected is None:
        return sum(one.pool for one in topology.operators.values())
    workload = expected_workload(topology, expected, {})
    return overestimated_replicas(workload.peak_rate, workload.shares, workload.execution_times_s)


class ManagedRun:
    """A run and its workers under E2DF's managers, and what they did."""

    def __init__(self, run: Run, policy: Policy, workers: ClusterWorkers, rules: LevelRules) -> None:
        self.workers = workers
        self._since_s = run.clock.now()
        self._levels = TwoLevels(
            run.topology.name,
            policy,
            workers,
            rules,
            sources=list(run.topology.sources),
            site=workers.site,
            where=workers.where,
        )
        self.policy: Policy = self._levels.application
        self.view = LevelsView(self._levels, workers.pauses)

    def step(self, now_s: float) -> None:
        """Take in workers that have come up, then let the managers work."""
        self.workers.settle()
        self._levels.step(now_s)

    def summary(self) -> dict[str, object]:
        """For programs: what became of the workers."""
        pauses = [
            {"time_s": round(one.time_s - self._since_s, 1), "why": one.why, "seconds": round(one.seconds, 3)}
            for one in self.workers.pauses
        ]
        said = [f"{entry.time_s - self._since_s:.0f} s: {entry.said}" for entry in self._levels.diary.entries]
        return {"worker_seconds": round(self.workers.seconds, 1), "pauses": pauses, "managers": said}
