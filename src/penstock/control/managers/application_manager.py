"""E2DF's Application Manager: gives slots on workers to the replicas that a policy proposes, or refuses them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.common.checks import whole
from penstock.control.execute import choose_replicas
from penstock.control.managers.diary import Diary, Entry
from penstock.control.managers.ledger import Refused, Seat, SlotLedger
from penstock.control.managers.token_bucket import TokenBucket
from penstock.forecast.base import Forecast
from penstock.infra.worker import Worker
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Policy, SizesWorkers, Target, inside, share_slots

# Which inactive replica of an operator could be activated on a worker; None where there is none.
Site = Callable[[str, str, Collection[int], int], int | None]
Where = Callable[[str, int], str | None]  # the worker that a replica of an operator sits on, active or not


def anywhere(operator: str, worker: str, active: Collection[int], pool: int) -> int | None:  # noqa: ARG001
    """Where a replica can be put on any worker: the lowest number that is not active.

    >>> anywhere("split", "w1", {0, 2}, pool=4), anywhere("split", "w1", {0, 1}, pool=2)
    (1, None)
    """
    return next((replica for replica in range(pool) if replica not in active), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRules:
    """What an application allows. By default only slots limit it, as in the paper.

    `second_choice`: a replica whose worker was just taken by another operator gets the next best one; the paper
    refuses it. With a `target_ms`, replicas are added only while the mean latency is above it.
    """

    first_workers: int = 5  # R_init
    second_choice: bool = True
    target_ms: float | None = None
    most_replicas: int | None = None  # the budget
    keep: frozenset[str] = frozenset()  # operators that are never moved to free a worker

    def __post_init__(self) -> None:
        whole("application manager", "first_workers", self.first_workers)


class ApplicationManager:
    """A policy around a policy: what that proposes is carried out as far as there are slots and the rules allow it.

    New replicas go to the least used worker. A plan says which replicas are active, and its reasons what was refused.
    Who comes first gets the slots; only under a policy that sizes workers as well they are shared by need, where there
    are not enough.

    Nardelli et al., "A multi-level elasticity framework for distributed data stream processing", 2019 (E2DF), §4.2.
    """

    def __init__(
        self,
        name: str,
        policy: Policy,
        ledger: SlotLedger,
        *,
        rules: ApplicationRules | None = None,
        site: Site = anywhere,
        where: Where | None = None,
        bucket: TokenBucket | None = None,
        diary: Diary | None = None,
    ) -> None:
        self.name = name
        self.policy = policy  # by this name, so that `inside` finds what is wrapped
        self.rules = rules or ApplicationRules()
        self.diary = diary or Diary()
        self._ledger = ledger
        self._site = site
        self._where = where
        self._bucket = bucket
        self._leaving: set[str] = set()  # workers that are to be freed
        self._busy: dict[Seat, float] = {}

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan, as far as it is granted, and moves away from workers that are to be freed."""
        self._look(snapshot)
        proposed = self.policy.plan(snapshot, forecast)
        round_ = _Round(snapshot, self._free(), {}, sum(load.replicas for load in snapshot.operators.values()))
        foresees = any(isinstance(one, SizesWorkers) for one in inside(self.policy))
        wanted = self._by_need(proposed.targets, snapshot) if foresees else proposed.targets
        loads = snapshot.operators
        fewer = {
            name: self._answer(name, one, round_) for name, one in wanted.items() if one.replicas < loads[name].replicas
        }
        targets = {name: fewer.get(name) or self._answer(name, one, round_) for name, one in wanted.items()}
        return replace(proposed, targets=targets)

    def _by_need(self, targets: Mapping[str, Target], snapshot: Snapshot) -> dict[str, Target]:
        """The targets, cut where there are not enough slots; on incomplete numbers nobody is made smaller for it."""
        open_, loads = {one.name for one in self._open()}, snapshot.operators
        mine = sum(self._ledger.worker_of(seat) in open_ for seat in self._ledger.seats_of(self.name))
        slots = mine + sum(self._ledger.free(name) for name in open_)
        wanted = {name: one.replicas for name, one in targets.items()}
        if sum(wanted.values()) <= slots:
            return dict(targets)
        floor = {name: min(n, loads[name].replicas) if snapshot.incomplete else 1 for name, n in wanted.items()}
        given = share_slots(wanted, floor, slots)
        why = f"{slots} slots on {len(open_)} workers are shared by need, {sum(wanted.values())} were wanted"
        return {
            name: one if given[name] == one.replicas else one.limited(given[name], why) for name, one in targets.items()
        }

    def used(self, worker: Worker) -> float:
        """U_n, as far as this application uses the worker: busy shares of what it hosts, by its capacity."""
        return sum(self._busy.get(seat, 0.0) for seat in self._ledger.hosted(worker.name)) / worker.capacity

    def asked_to_free(self, worker: str) -> str | None:
        """The Infrastructure Manager would like to stop this worker: None if that is granted, or why not."""
        mine = [seat for seat in self._ledger.hosted(worker) if seat.application == self.name]
        fixed = sorted({seat.operator for seat in mine} & self.rules.keep)
        if fixed:
            return f"{', '.join(fixed)} of {self.name} must not be moved"
        self._leaving.add(worker)
        return None

    def no_longer_asked(self, worker: str) -> None:
        """The worker stays, or is gone."""
        self._leaving.discard(worker)

    def _look(self, snapshot: Snapshot) -> None:
        """Seats for what runs without one, in balance; those of replicas that do not run are free again."""
        running = {
            Seat(self.name, name, replica) for name, load in snapshot.operators.items() for replica in load.active
        }
        for seat in self._ledger.seats_of(self.name):
            if seat not in running:
                self._ledger.leave(seat)
        for seat in sorted(running):
            self._seat(seat)
        self._busy = {
            Seat(self.name, name, replica): share
            for name, load in snapshot.operators.items()
            for replica, share in load.busy_share.items()
        }

    def _seat(self, seat: Seat) -> None:
        """Where it sits, if that is known: without a slot there, it is moved. Otherwise the ledger says where it is."""
        if self._where is None:
            if self._ledger.worker_of(seat) is None:
                self._place(seat)
            return
        worker = self._where(seat.operator, seat.replica)
        if worker is not None and worker != self._ledger.worker_of(seat):
            self._ledger.leave(seat)
            with suppress(Refused):
                self._ledger.take(seat, worker)

    def _place(self, seat: Seat) -> None:
        """Balanced by number over the first workers; over all where these are full."""
        for workers in (self._open()[: self.rules.first_workers], self._open()):
            free = [worker for worker in workers if self._ledger.free(worker.name) > 0]
            if free:
                self._ledger.take(seat, min(free, key=lambda one: len(self._ledger.hosted(one.name))).name)
                return

    def _open(self) -> list[Worker]:
        """The workers that may be used."""
        return [one for one in self._ledger.workers if one.available and one.name not in self._leaving]

    def _free(self) -> list[str]:
        """The workers with a free slot, the least used first."""
        free = [one for one in self._open() if self._ledger.free(one.name) > 0]
        free.sort(key=lambda one: (self.used(one), len(self._ledger.hosted(one.name))))
        return [one.name for one in free]

    def _answer(self, operator: str, target: Target, round_: _Round) -> Target:
        load = round_.snapshot.operators[operator]
        active, said = set(load.active), [target.reason]
        more = target.replicas - load.replicas
        if more < 0:
            kept = target.which or choose_replicas(load.active, target.replicas, load.pool)
            for replica in active - set(kept):
                self._ledger.leave(Seat(self.name, operator, replica))
            round_.total -= len(active) - len(kept)
            active = set(kept)
        for _ in range(more):
            refusal = self._add(load, active, round_)
            if refusal:
                said.append(f"refused: {refusal}")
                break
        said += self._moved(load, active)
        return Target(len(active), "; ".join(said), target.expected, tuple(sorted(active)))

    def _add(self, load: OperatorLoad, active: set[int], round_: _Round) -> str | None:
        """One more replica; why not, if it is refused."""
        refusal = self._forbidden(round_) or self._just_taken(round_) or self._take_slot(load, active, round_.taken)
        self._write(round_.snapshot.time_s, "refused" if refusal else "granted", f"replica of {load.name}", refusal)
        if not refusal:
            round_.total += 1
        return refusal

    def _forbidden(self, round_: _Round) -> str | None:
        latency_ms, target_ms = round_.snapshot.latency.mean_ms, self.rules.target_ms
        if target_ms is not None and latency_ms <= target_ms:
            return f"latency is {latency_ms:.4g} ms, within the target of {target_ms:g} ms"
        if self.rules.most_replicas is not None and round_.total >= self.rules.most_replicas:
            return f"the budget is {self.rules.most_replicas} replicas"
        if self._bucket is not None and not self._bucket.take(round_.snapshot.time_s):
            return f"no more than {self._bucket.rate:g} changes a second"
        return None

    def _just_taken(self, round_: _Round) -> str | None:
        """All want the worker that was least used before; without a second choice, only the first gets it."""
        best = round_.free[0] if round_.free else None
        if self.rules.second_choice or best is None or best not in round_.taken:
            return None
        return f"worker '{best}' was just taken by {round_.taken[best]}"

    def _take_slot(self, load: OperatorLoad, active: set[int], taken: dict[str, str]) -> str | None:
        free = self._free()
        if not free:
            return f"no free slot on {len(self._open())} workers"
        for worker in sorted(free, key=lambda name: name in taken):
            replica = self._site(load.name, worker, active, load.pool)
            if replica is not None:
                self._ledger.take(Seat(self.name, load.name, replica), worker)
                taken[worker] = load.name
                active.add(replica)
                return None
        return f"no inactive replica of {load.name} on a worker with a free slot"

    def _moved(self, load: OperatorLoad, active: set[int]) -> list[str]:
        """Move what sits on workers that are to be freed: another replica is activated in its stead."""
        said = []
        for replica in sorted(active):
            seat = Seat(self.name, load.name, replica)
            worker = self._ledger.worker_of(seat)
            homeless = worker is None and self._where is not None
            if (homeless or worker in self._leaving) and self._take_slot(load, active, {}) is None:
                self._ledger.leave(seat)
                active.discard(replica)
                why = "its worker has no slot for it" if homeless else f"worker '{worker}' is to be stopped"
                said.append(f"replica {replica} moves, as {why}")
        return said

    def _write(self, time_s: float, word: str, subject: str, reason: str | None) -> None:
        self.diary.write(Entry(time_s, f"application {self.name}", word, subject, reason or "there is a free slot"))


@dataclass(slots=True)
class _Round:
    """One round of answers: what was seen, which workers had free slots, who just took which, and all replicas."""

    snapshot: Snapshot
    free: list[str]
    taken: dict[str, str]
    total: int


def used_by_worker(workers: Collection[Worker], applications: Collection[ApplicationManager]) -> Mapping[str, float]:
    """U_n of every worker over all applications."""
    return {worker.name: sum(one.used(worker) for one in applications) for worker in workers}
