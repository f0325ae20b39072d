"""When source events arrive: as a trace has them, evenly or at random."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from penstock.simulator.kernels.arrays import Floats
from penstock.workload import Trace

_BLOCK = 1 << 16


class Arrivals(Protocol):
    """Arrival times in order, handed out once; what they are made of must not grow with what was handed out."""

    @property
    def end_s(self) -> float:
        """No event arrives from then on."""

    def horizon(self, count: int) -> float:
        """A time by which about `count` more will have arrived; infinite where fewer are left."""

    def pull(self, until_s: float) -> Floats:
        """The times that were not handed out yet, up to and including `until_s`."""


class Even:
    """Event n arrives when the trace's cumulated rate reaches n, exactly as a run on Spark plays the trace.

    >>> arrivals = Even(Trace("t", 1.0, [2.0, 4.0]))
    >>> arrivals.pull(1.0).tolist(), arrivals.pull(9.0).round(6).tolist()
    ([0.0, 0.5, 1.0], [1.25, 1.5, 1.75])
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._total = round(trace.events)
        self._next = 0

    @property
    def end_s(self) -> float:
        """The end of the trace."""
        return self._trace.duration_s

    def horizon(self, count: int) -> float:
        """When so many more will have arrived."""
        number = self._next + count
        return float(self._trace.time_of(number)) if number < self._total else np.inf

    def pull(self, until_s: float) -> Floats:
        """The next times."""
        due = self._total if until_s >= self.end_s else int(self._trace.cumulated(until_s)) + 2
        reached = min(due, self._total)  # of these the last may be due only after a silence
        times = self._trace.time_of(np.arange(self._next, max(reached, self._next)))
        times = times[: int(np.searchsorted(times, until_s, side="right"))]
        self._next += len(times)
        return times


class Poisson:
    """Arrivals at random with the rates of a trace: a Poisson process of rate 1, in the time of the cumulated rate."""

    def __init__(self, trace: Trace, seed: int = 0) -> None:
        self._trace = trace
        self._random = np.random.default_rng(seed)
        self._marks: Floats = np.zeros(0)  # arrivals of the process of rate 1 that were drawn and not handed out
        self._drawn = 0.0

    @property
    def end_s(self) -> float:
        """The end of the trace."""
        return self._trace.duration_s

    def horizon(self, count: int) -> float:
        """When so many more are expected to have arrived."""
        mark = (self._marks[0] if len(self._marks) else self._drawn) + count
        return float(self._trace.time_of(mark)) if mark < self._trace.events else np.inf

    def pull(self, until_s: float) -> Floats:
        """The next times."""
        limit = float(self._trace.cumulated(until_s))
        while self._drawn <= limit:
            steps = np.cumsum(self._random.exponential(size=_BLOCK)) + self._drawn
            self._drawn = float(steps[-1])
            self._marks = np.concatenate((self._marks, steps))
        count = int(np.searchsorted(self._marks, limit, side="right"))
        marks, self._marks = self._marks[:count], self._marks[count:]
        times = self._trace.time_of(marks)
        return times[times < np.inf]
