"""A small world for managers: workers on a clock that the test moves, and an application whose load it sets."""

from __future__ import annotations

from penstock.control.managers.application_manager import ApplicationManager
from penstock.control.managers.infrastructure_manager import InfrastructureManager
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.region_manager import RegionManager, RegionRules
from penstock.infra.simulated import Region, SimulatedWorkers
from penstock.infra.worker import WorkerSize
from penstock.metrics.snapshot import IntervalLatency
from penstock.policy.threshold import Threshold
from penstock.testing.loads import load, snapshot

ONE = WorkerSize(name="one", capacity=1)


class World:
    """One region and one application, `app`, with operators of so many replicas."""

    def __init__(self, workers=5, size=ONE, start_s=0.0):
        self.now_s = 0.0
        self.size = size
        self.workers = SimulatedWorkers([Region(name="here", sizes=(size,), start_s=start_s)], lambda: self.now_s)
        self.ledger = SlotLedger()
        self.active = {"a": (0,), "b": (0,)}
        for _ in range(workers):
            self.workers.add("here", size)
        self.ledger.update(self.workers.list())

    def application(self, policy=None, **more):
        self.app = ApplicationManager("app", policy or Threshold(), self.ledger, **more)
        return self.app

    def infrastructure(self, rules=None, region=None, applications=None):
        self.manager = InfrastructureManager(
            self.workers,
            self.ledger,
            [RegionManager("here", region or RegionRules())],
            [self.app] if applications is None else applications,
            rules,
        )
        return self.manager

    def seen(self, busy, latency_ms=50.0):
        loads = [
            load(name, {"in": 10}, active=active, pool=8, busy_share=dict.fromkeys(active, busy[name]))
            for name, active in self.active.items()
        ]
        return snapshot({"in": 10}, loads, time_s=self.now_s, latency=IntervalLatency(1, latency_ms, 0.0, 0.0))

    def control(self, latency_ms=50.0, **busy):
        """One step of the application's loop, carried out."""
        plan = self.app.plan(self.seen(busy, latency_ms))
        self.active = {name: target.which for name, target in plan.targets.items()}
        return plan
