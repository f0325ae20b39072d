"""What happened in each interval of a simulation, as columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from penstock.infra.worker import WorkerState
from penstock.metrics.rows import LevelRows, ManagerRow
from penstock.simulator.kernels.arrays import Floats
from penstock.simulator.plant.plant import SimulatedPlant

MOST_WORDS = 1000  # of the managers


class History:
    """One row an interval from now on: a few numbers each, so that months of traffic fit into memory."""

    def __init__(self, operators: Sequence[str], plant: SimulatedPlant) -> None:
        self.operators = tuple(operators)
        self.times_s: list[float] = []
        self.lengths_s: list[float] = []
        self.entered: list[int] = []
        self.left: list[int] = []
        self.backlog: list[int] = []
        self.latency_s: list[float] = []  # mean of the events that left, NaN where none did
        self.replicas: list[tuple[int, ...]] = []  # by operator
        self.levels: WorkerHistory | None = None  # where workers are modelled
        self.changes_of = dict.fromkeys(self.operators, 0)  # changes of replicas, by operator
        self._seen = (plant.now_s, plant.events, plant.out, plant.latency_total_s)

    def add(
        self,
        plant: SimulatedPlant,
        replicas: Mapping[str, int],
        changed: Iterable[str],
        levels: LevelRows | None = None,
    ) -> None:
        """Take down the interval that just ended, in which these replicas were active; then some operators changed."""
        if levels is not None:
            self.levels = self.levels or WorkerHistory()
            self.levels.add(levels)
        time_s, entered, left, waited_s = self._seen
        self._seen = (plant.now_s, plant.events, plant.out, plant.latency_total_s)
        out = plant.out - left
        self.times_s.append(plant.now_s)
        self.lengths_s.append(plant.now_s - time_s)
        self.entered.append(plant.events - entered)
        self.left.append(out)
        self.backlog.append(plant.backlog)
        self.latency_s.append((plant.latency_total_s - waited_s) / out if out else np.nan)
        self.replicas.append(tuple(replicas[name] for name in self.operators))
        for name in changed:
            self.changes_of[name] += 1

    @property
    def changes(self) -> int:
        """Changes of replicas, of all operators."""
        return sum(self.changes_of.values())

    def changes_per_minute(self) -> dict[str, float]:
        """By operator."""
        minutes = sum(self.lengths_s) / 60
        return {name: count / minutes if minutes > 0 else 0.0 for name, count in self.changes_of.items()}

    @property
    def workers(self) -> list[int]:
        """Workers at the end of each interval; empty where none are modelled."""
        return self.levels.workers if self.levels else []

    @property
    def total_replicas(self) -> Floats:
        """Active replicas of all operators."""
        return np.asarray(np.array(self.replicas, np.float64).reshape(-1, len(self.operators)).sum(axis=1))


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
