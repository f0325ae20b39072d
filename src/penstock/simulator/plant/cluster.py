"""Workers under a simulated application: how many there are, what they host, and who controls them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.errors import InputError
from penstock.infra.simulated import SimulatedWorkers, Spent
from penstock.policy.base import Policy
from penstock.policy.static import Static, make_static
from penstock.policy.workload import Workload
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.scenario import Cluster


class SimulatedCluster:
    """Both control systems of a cluster around a policy, on the plant's clock."""

    def __init__(self, cluster: Cluster, policy: Policy, plant: SimulatedPlant, sources: Sequence[str]) -> None:
        assert cluster.workers is not None
        self.most = cluster.workers
        self._cluster = cluster
        self._plant = plant
        self._workers = SimulatedWorkers(cluster.regions, now=lambda: plant.now_s)
        application = cluster.application or ApplicationRules()
        self._begin(application, len(sources) + sum(plant.active().values()))
        rules = LevelRules(
            elastic=cluster.levels == "both",
            every_s=cluster.every_s,
            application=application,
            region=cluster.region,
            infrastructure=self._infrastructure(),
        )
        self.levels = TwoLevels("app", policy, self._workers, rules, sources=sources)

    def _begin(self, application: ApplicationRules, seats: int) -> None:
        """Start the first workers, in the first region."""
        region = self._cluster.regions[0]
        size = min(region.sizes, key=lambda one: one.capacity)
        needed = math.ceil(seats / size.capacity)
        if needed > self.most:
            raise InputError(
                f"cluster: {self.most} workers of {size.capacity} cannot host the {seats} replicas and sources "
                "that the run begins with"
            )
        first = max(application.first_workers, needed) if self._cluster.levels == "both" else self.most
        self._workers.begin_with(region.name, size, min(first, self.most))

    def _infrastructure(self) -> InfrastructureRules:
        """Nobody gives up a worker before its region says that it is there."""
        rules = self._cluster.infrastructure
        slowest_s = max(one.start_s for one in self._cluster.regions)
        patience_s = max(rules.start_within_s, slowest_s + 2 * self._cluster.every_s)
        return replace(rules, most=rules.most or self.most, start_within_s=patience_s)

    def place(self) -> None:
        """Tell the plant in which regions its replicas and sources sit now."""
        if not self._cluster.delayed:
            return
        numbers = {one.name: number for number, one in enumerate(self._cluster.regions)}
        sits = {worker.name: numbers[worker.region] for worker in self.levels.ledger.workers}
        regions = {
            (seat.operator, seat.replica): sits[worker] for worker in sits for seat in self.levels.ledger.hosted(worker)
        }
        delays = np.array([one.delay_s for one in self._cluster.regions])
        delay_s = delays[:, np.newaxis] + delays
        np.fill_diagonal(delay_s, 0.0)
        self._plant.place(regions, delay_s)

    def spent(self) -> Mapping[str, Spent]:
        """What the workers of each region came to."""
        return self._workers.spent()


def deployed_policy(cluster: Cluster, workload: Workload) -> Policy:
    """What the level `static` runs with: what is deployed, or what the peak needs."""
    return Static(cluster.deployed) if cluster.deployed else make_static("peak", workload=workload)
