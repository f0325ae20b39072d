"""What both levels show of themselves, interval by interval; and that the loop passes it on to the store."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.control.loop import Loop, Parts
from penstock.control.managers.levels_view import LevelsView
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.control.monitor import Monitor
from penstock.infra.simulated import Region, SimulatedWorkers
from penstock.infra.worker import WorkerSize
from penstock.metrics.interval import IntervalRules
from penstock.metrics.rows import PauseRow
from penstock.policy.static import Static
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant


@dataclass
class Stood:
    """A pause, as the engine notes it."""

    time_s: float
    why: str
    seconds: float


class Rig:
    """One operator of 10 ms and its source, on workers of two slots; a new worker takes 12 s."""

    def __init__(self):
        self.clock = ManualClock(start_s=100.0)
        region = Region(name="here", sizes=(WorkerSize(name="two", capacity=2, price=0.5),), start_s=12.0)
        self.workers = SimulatedWorkers([region], now=self.clock.now)
        self.workers.begin_with("here", region.sizes[0], 1)
        self.plant = FakePlant([FakeOperator("a", {"in": 1.0}, 0.01)], self.clock)
        self.plant.rates["in"] = 50.0
        rules = LevelRules(every_s=10.0, region=RegionRules(spare=1))
        self.levels = TwoLevels("app", Static(1), self.workers, rules, sources=["in"])
        self.pauses = []
        self.view = LevelsView(self.levels, self.pauses)

    def loop(self, records):
        monitor = Monitor(self.plant, IntervalRules(5.0, self.plant.declared()))
        parts = Parts(
            monitor,
            self.levels.application,
            self.plant,
            recorder=records,
            infrastructure=self.levels.step,
            levels=self.view,
        )
        return Loop(parts, self.clock)


class Kept(list):
    def record(self, record):
        self.append(record)


@pytest.fixture
def rig():
    return Rig()


def steps(rig, loop, count):
    for _ in range(count):
        rig.clock.advance(5.0)
        loop.step(rig.clock.now())


def test_workers_and_words_of_every_interval_are_recorded(rig):
    """The only worker hosts the source and the replica: a second is proposed, granted, starts, and is there."""
    kept = Kept()
    loop = rig.loop(kept)
    loop.step(rig.clock.now())
    steps(rig, loop, 5)
    assert [one.interval.number for one in kept] == [1, 2, 3, 4, 5]
    first = kept[0].levels
    assert [(row.worker, row.state, row.capacity, row.hosted, row.price) for row in first.workers] == [
        ("here-1", "available", 2, 2, 0.5),
        ("here-2", "starting", 2, 0, 0.5),
    ]
    assert first.workers[0].utilisation == pytest.approx(0.25)  # half busy on one slot of two
    assert first.workers[1].utilisation is None
    assert [(row.number, row.time_s) for row in first.workers] == [(1, 105.0)] * 2
    assert [(row.sequence, row.who, row.word, row.subject) for row in first.managers] == [
        (0, "region here", "proposed", "start a worker of here"),
        (1, "infrastructure", "granted", "start a worker of here"),
    ]
    assert first.managers[0].reason == "0 slots are free, 1 should be"
    later = [row for one in kept[1:] for row in one.levels.managers]
    assert [(row.sequence, row.word, row.subject) for row in later] == [(2, "done", "start here-2")]
    assert kept[-1].levels.workers[1].state == "available"


def test_the_state_of_the_loop_has_the_workers_and_the_last_words(rig):
    loop = rig.loop(None)
    loop.step(rig.clock.now())
    assert loop.state.said == ()
    steps(rig, loop, 5)
    assert [row.word for row in loop.state.said] == ["proposed", "granted", "done"]
    assert len(loop.state.seen.levels.workers) == 2


def test_a_pause_is_told_once(rig):
    rig.pauses.append(Stood(101.0, "here-2 joined", 2.5))
    assert rig.view.look(1, 105.0).pauses == (PauseRow(time_s=101.0, why="here-2 joined", seconds=2.5),)
    rig.pauses.append(Stood(109.0, "here-1 is stopped", 3.0))
    assert [row.why for row in rig.view.look(2, 110.0).pauses] == ["here-1 is stopped"]
    assert rig.view.look(3, 115.0).pauses == ()


def test_a_view_that_fails_stops_nothing(rig, caplog):
    """Whatever fails, the loop goes on; the interval is kept without its workers."""
    kept = Kept()
    loop = rig.loop(kept)
    loop.step(rig.clock.now())
    rig.view.look = None
    steps(rig, loop, 1)
    assert kept[0].levels.workers == ()
    assert "levels failed" in caplog.text


def test_without_workers_there_is_nothing_to_show(rig):
    kept = Kept()
    loop = Loop(Parts(Monitor(rig.plant, IntervalRules(5.0)), Static(1), rig.plant, recorder=kept), rig.clock)
    loop.step(rig.clock.now())
    steps(rig, loop, 1)
    assert (kept[0].levels.workers, loop.state.seen.levels, loop.state.said) == ((), None, ())
