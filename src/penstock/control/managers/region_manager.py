"""E2DF's Region Manager: keeps spare capacity in its region, and looks for workers that could go."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class Spare:
    """Slots to keep free: fewer are too few, and workers beyond `most` of them may go; and why."""

    least: int
    most: int
    low: float  # the use up to which a worker should go
    reason: str


NO_SPARE = Spare(0, 0, 1.0, "no slot is wanted here")


@dataclass(frozen=True, slots=True)
class Ahead:
    """Slots that are wanted by the time a worker has joined, those that were while one joins, and why."""

    slots: int
    lately: int
    reason: str

    def beyond(self, taken: int) -> Spare:
        """What of it is to be kept free where so many slots are taken; any worker may go that is not wanted."""
        return Spare(max(0, self.slots - taken), max(0, self.lately - taken), 1.0, self.reason)


class Proposes(Protocol):
    """Whoever looks after a region's workers."""

    @property
    def region(self) -> str:
        """Its region."""

    def propose(
        self,
        ledger: SlotLedger,
        used: Mapping[str, float],
        sizes: Sequence[WorkerSize],
        spared: Collection[str] = (),
        spare: Spare | None = None,
    ) -> tuple[WorkerProposal, ...]:
        """What should change, by the workers and their use now."""


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
        spare: Spare | None = None,
    ) -> tuple[WorkerProposal, ...]:
        """What should change, by the workers and their use now; those that could not be freed go last.

        The spare capacity is the rules', unless another one is given.
        """
        wanted = spare or Spare(self.rules.spare, self.rules.spare, self.rules.low, "")
        workers = [one for one in ledger.workers if one.region == self.region and one.state != WorkerState.DRAINING]
        free = sum(ledger.free(one.name) for one in workers)
        missing = wanted.least - free
        few = self.rules.least - len(workers)
        if missing > 0 or few > 0:
            return self._starts(missing, few, sizes, wanted)

        def order(one: Worker) -> tuple[int, float, int, int]:
            hosted = len(ledger.hosted(one.name))
            rank = 0 if not hosted else 2 if one.name in spared else 1
            return rank, -one.price, -one.capacity, hosted

        return self._ends(sorted(workers, key=order), ledger, used, wanted)

    def _starts(self, missing: int, few: int, sizes: Sequence[WorkerSize], wanted: Spare) -> tuple[WorkerProposal, ...]:
        smallest = min(sizes, key=lambda size: (size.capacity, size.price))
        count = max(math.ceil(missing / smallest.capacity), few)
        reason = (
            f"{wanted.least - missing} slots are free, {wanted.least} should be{_because(wanted)}"
            if missing > 0
            else f"{self.rules.least} workers are the fewest"
        )
        one = WorkerProposal(wish=Wish.START, region=self.region, size=smallest, reason=reason)
        return (one,) * count

    def _ends(
        self, workers: Sequence[Worker], ledger: SlotLedger, used: Mapping[str, float], wanted: Spare
    ) -> tuple[WorkerProposal, ...]:
        proposals = []
        left, spare = len(workers), sum(ledger.free(one.name) for one in workers)
        for worker in workers:
            hosted, busy = len(ledger.hosted(worker.name)), used.get(worker.name, 0.0)
            idle = worker.available and (hosted == 0 or busy <= wanted.low)
            if not idle or spare - worker.capacity < wanted.most or left <= self.rules.least:
                continue
            spare, left = spare - worker.capacity, left - 1
            beyond = f"{spare} slots stay free without it{_because(wanted)}"
            reason = f"it is empty, and {beyond}" if hosted == 0 else f"it is used {busy:.3g}, and {beyond}"
            wish = Wish.FREE if hosted else Wish.STOP
            proposals.append(WorkerProposal(wish=wish, region=self.region, worker=worker.name, reason=reason))
        return tuple(proposals)


def _because(wanted: Spare) -> str:
    return f", {wanted.reason}" if wanted.reason else ""
