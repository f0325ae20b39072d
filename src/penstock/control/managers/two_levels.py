"""Both of E2DF's control systems around one application: replicas on workers, and the workers themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.control.managers.application_manager import ApplicationManager, ApplicationRules, Site, Where, anywhere
from penstock.control.managers.diary import Diary
from penstock.control.managers.infrastructure_manager import InfrastructureManager, InfrastructureRules
from penstock.control.managers.joining import USUAL_S, JoiningTime
from penstock.control.managers.ledger import Seat, SlotLedger
from penstock.control.managers.region_manager import Ahead, RegionManager, RegionRules
from penstock.control.managers.token_bucket import TokenBucket
from penstock.errors import InputError
from penstock.infra.worker import Workers, WorkerState
from penstock.policy.base import Policy, SizesWorkers, Supply, inside
from penstock.policy.parts.window import Largest


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRules:
    """What both systems go by; the defaults are the paper's: C_r = R_init = 5, U_low = 0.1, every 60 s.

    `elastic`: whether workers come and go; otherwise those that are there stay.
    """

    elastic: bool = True
    every_s: float = 60.0  # of the infrastructure; the application's loop has its own interval
    application: ApplicationRules = field(default_factory=ApplicationRules)
    region: RegionRules = field(default_factory=RegionRules)
    infrastructure: InfrastructureRules = field(default_factory=InfrastructureRules)

    def __post_init__(self) -> None:
        if not 0 < self.every_s < math.inf:
            raise InputError(f"infrastructure: every_s must be above 0; got {self.every_s}")


class TwoLevels:
    """The application's manager is the policy of the control loop; `step` runs the infrastructure's when it is due.

    A policy that sizes workers as well is asked in every step how many slots there should be, and the spare capacity
    follows from that; otherwise it is a constant, looked at every so many seconds.

    Sources take a slot each, for ever; they move when their worker is to go, so that it can.
    """

    def __init__(
        self,
        name: str,
        policy: Policy,
        workers: Workers,
        rules: LevelRules | None = None,
        *,
        sources: Sequence[str] = (),
        site: Site = anywhere,
        where: Where | None = None,
        bucket: TokenBucket | None = None,
    ) -> None:
        self.rules = rules or LevelRules()
        self.diary = Diary()
        self.ledger = SlotLedger()
        self.workers = workers
        self._sources = [Seat(f"{name} (source)", source, 0) for source in sources]
        self.application = ApplicationManager(
            name,
            policy,
            self.ledger,
            rules=self.rules.application,
            site=site,
            where=where,
            bucket=bucket,
            diary=self.diary,
        )
        regions = [RegionManager(region, self.rules.region) for region in workers.sizes()]
        self._infrastructure = InfrastructureManager(
            workers, self.ledger, regions, [self.application], self.rules.infrastructure, self.diary
        )
        self._due_s = -math.inf
        self._joining = JoiningTime()
        self._wanted = Largest(USUAL_S)
        self._first_s: float | None = None  # when slots were wanted first
        self._look()

    def step(self, now_s: float) -> None:
        """Let the infrastructure's managers work, if it is time."""
        self._look()
        ahead = self._slots_ahead(now_s) if self.rules.elastic else None
        if self.rules.elastic and (ahead is not None or now_s >= self._due_s):
            self._infrastructure.step(now_s, ahead)
            self._due_s = now_s + self.rules.every_s
        self._look()
        self._joining.look(now_s, self.ledger.workers)

    def _slots_ahead(self, now_s: float) -> Ahead | None:
        """What the policy wants to have, if it says so; none goes that it has wanted while one joins."""
        foresees = next((one for one in inside(self.application.policy) if isinstance(one, SizesWorkers)), None)
        if foresees is None:
            return None
        sizes = [size for several in self.workers.sizes().values() for size in several]
        supply = Supply(
            slots=min(sizes, key=lambda size: (size.price / size.capacity, size.capacity)).capacity,
            joining_s=self._joining.longest_s,
            seats=len(self._sources),
            most=self.rules.infrastructure.most,
            spare=self.rules.region.spare,
            workers=sum(worker.state is not WorkerState.DRAINING for worker in self.ledger.workers),
        )
        found = foresees.slots_ahead(supply)
        if found is None:
            return None
        slots, why = found
        slots = slots if supply.most is None else min(slots, supply.most * supply.slots)  # more would be refused
        self._wanted.length_s = supply.joining_s
        if self._first_s is None:  # nobody knows yet that what a run begins with is not needed
            self._first_s = now_s
            self._wanted.add(now_s, sum(worker.capacity for worker in self.ledger.workers))
        return Ahead(slots, self._wanted.add(now_s, slots), why)

    def _look(self) -> None:
        """The workers as they are; sources sit on the first that have room, and leave those that are to go."""
        self.ledger.update(self.workers.list())
        for seat in self._sources:
            self._seat(seat)

    def _seat(self, seat: Seat) -> None:
        """A slot on an available worker, in the region where it is if there is one; the next shift's source uses it."""
        name = self.ledger.worker_of(seat)
        here = next((one for one in self.ledger.workers if one.name == name), None)
        if here is not None and here.available:
            return
        free = [one for one in self.ledger.workers if one.available and self.ledger.free(one.name) > 0]
        if free:
            near = [one for one in free if here is not None and one.region == here.region]
            self.ledger.take(seat, (near or free)[0].name)
