"""Catching up after a fault: when it is over, and that whole pools are active no longer than that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.engine.driver import catching_up
from penstock.engine.driver.catching_up import PATIENCE_S, CatchingUp, Wait
from penstock.engine.driver.routing import RoutingTable
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.topology import Topology
from tests.waiting import until

from ..made import Published

RATE = 1000


def counters(time_s: float, backlog: int = 0, lag: int = 0, rate: float = RATE) -> RunCounters:
    """Of a run that does and lets in so many events a second."""
    done = ReplicaCounters(processed=round(rate * time_s))
    return RunCounters(
        time_s, {"s": done.processed}, {"o": OperatorCounters({0: done}, (0,), 4, backlog)}, lag={"s": lag}
    )


# ── when it is over ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_when_no_more_waits_than_is_done_in_a_tenth_of_a_second() -> None:
    wait = Wait()
    assert not wait.is_over(counters(1.0, backlog=0))  # nobody knows yet how fast it is
    assert not wait.is_over(counters(1.5, backlog=101))
    assert wait.is_over(counters(2.0, backlog=100))


def test_when_every_replica_of_a_slow_operator_has_one_event() -> None:
    wait = Wait()
    wait.is_over(counters(1.0, rate=1))
    assert not wait.is_over(counters(2.0, backlog=5, rate=1))
    assert wait.is_over(counters(3.0, backlog=4, rate=1))


def test_what_waits_outside_waits_too() -> None:
    wait = Wait()
    wait.is_over(counters(1.0))
    assert not wait.is_over(counters(1.5, lag=101))
    assert wait.is_over(counters(2.0, lag=100))


def test_whole_pools_that_get_no_further_are_of_no_use() -> None:
    wait, time_s = Wait(), 0.0
    for backlog in (5000, 4000, 3000):  # it gets on, if slowly
        time_s += PATIENCE_S - 1
        assert not wait.is_over(counters(time_s, backlog))
    assert not wait.is_over(counters(time_s + PATIENCE_S - 1, 3500))
    assert wait.is_over(counters(time_s + PATIENCE_S, 3000))


# ── whole pools until then ──────────────────────────────────────────────────────────────────────────────────────────


class Plant:
    """A run whose counters the test makes."""

    def __init__(self) -> None:
        topology = Topology("app", pool=4)
        topology.operator("o", len, inputs=topology.source("s"))
        self.routing = RoutingTable(topology, {"o": 2}, Published())
        self.backlog: int | None = None  # None while events are done again
        self.time_s, self.delivered = 0.0, 0
        self.catching_up = CatchingUp(self.routing, self.counters, self.deliver)

    def counters(self) -> RunCounters | None:
        self.time_s += 0.1
        return None if self.backlog is None else counters(self.time_s, self.backlog)

    def deliver(self) -> None:
        self.delivered += 1

    @property
    def active(self) -> int:
        return len(self.routing.current.operators["o"].active)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    monkeypatch.setattr(catching_up, "LOOK_EVERY_S", 0.001)
    plant = Plant()
    yield plant
    plant.catching_up.stop()


def looked(plant: Plant, times: int = 3) -> bool:
    before = plant.time_s
    until(lambda: plant.time_s >= before + 0.1 * times)
    return True


def test_from_the_death_until_little_waits(plant: Plant) -> None:
    plant.catching_up.begin()
    assert plant.active == 4
    assert looked(plant)
    assert (plant.active, plant.delivered) == (4, 0)
    plant.backlog = 5000
    until(lambda: plant.delivered)
    assert looked(plant)
    assert (plant.active, plant.delivered) == (4, 1)
    plant.backlog = 0
    until(lambda: plant.active == 2)
    assert plant.delivered == 1


def test_one_that_dies_again_begins_anew(plant: Plant) -> None:
    plant.backlog = 5000
    plant.catching_up.begin()
    until(lambda: plant.delivered == 1)
    plant.catching_up.begin()
    until(lambda: plant.delivered == 2)
    plant.backlog = 0
    until(lambda: plant.active == 2)
    plant.catching_up.begin()  # and once more, later
    assert plant.active == 4
    until(lambda: plant.active == 2)
    assert plant.delivered == 3


def test_where_pools_are_to_stay_as_they_are_it_only_says_when_all_is_delivered(plant: Plant) -> None:
    alone = CatchingUp(None, plant.counters, plant.deliver)
    plant.backlog = 0
    alone.begin()
    until(lambda: plant.delivered == 1)
    assert plant.active == 2
    alone.stop()
