from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.ledger import Seat
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.infra.simulated import Region, SimulatedWorkers
from penstock.infra.worker import WorkerSize
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot


class Quiet:
    """Operators of one quiet replica each, and sources, on workers of one size under both control systems."""

    def __init__(
        self, *, workers, capacity=3, spare=3, operators=3, sources=1, low=0.1, policy=None, start_s=0.0, most=None
    ):
        self.now_s = 0.0
        size = WorkerSize(name="size", capacity=capacity)
        self.workers = SimulatedWorkers(
            [Region(name=name, sizes=(size,), start_s=start_s) for name in ("near", "far")], lambda: self.now_s
        )
        self.workers.begin_with("near", size, workers)
        self.sources = [Seat("app (source)", f"in{n}", 0) for n in range(sources)]
        self.operators = [f"o{n}" for n in range(operators)]
        rules = LevelRules(
            application=ApplicationRules(first_workers=workers),
            region=RegionRules(spare=spare, least=0, low=low),
            infrastructure=InfrastructureRules(free_within_s=120.0, most=most),
        )
        sources = [one.operator for one in self.sources]
        self.levels = TwoLevels("app", policy or Static(1), self.workers, rules, sources=sources)
        self.active = dict.fromkeys(self.operators, (0,))

    def step(self, seconds=60.0):
        """A minute: the application's loop once, then the infrastructure's."""
        self.now_s += seconds
        loads = [
            load(name, {"in": 1}, active=active, pool=4, busy_share=dict.fromkeys(active, 0.01))
            for name, active in self.active.items()
        ]
        plan = self.levels.application.plan(snapshot({"in": 1}, loads, time_s=self.now_s))
        self.active = {name: target.which for name, target in plan.targets.items()}
        self.levels.step(self.now_s)

    @property
    def near(self):
        return [worker for worker in self.workers.list() if worker.region == "near"]

    def said(self, word):
        return [entry.said for entry in self.levels.diary.entries if entry.word == word]


def test_a_source_leaves_a_worker_that_is_to_be_freed():
    """The oldest worker hosts nothing but the source, and is chosen to go; nobody moved the source from it.

    So it was asked to go again and again, and as one of four could go, none of the others ever was.
    """
    world = Quiet(workers=4)
    world.step()
    assert world.levels.ledger.worker_of(world.sources[0]) == "near-2"
    world.step()
    assert "infrastructure done stop near-1: it has been freed" in world.said("done")
    for _ in range(10):
        world.step()
    assert world.said("cancelled") == []
    assert len(world.near) == 3  # 4 replicas and sources, and 3 slots that are kept free, on workers of 3


def test_a_source_stays_on_a_draining_worker_while_no_other_has_room():
    world = Quiet(workers=2, capacity=1, spare=0, low=0.0)
    (source,), ledger = world.sources, world.levels.ledger
    other = Seat("app", "o0", 0)
    ledger.take(other, "near-2")
    world.workers.drain("near-1")
    world.levels.step(60.0)
    assert ledger.worker_of(source) == "near-1"
    ledger.leave(other)
    world.levels.step(61.0)
    assert ledger.worker_of(source) == "near-2"


def test_a_source_stays_in_its_region_where_that_has_room():
    world = Quiet(workers=2, spare=0, low=0.0)
    world.workers.begin_with("far", world.workers.sizes()["far"][0], 1)
    world.workers.drain("near-1")
    world.levels.step(60.0)
    assert world.levels.ledger.worker_of(world.sources[0]) == "near-2"


@given(
    workers=st.integers(1, 8),
    capacity=st.integers(1, 4),
    spare=st.integers(0, 5),
    operators=st.integers(1, 4),
    sources=st.integers(0, 3),
)
def test_at_rest_every_worker_that_could_go_is_gone(workers, capacity, spare, operators, sources):
    world = Quiet(workers=workers, capacity=capacity, spare=spare, operators=operators, sources=sources)
    for _ in range(60):
        world.step()
    before = [worker.name for worker in world.workers.list()]
    said = world.levels.diary.written
    for _ in range(5):
        world.step()
    assert [worker.name for worker in world.workers.list()] == before
    assert world.levels.diary.written == said
    ledger = world.levels.ledger
    free = sum(ledger.free(worker.name) for worker in world.near)
    assert spare <= free < spare + capacity
    assert not free or all(ledger.worker_of(seat) is not None for seat in world.sources)


class Foresees(Static):
    """Wants so many slots, as the test says."""

    def __init__(self):
        super().__init__(1)
        self.slots, self.asked = 4, []

    def slots_ahead(self, supply):
        self.asked.append(supply)
        return self.slots, "the test says so"


class TestAhead:
    def quiet(self, most=None):
        """Two workers of three slots: three operators, a source, and two slots to spare."""
        policy = Foresees()
        return policy, Quiet(workers=2, policy=policy, start_s=20.0, most=most)

    def test_workers_follow_what_the_policy_wants_in_every_step(self):
        policy, quiet = self.quiet()
        policy.slots = 12
        quiet.step(2.0)
        assert len(quiet.workers.list()) == 4
        assert "4 slots are free" not in quiet.said("granted")[-1]
        assert "the test says so" in quiet.said("granted")[-1]

    def test_the_policy_hears_how_long_workers_take_to_join(self):
        policy, quiet = self.quiet()
        for slots in (6, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12):
            policy.slots = slots
            quiet.step(4.0)
        assert [one.joining_s for one in policy.asked][:2] == [30.0, 30.0]
        assert policy.asked[-1].joining_s == 20.0
        assert (policy.asked[-1].slots, policy.asked[-1].seats) == (3, 1)

    def test_workers_go_when_they_were_not_wanted_for_as_long_as_one_joins(self):
        policy, quiet = self.quiet()
        policy.slots = 9
        for _ in range(20):
            quiet.step(4.0)
        assert len(quiet.workers.list()) == 3
        policy.slots = 6
        quiet.step(4.0)
        assert len(quiet.workers.list()) == 3
        for _ in range(10):
            quiet.step(4.0)
        assert len(quiet.workers.list()) == 2
        policy.slots = 9
        quiet.step(4.0)
        assert len(quiet.workers.list()) == 3

    def test_what_a_run_begins_with_is_kept_while_nobody_knows(self):
        """A worker was let go in the first second, and asked for again when the load rose: late for a joining time."""
        policy, quiet = self.quiet()
        policy.slots = 4
        for _ in range(7):
            quiet.step(4.0)
        assert len(quiet.workers.list()) == 2
        for _ in range(5):
            quiet.step(4.0)
        assert len(quiet.workers.list()) < 3

    def test_no_more_is_wanted_than_there_may_be(self):
        """Every step one worker was proposed that could only be refused."""
        policy, quiet = self.quiet(most=3)
        policy.slots = 100
        for _ in range(10):
            quiet.step(4.0)
        assert len(quiet.workers.list()) == 3
        assert quiet.said("refused") == []

    def test_another_policy_is_asked_from_then_on(self):
        policy, quiet = self.quiet()
        quiet.step(2.0)
        quiet.levels.application.policy = other = Foresees()
        other.slots = 9
        quiet.step(2.0)
        assert len(policy.asked) == len(other.asked) == 1
        assert len(quiet.workers.list()) == 3
