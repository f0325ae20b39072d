from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.infra.simulated import Region, SimulatedWorkers
from penstock.infra.worker import WorkerSize, WorkerState

SMALL = WorkerSize(name="small", capacity=1, price=2.0)


class World:
    """Regions on a clock that a test moves."""

    def __init__(self, **region):
        self.now_s = 0.0
        self.workers = SimulatedWorkers(
            [Region(**{"name": "here", "sizes": (SMALL,), "start_s": 30.0} | region)], lambda: self.now_s
        )

    def states(self):
        return [worker.state for worker in self.workers.list()]


def test_a_worker_takes_its_time_to_start():
    world = World()
    world.workers.add("here", SMALL)
    world.now_s = 29.9
    assert world.states() == [WorkerState.STARTING]
    world.now_s = 30.0
    assert world.states() == [WorkerState.AVAILABLE]


def test_draining_and_back():
    world = World(start_s=0.0)
    name = world.workers.add("here", SMALL)
    world.workers.drain(name)
    assert world.states() == [WorkerState.DRAINING]
    world.workers.restore(name)
    assert world.states() == [WorkerState.AVAILABLE]
    world.workers.remove(name)
    assert world.states() == []


def test_seconds_and_prices_of_workers_that_run_and_that_have_ended():
    world = World()
    first = world.workers.add("here", SMALL)
    world.now_s = 100.0
    world.workers.add("here", SMALL)
    world.now_s = 150.0
    world.workers.remove(first)
    world.now_s = 160.0
    assert world.workers.seconds == 150.0 + 60.0
    assert world.workers.price == 2.0 * 210.0
    assert world.workers.spent() == {"here": (210.0, 420.0)}


def test_errors_name_what_is_wrong():
    world = World()
    with pytest.raises(InputError, match="worker 'w9': is not running; known: none"):
        world.workers.remove("w9")
    with pytest.raises(InputError, match="region: no such name 'there'"):
        world.workers.add("there", SMALL)
    with pytest.raises(InputError, match="region 'here': must offer at least one size"):
        World(sizes=())
    with pytest.raises(InputError, match="region 'here': start_s must be at least 0; got -1"):
        World(start_s=-1)
    with pytest.raises(InputError, match="region 'here': delay_s must be at least 0; got nan"):
        World(delay_s=float("nan"))
    with pytest.raises(InputError, match="worker size 'x': price must be at least 0; got -1"):
        WorkerSize(name="x", capacity=1, price=-1)
