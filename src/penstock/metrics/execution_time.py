"""The execution time of each operator: benchmarked on the first events, then kept current."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.errors import InputError
from penstock.metrics.graph import Floats, Ints
from penstock.metrics.snapshot import Snapshot

HALF_LIFE_S = 10.0


class ExecutionTimes:
    """A moving estimate of every operator's execution time, weighted by events.

        et = S / N     S ← d·S + busy time     N ← d·N + processed     d = 2^(−length / half_life)

    The first intervals are the benchmark (a plain mean); later ones fade with a half-life in seconds, of intervals in
    which the operator processed something: short intervals are no noisier than long ones. A declared time counts as
    `declared_events` events, so that a run can start with it and measurements soon outweigh it. An interval without
    events, or with a time that is no positive number, changes nothing.

    >>> times = ExecutionTimes(half_life_s=1)
    >>> times.learn("clean", busy_s=1.0, processed=100), times.learn("clean", busy_s=2.0, processed=100)
    (0.01, 0.016666666666666666)
    >>> times.learn("clean", busy_s=float("nan"), processed=3), times.learn("store", 0.0, 0)
    (0.016666666666666666, None)

    The paper benchmarks et once, at the start (Wladdimiro et al., SBAC-PAD 2022, §IV).
    """

    def __init__(
        self,
        declared_s: Mapping[str, float] | None = None,
        *,
        half_life_s: float = HALF_LIFE_S,
        declared_events: float = 10.0,
    ) -> None:
        if not half_life_s > 0:
            raise InputError(f"execution time: half_life_s must be above 0; got {half_life_s}")
        self.half_life_s = half_life_s
        self.declared_events = declared_events
        declared = declared_s or {}
        for operator, time_s in declared.items():
            if not 0 < time_s < math.inf:
                raise InputError(f"operator '{operator}': execution time must be above 0 s; got {time_s}")
        self._place = {operator: place for place, operator in enumerate(declared)}
        sums = [(time_s * declared_events, declared_events) for time_s in declared.values()]
        self._sums: Floats = np.array(sums, np.float64).reshape(-1, 2).T.copy()  # S and N
        self._asked: tuple[Sequence[str], Ints] = ((), np.zeros(0, np.int64))

    def learn(self, operator: str, busy_s: float, processed: float, length_s: float = 1.0) -> float | None:
        """Take in one interval of this length and return the estimate; None as long as there is none."""
        if 0 < busy_s < math.inf and 0 < processed < math.inf:
            fade, (place,) = 2 ** (-max(0.0, length_s) / self.half_life_s), self._places((operator,))
            self._sums[:, place] = fade * self._sums[:, place] + (busy_s, processed)
        return self.estimate_s(operator)

    def learn_all(
        self, operators: Sequence[str], measured_s: Floats, processed: Floats, length_s: float
    ) -> list[float | None]:
        """Take in one interval of many operators, with NaN where nothing is to be learnt, and return all estimates.

        >>> measured_s, processed = np.array([0.01, np.nan]), np.array([100.0, 7.0])
        >>> ExecutionTimes({"store": 0.5}).learn_all(("clean", "store"), measured_s, processed, 1.0)
        [0.01, 0.5]
        """
        fade, places = 2 ** (-max(0.0, length_s) / self.half_life_s), self._places(operators)
        sums, busy_s = self._sums[:, places], measured_s * processed
        learnt = (busy_s > 0) & (busy_s < math.inf)
        sums = np.where(learnt, fade * sums + (busy_s, processed), sums)
        self._sums[:, places] = sums
        return [time_sum / events if events else None for time_sum, events in zip(*sums.tolist(), strict=True)]

    def _places(self, operators: Sequence[str]) -> Ints:
        """Where the sums of these operators are; they are often asked for together."""
        if operators is not self._asked[0]:
            for name in operators:
                self._place.setdefault(name, len(self._place))
            more = len(self._place) - self._sums.shape[1]
            self._sums = np.concatenate((self._sums, np.zeros((2, more))), axis=1)
            self._asked = operators, np.array([self._place[name] for name in operators], np.int64)
        return self._asked[1]

    def estimate_s(self, operator: str) -> float | None:
        """The estimate now; None as long as nothing was declared or measured."""
        if operator not in self._place:
            return None
        time_sum, events = self._sums[:, self._place[operator]].tolist()
        return time_sum / events if events else None

    def update(self, snapshot: Snapshot) -> Snapshot:
        """Learn from a snapshot's complete operators and return it with the estimates in place."""
        loads = {}
        for name, load in snapshot.operators.items():
            measured_s = None if name in snapshot.incomplete else load.execution_time_s
            estimate_s = self.learn(name, (measured_s or 0.0) * load.processed, load.processed, snapshot.interval_s)
            loads[name] = replace(load, execution_time_s=estimate_s)
        return replace(snapshot, operators=loads)
