"""What became of the workers in a simulation: a few numbers an interval, and the last words of the managers."""

from __future__ import annotations

from collections import deque

from penstock.infra.worker import WorkerState
from penstock.metrics.rows import LevelRows, ManagerRow

MOST_WORDS = 1000


class WorkerHistory:
    """Workers by state and slots used and offered, one row an interval; months of it fit into memory."""

    def __init__(self) -> None:
        self.by_state: dict[str, list[int]] = {state.value: [] for state in WorkerState}
        self.offered: list[int] = []  # slots of workers that are available
        self.used: list[int] = []  # slots taken, on any worker
        self.counts: dict[tuple[str, str], int] = {}  # by manager and word, since the beginning
        self._said: deque[ManagerRow] = deque(maxlen=MOST_WORDS)

    def add(self, seen: LevelRows) -> None:
        """Take down an interval."""
        states = [one.state for one in seen.workers]
        for state, column in self.by_state.items():
            column.append(states.count(state))
        available = (one.capacity for one in seen.workers if one.state == WorkerState.AVAILABLE)
        self.offered.append(sum(available))
        self.used.append(sum(one.hosted for one in seen.workers))
        for row in seen.managers:
            self.counts[row.who, row.word] = self.counts.get((row.who, row.word), 0) + 1
        self._said.extend(seen.managers)

    @property
    def said(self) -> tuple[ManagerRow, ...]:
        """The last words, the oldest first."""
        return tuple(self._said)

    @property
    def workers(self) -> list[int]:
        """All workers, whatever their state."""
        return [sum(row) for row in zip(*self.by_state.values(), strict=True)]
