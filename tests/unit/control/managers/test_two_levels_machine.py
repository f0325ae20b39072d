"""Both levels under random loads: slots are never overbooked, the spare capacity comes back, and rest comes to rest."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.region_manager import RegionRules
from penstock.infra.worker import WorkerSize, WorkerState

from .world import World

WORK = st.floats(0.0, 5.0)  # replicas' worth of work for one operator


class TwoLevels(RuleBasedStateMachine):
    """Loads change, workers vanish, and both control systems go on."""

    @initialize(capacity=st.integers(1, 3), spare=st.integers(0, 6), least=st.integers(0, 3))
    def start(self, capacity, spare, least):
        self.world = World(workers=4, size=WorkerSize(name="size", capacity=capacity))
        self.region = RegionRules(spare=spare, least=least)
        self.world.application()
        self.manager = self.world.infrastructure(InfrastructureRules(free_within_s=90.0), self.region)
        self.work = {"a": 0.5, "b": 0.5}
        self.step()

    @rule(work=st.fixed_dictionaries({"a": WORK, "b": WORK}))
    def load_changes(self, work):
        self.work = work

    @rule(which=st.integers(0, 20))
    def worker_vanishes(self, which):
        workers = self.world.workers.list()
        if len(workers) > 1:
            self.world.workers.remove(workers[which % len(workers)].name)

    @rule()
    def step(self):
        """Thirty seconds: the application twice, the infrastructure once."""
        for _ in range(2):
            self.world.now_s += 30.0
            self.world.control(**self.busy())
        self.manager.step(self.world.now_s)

    @rule()
    def rest(self):
        """At a constant load everything comes to rest, with the spare capacity in place."""
        for _ in range(40):
            self.step()
        before = [worker.name for worker in self.world.workers.list()], dict(self.world.active)
        for _ in range(5):
            self.step()
        assert ([worker.name for worker in self.world.workers.list()], dict(self.world.active)) == before
        assert self.spare() >= self.region.spare
        assert len(self.world.workers.list()) >= self.region.least

    def busy(self):
        return {name: min(1.0, self.work[name] / len(active)) for name, active in self.world.active.items()}

    def spare(self):
        ledger = self.world.ledger
        open_ = [worker for worker in ledger.workers if worker.state is not WorkerState.DRAINING]
        return sum(ledger.free(worker.name) for worker in open_)

    @invariant()
    def nothing_is_overbooked(self):
        if not hasattr(self, "world"):
            return
        ledger = self.world.ledger
        assert all(0 <= ledger.free(worker.name) <= worker.capacity for worker in ledger.workers)

    @invariant()
    def every_replica_has_a_slot_or_there_is_none(self):
        if not hasattr(self, "world"):
            return
        seats = {(seat.operator, seat.replica) for seat in self.world.ledger.seats_of("app")}
        assert seats <= {(name, replica) for name, active in self.world.active.items() for replica in active}


TestTwoLevels = TwoLevels.TestCase
TestTwoLevels.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
