from __future__ import annotations

import pytest

from penstock.control.managers.application_manager import ApplicationManager, ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureManager, InfrastructureRules
from penstock.control.managers.ledger import Seat, SlotLedger
from penstock.control.managers.region_manager import RegionManager, RegionRules
from penstock.errors import EngineError, InputError
from penstock.infra.simulated import Region, SimulatedWorkers
from penstock.infra.worker import WorkerSize, WorkerState
from penstock.policy.threshold import Threshold

from .world import World

FOUR = WorkerSize(name="four", capacity=4)


def states(world):
    return [worker.state for worker in world.workers.list()]


def said(manager, word):
    return [str(entry) for entry in manager.diary.entries if entry.word == word]


def test_the_spare_capacity_is_restored_in_one_step(world):
    world.application()
    manager = world.infrastructure()
    world.control(a=0.3, b=0.3)  # two of five slots
    manager.step(60.0)
    assert len(world.workers.list()) == 7
    assert said(manager, "granted")[0] == (
        "0 s: infrastructure granted start a worker of here: 3 slots are free, 5 should be"
    ).replace("0 s", "60 s", 1)


def test_nothing_changes_at_a_constant_load(world):
    world.application()
    manager = world.infrastructure()
    for step in range(10):
        world.now_s = 60.0 * step
        world.control(a=0.5, b=0.5)
        manager.step(world.now_s)
        if step:
            assert len(world.workers.list()) == 7


def test_workers_on_the_way_are_not_ordered_again():
    world = World(workers=2, start_s=300.0)
    world.application()
    manager = world.infrastructure(InfrastructureRules(start_within_s=1000.0))
    for step in range(4):
        world.now_s = 60.0 * step
        manager.step(world.now_s)
    assert len(world.workers.list()) == 5


def test_the_most_workers(world):
    world.application()
    manager = world.infrastructure(InfrastructureRules(most=6))
    world.control(a=0.3, b=0.3)
    manager.step(60.0)
    assert len(world.workers.list()) == 6
    assert said(manager, "refused") == ["60 s: infrastructure refused start a worker of here: 6 workers are the most"]


def freed(world, busy=0.02, **rules):
    """Two workers of 4, one replica on each; the second is hardly used."""
    world.application(rules=ApplicationRules(first_workers=2, **rules))
    world.control(a=0.6, b=busy)
    return world.infrastructure(InfrastructureRules(free_within_s=100.0), RegionRules(spare=2))


def test_an_occupied_worker_is_freed_and_then_stopped():
    world = World(workers=2, size=FOUR)
    manager = freed(world)
    manager.step(60.0)
    assert states(world) == [WorkerState.AVAILABLE, WorkerState.DRAINING]
    world.control(a=0.6, b=0.02)
    manager.step(120.0)
    assert [worker.name for worker in world.workers.list()] == ["here-1"]
    assert world.ledger.worker_of(Seat("app", "b", 1)) == "here-1"
    assert said(manager, "done") == ["120 s: infrastructure done stop here-2: it has been freed"]


def test_a_worker_that_is_not_freed_in_time_is_available_again():
    world = World(workers=2, size=FOUR)
    manager = freed(world)
    manager.step(60.0)
    manager.step(159.0)
    assert states(world)[1] is WorkerState.DRAINING
    manager.step(160.0)
    assert states(world)[1] is WorkerState.AVAILABLE
    assert said(manager, "cancelled") == [
        "160 s: infrastructure cancelled free here-2: 1 replicas were still there after 100 s"
    ]
    assert said(manager, "refused") == [
        "160 s: infrastructure refused free here-2: it could not be freed; not tried again for another 100 s"
    ]


def test_nothing_new_is_put_on_a_worker_that_is_being_freed():
    world = World(workers=2, size=FOUR)
    manager = freed(world)
    manager.step(60.0)
    world.control(a=0.9, b=0.02)
    assert world.ledger.hosted("here-2") == ()


def test_an_application_may_deny_it():
    world = World(workers=2, size=FOUR)
    manager = freed(world, keep=frozenset({"b"}))
    manager.step(60.0)
    assert states(world) == [WorkerState.AVAILABLE] * 2
    assert said(manager, "refused") == ["60 s: infrastructure refused free here-2: b of app must not be moved"]


def test_a_worker_that_never_comes_up_is_given_up_and_tried_again_later():
    world = World(workers=0, start_s=float("1e9"))
    world.application()
    manager = world.infrastructure(InfrastructureRules(start_within_s=50.0, wait_s=100.0), RegionRules(spare=1))
    starts = []
    for step in range(40):
        world.now_s = 60.0 * step
        manager.step(world.now_s)
        starts.append(len(world.workers.list()))
    granted = [entry.time_s for entry in manager.diary.entries if entry.word == "granted"]
    assert granted == [0.0, 180.0, 480.0, 960.0, 1620.0, 2280.0]  # 100, 200, 400 and then 600 s after each failure
    assert max(starts) == 1
    assert said(manager, "cancelled")[0] == (
        "60 s: infrastructure cancelled start here-1: it did not come up within 50 s; none is started for 100 s"
    )


def test_a_worker_that_vanished_is_replaced(world):
    world.application()
    manager = world.infrastructure(region=RegionRules(spare=3))
    world.control(a=0.3, b=0.3)
    world.workers.remove("here-1")
    manager.step(60.0)
    assert said(manager, "lost") == ["60 s: infrastructure lost a 0 of app: its worker is gone"]
    world.control(a=0.3, b=0.3)
    manager.step(120.0)
    free = sum(world.ledger.free(worker.name) for worker in world.ledger.workers)
    assert free == 3
    assert len(world.ledger.seats_of("app")) == 2


