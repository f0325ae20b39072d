"""What happened in each interval of a simulation, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.simulator.arrays import Floats
from penstock.simulator.plant import Plant


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
        self.workers: list[int] = []  # empty where none are modelled
        self.changes = 0
        self._seen = (plant.now_s, plant.events, plant.out, plant.latency_total_s)

    def add(self, plant: Plant, replicas: Mapping[str, int], changes: int, workers: int | None = None) -> None:
        """Take down the interval that just ended, in which these replicas were active."""
        if workers is not None:
            self.workers.append(workers)
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
    def total_replicas(self) -> Floats:
        """Active replicas of all operators."""
        return np.asarray(np.array(self.replicas, np.float64).reshape(-1, len(self.operators)).sum(axis=1))
