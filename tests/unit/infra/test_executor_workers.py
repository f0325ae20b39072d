from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EngineError, InputError
from penstock.infra.executor_workers import REGION, ExecutorWorkers
from penstock.infra.worker import WorkerState
from tests.waiting import LONG_S

STARTING, AVAILABLE, DRAINING = WorkerState.STARTING, WorkerState.AVAILABLE, WorkerState.DRAINING


class FakeExecutors:
    """A cluster that counts as Spark's Master does: it fills up to the total, those that leave among them."""

    def __init__(self, count: int, room: int = 100) -> None:
        self.total = count
        self.room = room
        self.there: list[str] = []
        self.left: set[str] = set()
        self._next = 0
        self.fill()

    def ids(self):
        return tuple(self.there)

    def leaving(self):
        return frozenset(self.left)

    def request(self, total):
        self.total = total

    def decommission(self, executor):
        self.left.add(executor)
        self.total = max(self.total - 1, 0)

    def fill(self):
        """What has been asked for registers."""
        while len(self.there) < min(self.total, self.room):
            self.there.append(str(self._next))
            self._next += 1

    def exit(self, executor):
        """One is gone, and the Master looks at once whether another fits."""
        self.there.remove(executor)
        self.left.discard(executor)
        self.fill()


class World:
    def __init__(self, count: int = 2, room: int = 100) -> None:
        self.now_s = 0.0
        self.executors = FakeExecutors(count, room)
        self.workers = ExecutorWorkers(self.executors, 3, lambda: self.now_s)

    def states(self):
        return {worker.name: worker.state for worker in self.workers.list()}

    def add(self):
        return self.workers.add(REGION, self.workers.sizes()[REGION][0])


def test_the_executors_that_are_there_are_workers():
    world = World()
    assert world.states() == {"executor-1": AVAILABLE, "executor-2": AVAILABLE}
    assert [worker.capacity for worker in world.workers.list()] == [3, 3]
    assert (world.workers.executors("executor-2"), world.workers.named("1")) == (("1",), "executor-2")
    assert world.workers.named("9") is None


def test_a_worker_starts_until_its_executor_registers():
    world = World()
    name = world.add()
    assert (name, world.executors.total) == ("executor-3", 3)
    assert world.states()[name] is STARTING
    assert world.workers.executors(name) == ()
    world.executors.fill()
    assert world.states()[name] is AVAILABLE
    assert world.workers.executors(name) == ("2",)


def test_one_that_never_registers_is_given_up():
    world = World(room=2)
    name = world.add()
    world.now_s = 60.0
    world.workers.remove(name)
    assert world.executors.total == 2
    assert set(world.states()) == {"executor-1", "executor-2"}
    assert world.workers.seconds == 180.0


def test_one_that_the_cluster_refuses_is_not_waited_for(monkeypatch):
    """It was listed as starting for ever, and nobody had its name to give it up."""
    world = World(count=1)

    def refuse(total):
        raise EngineError(f"executors: the cluster did not take the request for {total}")

    monkeypatch.setattr(world.executors, "request", refuse)
    with pytest.raises(EngineError, match="did not take the request for 2"):
        world.workers.add(REGION)
    assert world.states() == {"executor-1": AVAILABLE}


def test_a_removed_worker_costs_until_it_is_gone_and_is_not_replaced():
    world = World()
    world.workers.drain("executor-1")
    assert world.states()["executor-1"] is DRAINING
    world.workers.remove("executor-1")
    assert set(world.states()) == {"executor-2"}
    world.now_s = 10.0
    assert world.workers.seconds == 20.0
    world.executors.exit("0")
    world.now_s = 15.0
    assert world.workers.seconds == 30.0  # its end is noticed now
    assert world.executors.ids() == ("1",)


def test_one_can_come_while_another_leaves_and_takes_no_place_after_it():
    world = World()
    world.workers.remove("executor-1")
    name = world.add()
    world.executors.fill()
    assert world.states() == {"executor-2": AVAILABLE, name: AVAILABLE}
    world.executors.exit("0")
    assert world.executors.ids() == ("1", "2")


def test_a_lost_executor_is_lost_and_what_replaces_it_is_a_worker():
    world = World()
    world.executors.exit("0")
    assert world.states() == {"executor-2": AVAILABLE, "executor-3": AVAILABLE}
    assert world.workers.executors("executor-3") == ("2",)


def test_an_executor_that_the_cluster_takes_away_drains():
    world = World()
    world.executors.decommission("1")
    assert world.states() == {"executor-1": AVAILABLE, "executor-2": DRAINING}
    world.workers.remove("executor-2")
    assert set(world.states()) == {"executor-1"}


def test_restored():
    world = World()
    world.workers.drain("executor-1")
    world.workers.restore("executor-1")
    assert world.states()["executor-1"] is AVAILABLE


def test_unknown():
    with pytest.raises(InputError, match="worker 'x': is not running; known: executor-1"):
        World(1).workers.remove("x")


@given(st.lists(st.sampled_from(["add", "remove", "fill", "exit", "lose"]), max_size=25))
def test_whatever_happens_workers_and_executors_agree_in_the_end(actions):
    world = World()
    for action in actions:
        world.now_s += 1.0
        listed = list(world.states())
        if action == "add":
            world.add()
        elif action == "remove" and listed:
            world.workers.remove(listed[0])
        elif action == "fill":
            world.executors.fill()
        elif action == "exit" and world.executors.left:
            world.executors.exit(min(world.executors.left))
        elif action == "lose" and world.executors.there:
            world.executors.exit(world.executors.there[-1])
    for _ in range(3):
        world.workers.list()
        world.executors.fill()
    for one in sorted(world.executors.left):
        world.executors.exit(one)
    workers = world.workers.list()
    assert all(worker.state is AVAILABLE for worker in workers)
    assert len(workers) == len(world.executors.ids())
    assert world.workers.seconds <= world.now_s * (len(actions) + 2)


def test_what_was_seen_before_another_thread_removed_a_worker_does_not_bring_it_back():
    """The loop's thread had asked which executors are there when the other let one go: it became a worker anew."""
    world = World()

    def let_go():
        world.workers.remove("executor-2")
        world.executors.exit("1")
        world.workers.list()

    other = threading.Thread(target=let_go)

    def ids():
        there = tuple(world.executors.there)
        if threading.current_thread() is threading.main_thread() and other.ident is None:
            other.start()
            other.join(0.3)
        return there

    world.executors.ids = ids
    assert world.states().keys() <= {"executor-1", "executor-2"}
    other.join(LONG_S)
    assert world.states() == {"executor-1": AVAILABLE}
    assert world.workers.named("1") is None
