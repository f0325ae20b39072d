"""The executors of a session under the Region and Infrastructure Managers: asked for, let go, and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.attached.model.need import UNKNOWN_JOIN_S, Bounds, ByNeed
from penstock.attached.options import Application
from penstock.control.managers.diary import Diary
from penstock.control.managers.infrastructure_manager import NAME, InfrastructureManager, InfrastructureRules
from penstock.control.managers.joining import JoiningTime
from penstock.control.managers.ledger import SlotLedger
from penstock.control.managers.levels_view import manager_row, worker_row
from penstock.infra.executor_workers import REGION, ExecutorPort, ExecutorWorkers
from penstock.infra.worker import Worker, WorkerState
from penstock.metrics.rows import LevelRows, WorkerRow

COMES_WITHIN_S = 120.0  # else it is given up for a while


class KeptExecutors:
    """Has as many executors as the wanted slots need.

    `order` puts executors into the order in which they may leave. One that leaves finishes what it runs first.
    """

    def __init__(
        self,
        executors: ExecutorPort,
        bounds: Bounds,
        slots_each: int,
        *,
        wanted: Callable[[], int],
        order: Callable[[Sequence[str]], Sequence[str]],
    ) -> None:
        self.workers = ExecutorWorkers(executors, slots_each)
        self.joining = JoiningTime(UNKNOWN_JOIN_S)
        self.diary = Diary()
        self._wanted = wanted
        self._order = order
        self._said = 0
        region = ByNeed(REGION, bounds, wanted, self._leaving)
        rules = InfrastructureRules(most=bounds.most, start_within_s=COMES_WITHIN_S)
        self._managers = InfrastructureManager(self.workers, SlotLedger(), [region], [], rules, self.diary)

    @property
    def changes(self) -> int:
        """Executors that were asked for, or let go."""
        return self.diary.count(NAME, "granted")

    def step(self, now_s: float) -> None:
        """Let the managers work."""
        self._managers.step(now_s)
        self.joining.look(now_s, self.workers.list())

    def look(self, number: int, time_s: float) -> LevelRows:
        """The executors, and what managers said since the last look, as rows of the store."""
        said = self.diary.since(self._said)
        self._said = self.diary.written
        rows = _rows(self.workers.list(), self._wanted(), number, time_s)
        return LevelRows(rows, tuple(manager_row(place, entry) for place, entry in said))

    def _leaving(self, names: Sequence[str]) -> Sequence[str]:
        named = {executor: name for name in names for executor in self.workers.executors(name)}
        return [named[one] for one in self._order(list(named))]


class SeenExecutors:
    """The executors of a session that nobody changes here, for the store: how many there were, and what they cost."""

    def __init__(self, application: Application, wanted: Callable[[], int]) -> None:
        self._application = application
        self._wanted = wanted

    def look(self, number: int, time_s: float) -> LevelRows:
        """The executors as rows of the store."""
        there = self._application.ids()
        each = max(1, self._application.slots() // max(1, len(there)))
        workers = [
            Worker(name=f"executor-{one}", region=REGION, capacity=each, state=WorkerState.AVAILABLE) for one in there
        ]
        return LevelRows(_rows(workers, self._wanted(), number, time_s))


def _rows(workers: Sequence[Worker], wanted: int, number: int, time_s: float) -> tuple[WorkerRow, ...]:
    """The wanted slots lie on the first that have room."""
    rows = []
    for one in workers:
        hosted = min(wanted, one.capacity) if one.available else 0
        wanted -= hosted
        rows.append(worker_row(one, number, time_s, hosted, hosted / one.capacity if one.available else None))
    return tuple(rows)
