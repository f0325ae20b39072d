"""`--cluster spark://HOST:PORT`: what is asked of Spark, and executors as workers under a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.cli.clustered import cluster_request, new_cluster, session_settings
from penstock.cli.foreign import ForeignWorkers
from penstock.engine.places import ReplicaPlace
from penstock.errors import EngineError, InputError
from penstock.infra.executor_workers import ExecutorWorkers
from penstock.infra.worker import WorkerState
from penstock.topology import Topology

URL = "spark://10.0.0.5:7077"


def topology() -> Topology:
    """A source and two operators with a pool of 3: seven tasks."""
    made = Topology("chain", pool=3)
    made.operator("b", len, inputs=made.operator("a", len, inputs=made.source("in")))
    return made


class FakeExecutors:
    def __init__(self, *ids: str) -> None:
        self.there = list(ids)
        self.left: set[str] = set()
        self.total = len(ids)

    def ids(self):
        return tuple(self.there)

    def leaving(self):
        return frozenset(self.left)

    def request(self, total):
        self.total = total

    def decommission(self, executor):
        self.left.add(executor)


class FakeRun:
    """Replicas of `a` on executors 4 and 5, and pools that are laid out anew when asked to be."""

    def __init__(self) -> None:
        self.pools = {"a": (0, 1, 2), "b": (0, 1, 2)}
        self.clock = SimpleNamespace(now=lambda: 7.0)
        self.fails = False
        self.laid_out = 0

    def lay_out_anew(self, pools, *_):
        if self.fails:
            raise EngineError("what is in flight was not finished in time")
        self.laid_out += 1
        return 0.5

    def places(self):
        where = {("a", 0): "4", ("a", 1): "5", ("a", 2): "5", ("b", 0): None}
        return {key: ReplicaPlace(executor, "10.0.0.6", 1, 0) for key, executor in where.items()}


@pytest.fixture
def world():
    run, executors = FakeRun(), FakeExecutors("4", "5")
    workers = ForeignWorkers(ExecutorWorkers(executors, 2), run)  # type: ignore[arg-type]
    return SimpleNamespace(run=run, executors=executors, workers=workers)


def test_where_replicas_sit(world):
    assert world.workers.where("a", 0) == "executor-1"
    assert world.workers.where("a", 2) == "executor-2"
    assert world.workers.where("b", 0) is None
    assert world.workers.where("b", 1) is None
    assert world.workers.site("a", "executor-2", active={0, 1}, pool=3) == 2
    assert world.workers.site("a", "executor-2", active={1, 2}, pool=3) is None


def test_an_executor_gets_nothing_more_before_the_pools_are_laid_out_without_it(world):
    seen = []
    world.run.lay_out_anew = lambda *_: seen.append(world.executors.leaving()) or 0.5
    world.workers.remove("executor-1")
    assert seen == [{"4"}]
    assert [pause.why for pause in world.workers.pauses] == ["executor-1 leaves"]
    assert [worker.name for worker in world.workers.list()] == ["executor-2"]


def test_if_the_pools_cannot_be_laid_out_now_it_leaves_all_the_same(world, caplog):
    world.run.fails = True
    world.workers.remove("executor-1")
    assert world.executors.leaving() == {"4"}
    assert [worker.name for worker in world.workers.list()] == ["executor-2"]
    assert "executor-1 leaves at the end of its batch: what is in flight" in caplog.text


def test_one_that_has_come_up_is_starting_until_replicas_sit_on_it(world):
    name = world.workers.add("cluster", world.workers.sizes()["cluster"][0])
    assert world.executors.total == 3
    world.executors.there.append("6")
    assert {worker.name: worker.state for worker in world.workers.list()}[name] is WorkerState.STARTING


def test_the_session_has_executors_for_all_pools_on_the_fewest_workers():
    request = cluster_request(URL, "2..4", replicas=9)
    assert request is not None
    assert (request.url, request.capacity) == (URL, 3)
    assert new_cluster(request, topology(), None) is None  # type: ignore[arg-type]
    settings = session_settings(request, topology(), None)
    cores = int(settings["spark.executor.cores"])
    assert cores * 2 >= 7
    assert settings["spark.cores.max"] == str(4 * cores)
    assert settings["spark.master"] == URL
    assert settings["spark.decommission.enabled"] == "true"
    assert session_settings(None, topology(), None) == {}


@pytest.mark.parametrize("kind", ["spark://host", "spark://host:x", "yarn", "spark:/host:7077", "spark://a b:7077"])
def test_no_such_cluster(kind):
    with pytest.raises(InputError, match=r"--cluster: no such name .*; known: local, spark://HOST:PORT"):
        cluster_request(kind, None, replicas=9)


def test_workers_need_a_cluster():
    with pytest.raises(InputError, match="--workers needs --cluster local or spark://HOST:PORT"):
        cluster_request(None, "2", replicas=9)
