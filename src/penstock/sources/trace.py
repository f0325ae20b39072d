"""A source that replays payloads at the rates of a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import InputError
from penstock.sources.numbered import NumberedSource
from penstock.workload import Trace


class TraceSource(NumberedSource):
    """Event n is due when the trace's cumulated rate reaches n; its payload is taken from the list in turn.

    Scale and compress the trace itself (`trace.scaled(mean_rate=200).compressed(60)`).
    """

    def __init__(self, trace: Trace, payloads: Sequence[Any], *, events: int | None = None) -> None:
        if not payloads:
            raise InputError(f"trace source {trace.name!r}: needs at least one payload; got none")
        self.trace = trace
        self._payloads = payloads
        self.total = round(trace.events) if events is None else min(events, round(trace.events))

    def due(self, elapsed_s: float) -> int:
        """Events due by then."""
        if elapsed_s < 0 or not self.total:
            return 0
        if elapsed_s >= self.trace.duration_s:
            return self.total
        reached = math.floor(float(self.trace.cumulated(elapsed_s)))
        nearby = np.arange(max(reached - 1, 0), reached + 2)  # the next one may be due only after a silence
        due = int(nearby[0]) + int((self.trace.time_of(nearby) <= elapsed_s).sum())
        return min(due, self.total)

    def due_times(self, numbers: range) -> list[float]:
        """When each of these events is due."""
        times = self.trace.time_of(np.arange(numbers.start, numbers.stop, numbers.step))
        return [float(time) for time in times]

    def read(self, numbers: range) -> list[Any]:
        """The payloads in turn, from the start again when they are used up."""
        payloads, count = self._payloads, len(self._payloads)
        return [payloads[number % count] for number in numbers]