def test_of_two_regions_the_cheaper_one_is_served_first():
    now = [0.0]
    dear, cheap = WorkerSize(name="dear", capacity=1, price=2.0), WorkerSize(name="cheap", capacity=1)
    regions = [Region(name="near", sizes=(dear,)), Region(name="far", sizes=(cheap,))]
    workers, ledger = SimulatedWorkers(regions, lambda: now[0]), SlotLedger()
    managers = [RegionManager(name, RegionRules(spare=2, least=0)) for name in ("near", "far")]
    manager = InfrastructureManager(workers, ledger, managers, [], InfrastructureRules(most=3))
    manager.step(0.0)
    assert sorted(worker.region for worker in workers.list()) == ["far", "far", "near"]


def test_a_worker_that_cannot_be_stopped_is_available_again(world):
    class Stuck(SimulatedWorkers):
        def remove(self, name):
            raise EngineError("events were still in flight after 30 s")

    world.workers.__class__ = Stuck
    world.application()
    manager = world.infrastructure(region=RegionRules(spare=1))
    manager.step(60.0)
    assert states(world) == [WorkerState.AVAILABLE] * 5
    assert said(manager, "cancelled")[0] == (
        "60 s: infrastructure cancelled stop here-1: events were still in flight after 30 s"
    )


class Slow(SimulatedWorkers):
    """Workers that join slowly, and have to finish something before they stop."""

    joining = finishing = frozenset()

    def list(self):
        joined = [one.turned(WorkerState.JOINING) if one.name in self.joining else one for one in super().list()]
        return [one.turned(WorkerState.DRAINING) if one.name in self.finishing else one for one in joined]

    def remove(self, name):
        self.finishing |= {name}


def test_a_worker_that_is_up_and_joins_slowly_is_not_given_up():
    world = World(workers=0)
    world.workers.__class__ = Slow
    world.workers.joining = {"here-1"}
    world.application()
    manager = world.infrastructure(InfrastructureRules(start_within_s=50.0), RegionRules(spare=1))
    for now_s in (0.0, 60.0, 120.0):
        manager.step(now_s)
    assert said(manager, "cancelled") == said(manager, "done") == []
    assert len(said(manager, "granted")) == 1
    world.workers.joining = frozenset()
    manager.step(180.0)
    assert said(manager, "done") == ["180 s: infrastructure done start here-1: available after 180 s"]


def test_a_worker_that_finishes_something_first_is_done_when_it_is_gone(world):
    world.workers.__class__ = Slow
    world.application()
    manager = world.infrastructure(region=RegionRules(spare=4))
    manager.step(60.0)
    assert states(world).count(WorkerState.DRAINING) == 1
    manager.step(120.0)
    assert said(manager, "done") == []
    assert len(said(manager, "granted")) == 1
    SimulatedWorkers.remove(world.workers, "here-1")
    manager.step(180.0)
    assert said(manager, "done") == [
        "180 s: infrastructure done stop here-1: it is empty, and 4 slots stay free without it, after 120 s"
    ]


def test_a_worker_that_could_not_leave_is_spared_for_a_while(world):
    world.workers.__class__ = Slow
    world.application()
    manager = world.infrastructure(InfrastructureRules(free_within_s=100.0), RegionRules(spare=4))
    manager.step(60.0)
    world.workers.finishing = frozenset()  # it is at work again
    manager.step(120.0)
    assert said(manager, "cancelled") == ["120 s: infrastructure cancelled stop here-1: it is at work again"]
    assert said(manager, "refused") == [
        "120 s: infrastructure refused stop here-1: it could not be freed; not tried again for another 100 s"
    ]


def test_two_applications_share_the_slots(world):
    other = ApplicationManager("other", Threshold(), world.ledger)
    world.application()
    world.control(a=0.9, b=0.9)
    seen = world.seen({"a": 0.9, "b": 0.9})
    plan = other.plan(type(seen)(**{name: getattr(seen, name) for name in seen.__slots__}))
    assert len(world.ledger.seats_of("app")) == 4
    assert len(world.ledger.seats_of("other")) == 1
    assert plan.targets["a"].reason.endswith("refused: no free slot on 5 workers")


@pytest.mark.parametrize("rules", [{"most": 0}, {"free_within_s": 0}, {"start_within_s": -1}, {"wait_s": 0}])
def test_rules_that_make_no_sense(rules):
    with pytest.raises(InputError, match="infrastructure manager: "):
        InfrastructureRules(**rules)


def test_a_worker_that_could_not_be_freed_does_not_keep_others():
    """One of three could go. The first does not get free: while it is spared, another is asked, not nobody."""
    world = World(workers=3, size=FOUR)
    world.active["c"] = (0,)
    world.application(rules=ApplicationRules(first_workers=3))
    world.control(a=0.01, b=0.01, c=0.01)
    manager = world.infrastructure(InfrastructureRules(free_within_s=100.0), RegionRules(spare=4))
    manager.step(60.0)
    assert states(world)[0] is WorkerState.DRAINING
    manager.step(160.0)
    assert states(world)[0] is WorkerState.AVAILABLE
    assert said(manager, "granted")[1].startswith("160 s: infrastructure granted free here-2: ")


def test_a_worker_that_an_application_keeps_does_not_keep_others():
    world = World(workers=2, size=FOUR)
    world.application(rules=ApplicationRules(first_workers=2, keep=frozenset({"a"})))
    world.control(a=0.01, b=0.01)
    manager = world.infrastructure(region=RegionRules(spare=2))
    manager.step(60.0)
    assert said(manager, "refused") == ["60 s: infrastructure refused free here-1: a of app must not be moved"]
    manager.step(120.0)
    assert said(manager, "granted") == [
        "120 s: infrastructure granted free here-2: it is used 0.0025, and 2 slots stay free without it"
    ]
