"""What both of E2DF's control systems show of themselves after each interval: workers, words and pauses."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.control.managers.diary import Entry
from penstock.control.managers.two_levels import TwoLevels
from penstock.control.ports import Paused
from penstock.infra.worker import Worker, WorkerState
from penstock.metrics.rows import LevelRows, ManagerRow, PauseRow, WorkerRow


class LevelsView:
    """Looks at the ledger, the diary and the pauses; what was said before the last look does not come again.

    `pauses` is a list that grows while the run goes on; a simulation has none.
    """

    def __init__(self, levels: TwoLevels, pauses: Sequence[Paused] = ()) -> None:
        self._levels = levels
        self._pauses = pauses
        self._entries_seen = 0
        self._pauses_seen = 0

    def look(self, number: int, time_s: float) -> LevelRows:
        """The workers now, and what is new since the last look, as rows of this interval."""
        workers = tuple(self._worker(one, number, time_s) for one in self._levels.ledger.workers)
        said = self._levels.diary.since(self._entries_seen)
        self._entries_seen = self._levels.diary.written
        pauses = tuple(self._pauses[self._pauses_seen :])
        self._pauses_seen += len(pauses)
        return LevelRows(
            workers,
            tuple(manager_row(place, entry) for place, entry in said),
            tuple(PauseRow(time_s=one.time_s, why=one.why, seconds=one.seconds) for one in pauses),
        )

    def _worker(self, worker: Worker, number: int, time_s: float) -> WorkerRow:
        starts = worker.state in (WorkerState.STARTING, WorkerState.JOINING)
        used = None if starts else self._levels.application.used(worker)
        return worker_row(worker, number, time_s, len(self._levels.ledger.hosted(worker.name)), used)


def worker_row(worker: Worker, number: int, time_s: float, hosted: int, utilisation: float | None) -> WorkerRow:
    """A worker at the end of an interval, for the store."""
    return WorkerRow(
        number=number,
        time_s=time_s,
        worker=worker.name,
        region=worker.region,
        state=worker.state.value,
        capacity=worker.capacity,
        hosted=hosted,
        utilisation=utilisation,
        price=worker.price,
    )


def manager_row(place: int, entry: Entry) -> ManagerRow:
    """One word of a manager, for the store."""
    return ManagerRow(
        sequence=place,
        time_s=entry.time_s,
        who=entry.manager,
        word=entry.word,
        subject=entry.subject,
        reason=entry.reason,
    )
