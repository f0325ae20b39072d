"""Workers beneath a run: when they count as available, how they leave, and what happens if a change fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import EngineError
from penstock.infra import cluster_workers as clusters
from penstock.infra.cluster_workers import ClusterWorkers
from penstock.infra.worker import Worker, WorkerSize, WorkerState
from tests.waiting import LONG_S, until

SIZE = WorkerSize(name="process", capacity=2)


class Workers:
    """A cluster whose workers have the executor of the same number."""

    seconds = 12.5

    def __init__(self, *names: str) -> None:
        self.states = dict.fromkeys(names, WorkerState.AVAILABLE)
        self.without_executor: set[str] = set()
        self.renamed: dict[str, str] = {}  # executors that another took the place of
        self.removed: list[str] = []

    def list(self) -> list[Worker]:
        return [Worker(name=n, region="local", capacity=2, state=state) for n, state in self.states.items()]

    def sizes(self) -> Any:
        return {"local": (SIZE,)}

    def add(self, region: str, size: WorkerSize) -> str:
        name = f"w{len(self.states) + 1}"
        self.states[name] = WorkerState.STARTING
        return name

    def drain(self, name: str) -> None:
        self.states[name] = WorkerState.DRAINING

    def restore(self, name: str) -> None:
        self.states[name] = WorkerState.AVAILABLE

    def remove(self, name: str) -> None:
        self.removed.append(name)
        del self.states[name]

    def executors(self, name: str) -> tuple[str, ...]:
        return () if name in self.without_executor else (self.renamed.get(name, f"e-{name}"),)

    def named(self, host: str) -> str | None:
        return host if host in self.states else None


class Scheduler:
    def __init__(self, cluster: Workers) -> None:
        self.cluster = cluster
        self.left: list[str] = []
        self.totals: list[int] = []
        self.unready: set[str] = set()

    def ready(self) -> frozenset[str]:
        return frozenset(self.ids()) - self.unready

    def ids(self) -> tuple[str, ...]:
        return tuple(one for name in self.cluster.states for one in self.cluster.executors(name))

    def leaving(self) -> frozenset[str]:
        return frozenset(self.left)

    def request(self, total: int) -> None:
        self.totals.append(total)

    def decommission(self, executor: str) -> None:
        self.left.append(executor)


class Run:
    """A run whose next shift takes over at once, or fails; the last one finishes when the test says so."""

    def __init__(self) -> None:
        self.pools = {"o": (0, 1, 2)}
        self.laid: list[Any] = []
        self.error: EngineError | None = None
        self.finished = threading.Event()
        self.clock = SimpleNamespace(now=lambda: 7.0)
        self.hosts = lambda: {("o", 0): "w1", ("o", 1): "w2", ("o", 2): "w2", ("p", 0): "w2"}

    def lay_out_anew(self, pools: Any) -> float:
        if self.error is not None:
            raise self.error
        self.laid.append(pools)
        return 0.03

    def wait_settled(self, timeout_s: float) -> bool:
        return self.finished.wait(min(timeout_s, 5))

    def stopped(self) -> bool:
        return False


class World:
    def __init__(self) -> None:
        self.cluster = Workers("w1", "w2")
        self.scheduler = Scheduler(self.cluster)
        self.run = Run()
        self.workers = ClusterWorkers(self.cluster, self.run, self.scheduler)  # type: ignore[arg-type]

    def states(self) -> dict[str, str]:
        return {worker.name: str(worker.state) for worker in self.workers.list()}

    def settle(self) -> None:
        self.workers.settle()
        if self.workers._change is not None:
            self.workers._change.join(LONG_S)


@pytest.fixture
def world() -> Iterator[World]:
    """Nothing goes on when the test is over: other tests look at the threads that are left."""
    world = World()
    yield world
    world.run.finished.set()
    if world.workers._change is not None:
        world.workers._change.join(LONG_S)
        assert not world.workers.changing


def test_a_worker_is_available_once_the_next_shift_sits_on_it(world: World) -> None:
    world.run.finished.set()
    name = world.workers.add("local", SIZE)
    world.settle()
    assert world.run.laid == []  # it is not up
    world.cluster.states[name] = WorkerState.AVAILABLE
    assert world.states() == {"w1": "available", "w2": "available", "w3": "starting"}
    world.settle()
    assert world.states()["w3"] == "available"
    assert [(pause.time_s, pause.why, pause.seconds) for pause in world.workers.pauses] == [(7.0, "w3 joins", 0.03)]
    world.settle()
    assert len(world.run.laid) == 1  # nothing is left to do


def test_a_worker_joins_while_the_next_shift_is_laid_over_it(world: World) -> None:
    laying = threading.Event()
    world.run.lay_out_anew = lambda _: laying.wait(LONG_S) and 0.01  # type: ignore[method-assign]
    world.run.finished.set()
    world.cluster.states["w3"] = WorkerState.AVAILABLE
    world.workers.settle()
    assert world.states()["w3"] == "joining"
    world.workers.remove("w3")  # too late for that
    assert world.cluster.removed == []
    laying.set()
    until(lambda: not world.workers.changing)
    assert world.states()["w3"] == "draining"


def test_a_run_that_ends_during_a_change_is_no_failure(world: World) -> None:
    world.run.stopped = lambda: True  # type: ignore[method-assign]
    world.run.error = EngineError("Spark is gone")
    world.cluster.states["w3"] = WorkerState.AVAILABLE
    world.settle()
    assert world.workers.failed is None


def test_a_worker_without_an_executor_is_not_laid_over_and_one_is_asked_for(world: World) -> None:
    name = world.workers.add("local", SIZE)
    world.cluster.states[name] = WorkerState.AVAILABLE
    world.cluster.without_executor.add(name)
    world.settle()
    assert (world.run.laid, world.scheduler.totals) == ([], [3])


def test_a_worker_whose_executor_takes_no_tasks_yet_is_not_laid_over(world: World) -> None:
    world.run.finished.set()
    name = world.workers.add("local", SIZE)
    world.cluster.states[name] = WorkerState.AVAILABLE
    world.scheduler.unready.add(f"e-{name}")
    world.settle()
    assert (world.run.laid, world.scheduler.totals) == ([], [])
    world.scheduler.unready.clear()
    world.settle()
    assert len(world.run.laid) == 1


def test_a_worker_leaves_when_the_shift_before_has_finished(world: World) -> None:
    world.workers.remove("w1")
    assert world.states() == {"w1": "draining", "w2": "available"}
    world.workers.settle()
    until(lambda: world.workers.pauses)
    assert world.scheduler.left == ["e-w1"]  # before the next shift was laid out
    assert world.workers.changing
    assert world.states()["w1"] == "draining"
    assert world.cluster.removed == []
    world.workers.settle()  # one change at a time
    world.run.finished.set()
    until(lambda: not world.workers.changing)
    assert world.cluster.removed == ["w1"]
    assert world.states() == {"w2": "available"}


def test_a_worker_that_hosts_nothing_is_stopped_at_once(world: World) -> None:
    name = world.workers.add("local", SIZE)
    world.workers.remove(name)
    assert (world.cluster.removed, world.run.laid) == ([name], [])


def test_after_a_change_that_failed_all_is_as_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run.error = EngineError("6 of 9 replicas were not ready within 120 s")
    world.workers.remove("w1")
    world.settle()
    assert world.states() == {"w1": "available", "w2": "available"}
    assert world.workers.failed == "w1 leaves: 6 of 9 replicas were not ready within 120 s"
    assert world.scheduler.totals == [2]  # its executor is replaced when it has left
    assert world.workers.pauses == []


def test_a_change_that_failed_is_tried_again_after_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "AGAIN_S", 60.0)
    world.run.finished.set()
    world.cluster.states["w3"] = WorkerState.AVAILABLE
    world.run.error = EngineError("not ready")
    world.settle()
    world.run.error = None
    world.workers._change = None
    world.settle()
    assert world.run.laid == []
    world.workers._not_before_s -= 60.0  # a minute later
    world.settle()
    assert (len(world.run.laid), world.workers.failed) == (1, None)


def test_a_worker_whose_executor_was_replaced_is_laid_over_again(world: World) -> None:
    world.run.finished.set()
    world.cluster.without_executor.add("w2")
    world.settle()
    assert (world.run.laid, world.scheduler.totals) == ([], [2])  # one is asked for
    world.cluster.without_executor.clear()
    world.cluster.renamed["w2"] = "e-9"
    world.settle()
    assert [pause.why for pause in world.workers.pauses] == ["w2 joins"]
    world.settle()
    assert len(world.run.laid) == 1


def test_a_worker_that_died_is_no_longer_waited_for(world: World) -> None:
    world.workers.remove("w1")
    del world.cluster.states["w1"]
    world.settle()
    assert (world.states(), world.run.laid) == ({"w2": "available"}, [])


def test_where_replicas_sit(world: World) -> None:
    assert world.workers.where("o", 1) == "w2"
    assert world.workers.where("o", 9) is None
    assert world.workers.site("o", "w2", active={1}, pool=3) == 2
    assert world.workers.site("o", "w2", active={1}, pool=2) is None
    assert world.workers.seconds == 12.5
