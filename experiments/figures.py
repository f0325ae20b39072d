"""The figures that a simulation comes to, as the papers take them, and means of them over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.policy.planning.timetable import Prices
from penstock.report.text import count, decimal, percent
from penstock.simulator.history import History
from penstock.simulator.result import SimulationResult

SETTLED_S = 120.0  # E2DF leaves out the latencies of two minutes after a change


@dataclass(frozen=True)
class Metric:
    """One of the figures, and how it is shown."""

    title: str
    digits: int = 4

    def shown(self, value: object) -> str:
        """A value as the page has it.

        >>> METRICS["saved"].shown(0.56171), METRICS["late"].shown(0.07), METRICS["changes"].shown(12.0)
        ('0.5617', '7.0 %', '12')
        """
        if self.digits < 0:
            return percent(value)
        return decimal(value, self.digits) if self.digits else count(_rounded(value))


METRICS = {
    "saved": Metric("saved resources"),
    "degradation": Metric("throughput degradation"),
    "processed": Metric("processed"),
    "latency_ms": Metric("latency, ms", 0),
    "settled_ms": Metric("latency 2 min after a change, ms", 1),
    "late": Metric("dephased", -1),
    "replicas": Metric("replicas, mean", 1),
    "workers_saved": Metric("workers saved"),
    "changes": Metric("changes", 0),
    "cost": Metric("cost W", 0),
}
FOUR = ("saved", "degradation", "processed", "latency_ms")


@dataclass(frozen=True)
class Measured:
    """A figure over several seeds: the mean, and the standard deviation as its spread."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean; NaN where a seed has none.

        >>> Measured((1.0, 3.0)).mean, round(Measured((1.0, 3.0)).spread, 3)
        (2.0, 1.414)
        """
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def spread(self) -> float:
        """The standard deviation; 0 with one seed."""
        known = len(self.values) > 1 and all(map(math.isfinite, self.values))
        return statistics.stdev(self.values) if known else 0.0


def figures_of(result: SimulationResult, input_s: float, r_over: int | None) -> dict[str, float]:
    """All figures of one simulation; `input_s` is the length of the input.

    What was processed, and how long it took, is looked at when the input ends, as the papers end their runs; what is
    still queued then counts as not processed. All else is over the intervals with input.
    """
    history = result.history
    rows = [row for row, time_s in enumerate(history.times_s) if time_s - history.lengths_s[row] < input_s]
    left = [history.left[row] for row in rows]
    replicas = statistics.fmean(sum(history.replicas[row]) for row in rows)
    return {
        "saved": result.saved_resources if r_over is None else 1 - replicas / r_over,
        "degradation": result.throughput_degradation,
        "processed": sum(left) / result.events if result.events else math.nan,
        "latency_ms": 1000 * _weighted(left, [history.latency_s[row] for row in rows]),
        "settled_ms": 1000 * _settled(history, rows),
        "late": result.late_ratio,
        "replicas": replicas,
        **({} if result.workers_saved is None else {"workers_saved": result.workers_saved}),
        "changes": float(result.reconfigurations),
        "cost": sum(cost(counts) for counts in zip(*(history.replicas[row] for row in rows), strict=True)),
        "r_over": float(r_over or result.r_over),
        "events": float(result.events),
        "dropped": float(sum(result.dropped.values())),
    }


def cost(replicas: Sequence[int]) -> float:
    """What the replicas of one operator cost, at the prices of BGElasor's figure 4; the first are there already.

    >>> cost([1, 3, 2])
    63200.0
    """
    return Prices().cost(replicas, start=replicas[0])


def measured(runs: Sequence[Mapping[str, float]]) -> dict[str, Measured]:
    """Each figure over all seeds."""
    return {name: Measured(tuple(run[name] for run in runs)) for name in runs[0]} if runs else {}


def _settled(history: History, rows: Sequence[int]) -> float:
    """Mean latency of the intervals that begin so long after the last change."""
    changed_s, kept = -math.inf, []
    for row in rows:
        start_s = history.times_s[row] - history.lengths_s[row]
        if row and history.replicas[row] != history.replicas[row - 1]:
            changed_s = start_s
        if start_s - changed_s >= SETTLED_S:
            kept.append(row)
    return _weighted([history.left[row] for row in kept], [history.latency_s[row] for row in kept])


def _weighted(counts: Sequence[int], means: Sequence[float]) -> float:
    pairs = [(many, mean) for many, mean in zip(counts, means, strict=True) if many]
    events = sum(many for many, _ in pairs)
    return math.fsum(many * mean for many, mean in pairs) / events if events else math.nan


def _rounded(value: object) -> object:
    return round(value) if isinstance(value, float) and math.isfinite(value) else value
