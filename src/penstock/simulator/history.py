"""What happened in each interval of a simulation, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.metrics.rows import LevelRows
from penstock.simulator.arrays import Floats
from penstock.simulator.plant import Plant
from penstock.simulator.worker_history import WorkerHistory


class History:
    """One row an interval from now on: a few numbers each, so that months of traffic fit into memory."""

    def __init__(self, operators: Sequence[str], plant: Plant) -> None:
        self.operators = tuple(operators)
        self.times_s: list[float] = []
        self.lengths_s: list[float] = []
        self.entered: list[int] = []
        self.left: list[int] = []
        self.backlog: list[int] = []
        self.latency_s: list[float] = []  # mean of the events that left, NaN where none did
        self.replicas: list[tuple[int, ...]] = []  # by operator
        self.levels: WorkerHistory | None = None  # where workers are modelled
        self.changes = 0
        self._seen = (plant.now_s, plant.events, plant.out, plant.latency_total_s)

    def add(self, plant: Plant, replicas: Mapping[str, int], changes: int, levels: LevelRows | None = None) -> None:
        """Take down the interval that just ended, in which these replicas were active."""
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
        self.changes += changes

    @property
    def workers(self) -> list[int]:
        """Workers at the end of each interval; empty where none are modelled."""
        return self.levels.workers if self.levels else []

    @property
    def total_replicas(self) -> Floats:
        """Active replicas of all operators."""
        return np.asarray(np.array(self.replicas, np.float64).reshape(-1, len(self.operators)).sum(axis=1))
