"""Workers under a simulated application: how many there are, what they host, and who controls them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.common.names import one_of
from penstock.control.managers.application_manager import ApplicationRules
from penstock.control.managers.infrastructure_manager import InfrastructureRules
from penstock.control.managers.region_manager import RegionRules
from penstock.control.managers.two_levels import LevelRules, TwoLevels
from penstock.errors import InputError
from penstock.infra.simulated import Region, SimulatedWorkers, Spent
from penstock.infra.worker import WorkerSize
from penstock.policy.base import Policy
from penstock.policy.static import Static, make_static
from penstock.policy.workload import Workload
from penstock.simulator.plant import Plant

LEVELS = ("static", "application", "both")
START_S = 12.0  # a new Worker of Spark Standalone until it runs tasks
DEFAULT_REGIONS = (Region(name="here", sizes=(WorkerSize(name="one", capacity=1),), start_s=START_S),)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A number of workers, and how much of them is controlled.

    `static`: replicas and workers stay as they are. `application`: replicas change, workers stay. `both`: workers come
    and go as well, up to that number. Workers of several regions differ in size, price and start time, and events
    between them take longer; the first region is where a run begins. Every region keeps its own spare capacity.
    """

    workers: int
    levels: str = "both"
    regions: tuple[Region, ...] = DEFAULT_REGIONS
    application: ApplicationRules = field(default_factory=ApplicationRules)
    region: RegionRules = field(default_factory=RegionRules)
    infrastructure: InfrastructureRules = field(default_factory=InfrastructureRules)
    every_s: float = 60.0
    deployed: Mapping[str, int] = field(default_factory=dict)  # on the level `static`; empty: what the peak needs

    def __post_init__(self) -> None:
        one_of("levels", self.levels, LEVELS)
        if self.workers < 1:
            raise InputError(f"cluster: workers must be at least 1; got {self.workers}")
        if not self.regions or len({one.name for one in self.regions}) < len(self.regions):
            raise InputError(f"cluster: must have regions, each once; got {[one.name for one in self.regions]}")

    @property
    def delayed(self) -> bool:
        """Whether events between regions take longer."""
        return len(self.regions) > 1 and any(one.delay_s > 0 for one in self.regions)

    def policy(self, policy: Policy, workload: Workload) -> Policy:
        """The policy, or on the level `static` what is deployed."""
        if self.levels != "static":
            return policy
        return Static(self.deployed) if self.deployed else make_static("peak", workload=workload)

    def around(self, policy: Policy, plant: Plant, sources: Sequence[str]) -> TwoLevels:
        """Both control systems around the policy, on the plant's clock."""
        workers = SimulatedWorkers(self.regions, now=lambda: plant.now_s)
        elastic = self.levels == "both"
        seats = len(sources) + sum(plant.active().values())
        region = self.regions[0]
        size = min(region.sizes, key=lambda one: one.capacity)
        needed = math.ceil(seats / size.capacity)
        if needed > self.workers:
            raise InputError(
                f"cluster: {self.workers} workers of {size.capacity} cannot host the {seats} replicas and sources "
                "that the run begins with"
            )
        first = max(self.application.first_workers, needed) if elastic else self.workers
        workers.begin_with(region.name, size, min(first, self.workers))
        rules = LevelRules(
            elastic=elastic,
            every_s=self.every_s,
            application=self.application,
            region=self.region,
            infrastructure=self._infrastructure(),
        )
        return TwoLevels("app", policy, workers, rules, sources=sources)

    def _infrastructure(self) -> InfrastructureRules:
        """Nobody gives up a worker before its region says that it is there."""
        rules = self.infrastructure
        slowest_s = max(one.start_s for one in self.regions)
        patience_s = max(rules.start_within_s, slowest_s + 2 * self.every_s)
        return replace(rules, most=rules.most or self.workers, start_within_s=patience_s)

    def place(self, plant: Plant, levels: TwoLevels) -> None:
        """Tell the plant in which regions its replicas and sources sit now."""
        if not self.delayed:
            return
        numbers = {one.name: number for number, one in enumerate(self.regions)}
        sits = {worker.name: numbers[worker.region] for worker in levels.ledger.workers}
        regions = {
            (seat.operator, seat.replica): sits[worker] for worker in sits for seat in levels.ledger.hosted(worker)
        }
        delays = np.array([one.delay_s for one in self.regions])
        delay_s = delays[:, np.newaxis] + delays
        np.fill_diagonal(delay_s, 0.0)
        plant.place(regions, delay_s)

    def spent(self, levels: TwoLevels) -> Mapping[str, Spent]:
        """What the workers of each region came to."""
        assert isinstance(levels.workers, SimulatedWorkers)
        return levels.workers.spent()
