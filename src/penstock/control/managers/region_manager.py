"""E2DF's Region Manager: keeps spare capacity in its region, and looks for workers that could go."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.common.checks import fraction, whole
from penstock.control.managers.ledger import SlotLedger
from penstock.infra.worker import Worker, WorkerSize, WorkerState


class Wish(StrEnum):
    """What a Region Manager may propose."""

    START = "start"
    STOP = "stop"  # an empty one
    FREE = "free"  # an occupied one


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProposal:
    """One worker more, or one fewer, and why."""

    wish: Wish
    region: str
    reason: str
    size: WorkerSize | None = None  # to start
    worker: str | None = None  # to stop or free

    def __str__(self) -> str:
        return f"{self.wish} {self.worker or f'a worker of {self.region}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRules:
    """The spare capacity C_r, the use U_low up to which a worker should go, and the fewest workers."""

    spare: int = 5
    low: float = 0.1
    least: int = 1

    def __post_init__(self) -> None:
        whole("region manager", "spare", self.spare, least=0)
        fraction("region manager", "low", self.low)
        whole("region manager", "least", self.least, least=0)


class RegionManager:
    """Proposes the smallest workers that restore the spare capacity, and to stop those beyond it.

        Σ (C_n − A_n) ≥ C_r        over available workers; starting ones count with all that they will have

    Empty workers beyond it go, the dearest first; then those that are used up to U_low, if what they host fits on the
    others and the spare capacity stays. So what it stops it does not have to start again at the same load.

    Nardelli et al., "A multi-level elasticity framework for distributed data stream processing", 2019 (E2DF), §4.1.
    """

    def __init__(self, region: str, rules: RegionRules | None = None) -> None:
        self.region = region
        self.rules = rules or RegionRules()

    def propose(
        self,
        ledger: SlotLedger,
        used: Mapping[str, float],
        sizes: Sequence[WorkerSize],
        spared: Collection[str] = (),
    ) -> tuple[WorkerProposal, ...]:
        """What should change, by the workers and their use now; those that could not be freed go last."""
        workers = [one for one in ledger.workers if one.region == self.region and one.state != WorkerState.DRAINING]
        spare = sum(ledger.free(one.name) for one in workers)
        missing = self.rules.spare - spare
        few = self.rules.least - len(workers)
        if missing > 0 or few > 0:
            return self._starts(missing, few, sizes)

        def order(one: Worker) -> tuple[int, float, int]:
            rank = 0 if not ledger.hosted(one.name) else 2 if one.name in spared else 1
            return rank, -one.price, -one.capacity

        return self._ends(sorted(workers, key=order), ledger, used, spare)

    def _starts(self, missing: int, few: int, sizes: Sequence[WorkerSize]) -> tuple[WorkerProposal, ...]:
        smallest = min(sizes, key=lambda size: (size.capacity, size.price))
        count = max(math.ceil(missing / smallest.capacity), few)
        reason = (
            f"{self.rules.spare - missing} slots are free, {self.rules.spare} should be"
            if missing > 0
            else f"{self.rules.least} workers are the fewest"
        )
        one = WorkerProposal(wish=Wish.START, region=self.region, size=smallest, reason=reason)
        return (one,) * count

    def _ends(
        self, workers: Sequence[Worker], ledger: SlotLedger, used: Mapping[str, float], spare: int
    ) -> tuple[WorkerProposal, ...]:
        proposals = []
        left = len(workers)
        for worker in workers:
            hosted, busy = len(ledger.hosted(worker.name)), used.get(worker.name, 0.0)
            idle = worker.available and (hosted == 0 or busy <= self.rules.low)
            if not idle or spare - worker.capacity < self.rules.spare or left <= self.rules.least:
                continue
            spare, left = spare - worker.capacity, left - 1
            beyond = f"{spare} slots stay free without it"
            reason = f"it is empty, and {beyond}" if hosted == 0 else f"it is used {busy:.3g}, and {beyond}"
            wish = Wish.FREE if hosted else Wish.STOP
            proposals.append(WorkerProposal(wish=wish, region=self.region, worker=worker.name, reason=reason))
        return tuple(proposals)
