"""One ledger of slots and replicas: which worker hosts which active replica."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.errors import PenstockError
from penstock.infra.worker import Worker


class Refused(PenstockError):  # noqa: N818 - an answer, not a fault
    """What was asked for was not granted; the message says why."""


class Seat(NamedTuple):
    """An active replica of an operator of an application."""

    application: str
    operator: str
    replica: int


class SlotLedger:
    """Takes and gives back slots; never more replicas on a worker than it can host, and none twice.

    >>> ledger = SlotLedger()
    >>> ledger.update([Worker(name="w1", region="here", capacity=1)])
    ()
    >>> ledger.take(Seat("app", "split", 0), "w1")
    >>> ledger.take(Seat("other", "count", 0), "w1")
    Traceback (most recent call last):
    penstock.control.managers.ledger.Refused: worker 'w1' is full: it hosts 1 of 1, split 0 of app
    """

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}
        self._seats: dict[Seat, str] = {}

    def update(self, workers: Iterable[Worker]) -> tuple[Seat, ...]:
        """Take in the workers as they are now; the seats of those that are gone, which are free again."""
        self._workers = {worker.name: worker for worker in workers}
        lost = tuple(seat for seat, worker in self._seats.items() if worker not in self._workers)
        for seat in lost:
            del self._seats[seat]
        return lost

    def take(self, seat: Seat, worker: str) -> None:
        """Put a replica on a worker, or move it there; Refused where it cannot host it."""
        found = self._workers.get(worker)
        if found is None:
            raise Refused(f"worker '{worker}' is not there")
        if not found.available:
            raise Refused(f"worker '{worker}' is {found.state}")
        if self._seats.get(seat) != worker and self.free(worker) < 1:
            hosted = ", ".join(f"{one.operator} {one.replica} of {one.application}" for one in self.hosted(worker))
            raise Refused(f"worker '{worker}' is full: it hosts {found.capacity} of {found.capacity}, {hosted}")
        self._seats[seat] = worker

    def leave(self, seat: Seat) -> None:
        """Give the slot back."""
        self._seats.pop(seat, None)

    def worker_of(self, seat: Seat) -> str | None:
        """Where a replica sits."""
        return self._seats.get(seat)

    def seats_of(self, application: str) -> tuple[Seat, ...]:
        """The seats of one application."""
        return tuple(seat for seat in self._seats if seat.application == application)

    def hosted(self, worker: str) -> tuple[Seat, ...]:
        """What a worker hosts."""
        return tuple(seat for seat, where in self._seats.items() if where == worker)

    def free(self, worker: str) -> int:
        """C_n − A_n of one worker."""
        return self._workers[worker].capacity - len(self.hosted(worker))

    @property
    def workers(self) -> tuple[Worker, ...]:
        """All workers, the oldest first."""
        return tuple(self._workers.values())
