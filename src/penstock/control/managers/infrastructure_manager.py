"""E2DF's Infrastructure Manager: grants what the regions propose, and frees a worker before it is stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.common.checks import whole
from penstock.control.managers.application_manager import ApplicationManager, used_by_worker
from penstock.control.managers.diary import Diary, Entry
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.region_manager import NO_SPARE, Ahead, Proposes, Spare, Wish, WorkerProposal
from penstock.errors import InputError, PenstockError
from penstock.infra.worker import Workers, WorkerSize, WorkerState

NAME = "infrastructure"


@dataclass(frozen=True, slots=True, kw_only=True)
class InfrastructureRules:
    """How many workers there may be, how long freeing and starting one may take, and how long to wait after a failure.

    The wait doubles with every failure in a row.
    """

    most: int | None = None
    free_within_s: float = 120.0
    start_within_s: float = 60.0
    wait_s: float = 30.0
    longest_wait_s: float = 600.0

    def __post_init__(self) -> None:
        if self.most is not None:
            whole("infrastructure manager", "most", self.most)
        for name in ("free_within_s", "start_within_s", "wait_s", "longest_wait_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"infrastructure manager: {name} must be above 0; got {getattr(self, name)}")


class InfrastructureManager:
    """Every step: what came of the last orders, then the regions' proposals, granted or refused.

    A worker that hosts replicas is first taken out of what applications may use, and they are asked to move away; if
    one denies that, or it is not done in time, the worker is available again, and others are asked first for a while. A
    worker that does not come up in time is given up. Cheaper regions are served first where not all can be.

    Nardelli et al., "A multi-level elasticity framework for distributed data stream processing", 2019 (E2DF), §4.1.
    """

    def __init__(
        self,
        workers: Workers,
        ledger: SlotLedger,
        regions: Sequence[Proposes],
        applications: Sequence[ApplicationManager],
        rules: InfrastructureRules | None = None,
        diary: Diary | None = None,
    ) -> None:
        self.rules = rules or InfrastructureRules()
        self.diary = diary or Diary()
        self._workers = workers
        self._ledger = ledger
        self._regions = regions
        self._applications = applications
        self._freeing: dict[str, float] = {}  # since when
        self._spared: dict[str, float] = {}  # until when: they could not be freed
        self._starting: dict[str, float] = {}
        self._stopping: dict[str, tuple[float, str]] = {}  # since when, and why
        self._failures = 0
        self._not_before_s = float("-inf")

    def step(self, now_s: float, ahead: Ahead | None = None) -> None:
        """One round of the infrastructure's loop; with slots that are wanted `ahead`, for these."""
        self._look(now_s)
        self._follow_starts(now_s)
        self._follow_stops(now_s)
        self._follow_frees(now_s)
        used = used_by_worker(self._ledger.workers, self._applications)
        sizes = self._workers.sizes()
        spare = self._spare(ahead, sizes)
        proposals = [
            one
            for region in self._regions
            for one in region.propose(self._ledger, used, sizes[region.region], self._spared, spare.get(region.region))
        ]
        for proposal in sorted(proposals, key=_price_of_a_slot):
            self._write(now_s, f"region {proposal.region}", "proposed", str(proposal), proposal.reason)
            self._answer(proposal, now_s)
        self._ledger.update(self._workers.list())

    def _spare(self, ahead: Ahead | None, sizes: Mapping[str, Sequence[WorkerSize]]) -> dict[str, Spare]:
        """Of slots that are wanted ahead the cheapest region keeps all that are free, the others none."""
        if ahead is None:
            return {}
        cheapest = min(sizes, key=lambda region: min(one.price / one.capacity for one in sizes[region]))
        staying = [worker for worker in self._ledger.workers if worker.state is not WorkerState.DRAINING]
        taken = sum(len(self._ledger.hosted(worker.name)) for worker in staying)
        return {region: ahead.beyond(taken) if region == cheapest else NO_SPARE for region in sizes}

    def _look(self, now_s: float) -> None:
        self._spared = {name: until_s for name, until_s in self._spared.items() if until_s > now_s}
        for seat in self._ledger.update(self._workers.list()):
            self._write(
                now_s, NAME, "lost", f"{seat.operator} {seat.replica} of {seat.application}", "its worker is gone"
            )

    def _follow_starts(self, now_s: float) -> None:
        states = {worker.name: worker.state for worker in self._ledger.workers}
        for name, since_s in list(self._starting.items()):
            in_time = now_s - since_s < self.rules.start_within_s
            if states.get(name) is WorkerState.JOINING or (states.get(name) is WorkerState.STARTING and in_time):
                continue
            del self._starting[name]
            if states.get(name) is WorkerState.AVAILABLE:
                self._failures = 0
                self._write(now_s, NAME, "done", f"start {name}", f"available after {now_s - since_s:.4g} s")
            else:
                self._give_up(name, now_s, present=name in states)

    def _give_up(self, name: str, now_s: float, *, present: bool) -> None:
        if present:
            self._workers.remove(name)
        wait_s = min(self.rules.wait_s * 2**self._failures, self.rules.longest_wait_s)
        self._failures += 1
        self._not_before_s = now_s + wait_s
        reason = f"it did not come up within {self.rules.start_within_s:g} s; none is started for {wait_s:g} s"
        self._write(now_s, NAME, "cancelled", f"start {name}", reason)
        self._ledger.update(self._workers.list())

    def _follow_frees(self, now_s: float) -> None:
        there = {worker.name for worker in self._ledger.workers}
        for name, since_s in list(self._freeing.items()):
            hosted = self._ledger.hosted(name) if name in there else ()
            if hosted and now_s - since_s < self.rules.free_within_s:
                continue
            del self._freeing[name]
            for application in self._applications:
                application.no_longer_asked(name)
            if hosted:
                self._workers.restore(name)
                self._spared[name] = now_s + self.rules.free_within_s
                reason = f"{len(hosted)} replicas were still there after {self.rules.free_within_s:g} s"
                self._write(now_s, NAME, "cancelled", f"free {name}", reason)
            elif name in there:
                self._stop(name, now_s, "it has been freed")
        self._ledger.update(self._workers.list())

    def _answer(self, proposal: WorkerProposal, now_s: float) -> None:
        refusal = self._refusal(proposal, now_s)
        if refusal:
            self._write(now_s, NAME, "refused", str(proposal), refusal)
            return
        self._write(now_s, NAME, "granted", str(proposal), proposal.reason)
        if proposal.wish is Wish.START:
            assert proposal.size is not None
            self._starting[self._workers.add(proposal.region, proposal.size)] = now_s
        elif proposal.wish is Wish.STOP:
            self._stop(str(proposal.worker), now_s, proposal.reason)
        else:
            self._workers.drain(str(proposal.worker))
            self._freeing[str(proposal.worker)] = now_s

    def _stop(self, name: str, now_s: float, reason: str) -> None:
        """Stop a worker that hosts nothing; one that cannot be stopped now is available again."""
        try:
            self._workers.remove(name)
        except PenstockError as error:
            self._workers.restore(name)
            self._write(now_s, NAME, "cancelled", f"stop {name}", str(error))
        else:
            self._stopping[name] = (now_s, reason)
            self._follow_stops(now_s)

    def _follow_stops(self, now_s: float) -> None:
        """A worker may have to finish something first; it is draining until it is gone."""
        states = {worker.name: worker.state for worker in self._workers.list()}
        for name, (since_s, reason) in list(self._stopping.items()):
            if states.get(name) is WorkerState.DRAINING:
                continue
            del self._stopping[name]
            if name in states:
                self._spared[name] = now_s + self.rules.free_within_s
                self._write(now_s, NAME, "cancelled", f"stop {name}", "it is at work again")
            else:
                took = f", after {now_s - since_s:.4g} s" if now_s > since_s else ""
                self._write(now_s, NAME, "done", f"stop {name}", f"{reason}{took}")

    def _refusal(self, proposal: WorkerProposal, now_s: float) -> str | None:
        if proposal.wish is Wish.START:
            if now_s < self._not_before_s:
                return f"waits for another {self._not_before_s - now_s:.4g} s, as the last start failed"
            if self.rules.most is not None and len(self._workers.list()) >= self.rules.most:
                return f"{self.rules.most} workers are the most"
        elif now_s < self._spared.get(str(proposal.worker), now_s):
            left_s = self._spared[str(proposal.worker)] - now_s
            return f"it could not be freed; not tried again for another {left_s:.4g} s"
        elif proposal.wish is Wish.FREE:
            return self._denied(str(proposal.worker), now_s)
        return None

    def _denied(self, worker: str, now_s: float) -> str | None:
        """Why an application does not want the worker to be freed; None if all agree."""
        denials = [application.asked_to_free(worker) for application in self._applications]
        said = "; ".join(denial for denial in denials if denial)
        if said:
            self._spared[worker] = now_s + self.rules.free_within_s
            for application in self._applications:
                application.no_longer_asked(worker)
        return said or None

    def _write(self, now_s: float, who: str, word: str, subject: str, reason: str) -> None:
        self.diary.write(Entry(now_s, who, word, subject, reason))


def _price_of_a_slot(proposal: WorkerProposal) -> tuple[int, float]:
    """What ends goes first, then the cheapest to start."""
    if proposal.size is None:
        return 0, 0.0
    return 1, proposal.size.price / proposal.size.capacity
