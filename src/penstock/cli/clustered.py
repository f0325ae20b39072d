"""`penstock run --cluster`: workers that come and go with a run's load, of its own or on a cluster that is there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.common.names import one_of
from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.levels_view import LevelsView
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.engine.plan.layout import full_layout
from penstock.engine.run import Run
from penstock.engine.session import slots_for
from penstock.errors import InputError
from penstock.infra.cluster_workers import ClusterWorkers, await_workers, foreign_settings, spark_settings
from penstock.infra.executor_workers import ExecutorWorkers
from penstock.infra.executors import Executors
from penstock.infra.standalone import StandaloneCluster, StandaloneOptions
from penstock.policy.base import Policy
from penstock.topology import Topology

CLUSTERS = ("local", "spark://HOST:PORT")
Settings = dict[str, str]
_URL = re.compile(r"spark://[^\s:/,]+:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """How many workers, how many active replicas each hosts, and how many slots are kept free."""

    least: int
    most: int
    capacity: int
    spare: int
    url: str | None = None  # of a cluster that someone else runs

    def rules(self, td_s: float) -> LevelRules:
        """What the managers go by: the infrastructure's look every second interval, as in E2DF."""
        return LevelRules(
            every_s=2 * td_s,
            application=ApplicationRules(first_workers=self.least),
            region=RegionRules(spare=self.spare, least=self.least),
            infrastructure=InfrastructureRules(most=self.most, free_within_s=8 * td_s, start_within_s=90.0),
        )


def cluster_request(kind: str | None, workers: str | None, replicas: int, fewest: int = 1) -> ClusterRequest | None:
    """The cluster that was asked for; None if none was.

    Its workers are sized so that all of them host so many replicas at the peak, and the fewest all that there must be.

    >>> cluster_request("local", "2..8", replicas=14)
    ClusterRequest(least=2, most=8, capacity=2, spare=2, url=None)
    >>> cluster_request("local", "1..4", replicas=4, fewest=3)
    ClusterRequest(least=1, most=4, capacity=3, spare=3, url=None)
    >>> cluster_request("local", "0..2", replicas=14)
    Traceback (most recent call last):
    penstock.errors.InputError: --workers must be a number or least..most, from 1 on; got '0..2'
    """
    if kind is None:
        if workers is not None:
            raise InputError("--workers needs --cluster local or spark://HOST:PORT")
        return None
    url = kind if _URL.fullmatch(kind) else None
    if url is None:
        one_of("--cluster", kind, CLUSTERS)
    text = workers or "2..4"
    found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= least <= most:
        raise InputError(f"--workers must be a number or least..most, from 1 on; got {text!r}")
    capacity = max(math.ceil(replicas / most), math.ceil(fewest / least))
    spare = capacity if least < most else 0
    return ClusterRequest(least=least, most=most, capacity=capacity, spare=spare, url=url)


def new_cluster(request: ClusterRequest, topology: Topology, folder: Path) -> StandaloneCluster | None:
    """Workers that can each hold all pools of two shifts, so that one alone can carry the run on.

    None if someone else runs the cluster.
    """
    if request.url is not None:
        return None
    options = StandaloneOptions(capacity=request.capacity, cores=_cores(topology))
    return StandaloneCluster(folder / "cluster", options)


def session_settings(request: ClusterRequest, topology: Topology, cluster: StandaloneCluster | None) -> Settings:
    """What Spark's session needs for the cluster: our own, or one that someone else runs."""
    if cluster is not None:
        return spark_settings(cluster)
    assert request.url is not None
    return foreign_settings(request.url, math.ceil(_cores(topology) / request.least), request.least)


def _cores(topology: Topology) -> int:
    """Slots for all pools, of two shifts at once."""
    return slots_for(full_layout(topology))


@contextmanager
def started(cluster: StandaloneCluster | None, request: ClusterRequest | None) -> Iterator[None]:
    """The cluster with its first workers; without one, nothing."""
    if cluster is None or request is None:
        yield
        return
    with cluster:
        await_workers(cluster, request.least)
        yield


def workers_of(run: Run, request: ClusterRequest, cluster: StandaloneCluster | None) -> ClusterWorkers:
    """The workers under a run that has started."""
    executors = Executors(run.spark)
    workers = cluster if cluster is not None else ExecutorWorkers(executors, request.capacity)
    return ClusterWorkers(workers, run, executors)


class Clustered:
    """A run on its cluster: the managers, and what they did."""

    def __init__(self, workers: ClusterWorkers, run: Run, policy: Policy, rules: LevelRules) -> None:
        self.workers = workers
        self._since_s = run.clock.now()
        sources = list(run.topology.sources)
        self.levels = TwoLevels(
            run.topology.name,
            policy,
            self.workers,
            rules,
            sources=sources,
            site=self.workers.site,
            where=self.workers.where,
        )
        self.view = LevelsView(self.levels, self.workers.pauses)

    def step(self, now_s: float) -> None:
        """Take in workers that have come up, then let the managers work."""
        self.workers.settle()
        self.levels.step(now_s)

    def summary(self) -> dict[str, object]:
        """For programs: what became of the workers."""
        pauses = [
            {"time_s": round(one.time_s - self._since_s, 1), "why": one.why, "seconds": round(one.seconds, 3)}
            for one in self.workers.pauses
        ]
        said = [f"{entry.time_s - self._since_s:.0f} s: {entry.said}" for entry in self.levels.diary.entries]
        return {"worker_seconds": round(self.workers.seconds, 1), "pauses": pauses, "managers": said}
