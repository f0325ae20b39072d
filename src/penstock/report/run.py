"""What a run left: its rows in the store, its own summary, and the papers' figures to set beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.metrics import rows
from penstock.metrics.paper import (
    PaperMetrics,
    mean_latency_ms,
    processed_ratio,
    saved_resources,
    throughput_degradation,
)
from penstock.metrics.store import Store
from penstock.report.text import finite

SOURCE = "Wladdimiro et al., SBAC-PAD 2022 and COMPAS 2023"
TABLES = ("intervals", "operators", "forecasts", "decisions", "timetables", "workers", "managers", "pauses")
PUBLISHED = {
    "twitter": PaperMetrics(0.5617, 0.1831, 0.9987, 2098.91),
    "complex": PaperMetrics(0.745, 0.0911, 0.9970, 219.0),
    "dns": PaperMetrics(0.6062, 0.3734, 0.9884, 336.0),
}
"""What PSPS reached in the papers, by the name of the topology: 11 virtual machines, the paper's trace, td 30 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run. `summary` is what `penstock run --json` prints; anything in it may be missing or None.

    >>> run = rows.RunRow(run="r1", topology="twitter", policy="psps", td_s=5, started_at="2026-01-01T00:00:00Z")
    >>> report = RunReport(run=run, summary={"events": 120, "latency_ms": {"mean": float("nan"), "p50": 3}})
    >>> report.figure("events"), report.figure("latency_ms", "mean"), report.figure("restarts")
    (120.0, None, None)
    """

    run: rows.RunRow
    intervals: Sequence[rows.IntervalRow] = ()
    operators: Sequence[rows.OperatorRow] = ()
    forecasts: Sequence[rows.ForecastRow] = ()
    decisions: Sequence[rows.DecisionRow] = ()
    timetables: Sequence[rows.TimetableRow] = ()
    workers: Sequence[rows.WorkerRow] = ()
    managers: Sequence[rows.ManagerRow] = ()
    pauses: Sequence[rows.PauseRow] = ()
    summary: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_store(cls, store: Store, name: str | None, summary: Mapping[str, object] | None = None) -> RunReport:
        """All that the store has of the run of that name, or of the last."""
        run = store.run(name)
        return cls(run=run, **{table: getattr(store, table)(run.run) for table in TABLES}, summary=summary or {})

    @property
    def changes(self) -> list[rows.DecisionRow]:
        """The decisions that changed something."""
        return [decision for decision in self.decisions if decision.before != decision.after]

    @property
    def timed(self) -> list[rows.IntervalRow]:
        """The intervals that can be placed in time."""
        return [row for row in self.intervals if math.isfinite(row.time_s - row.interval_s)]

    @property
    def start_s(self) -> float:
        """When the first interval began, by the run's clock."""
        timed = self.timed
        return timed[0].time_s - timed[0].interval_s if timed else 0.0

    def ends_s(self) -> dict[int, float]:
        """When each interval ended, since the start of the first, by its number."""
        start_s = self.start_s
        return {row.number: row.time_s - start_s for row in self.timed}

    def said(self, *path: str) -> object:
        """What the summary says under these keys; None where it is silent."""
        value: object = self.summary
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def figure(self, *path: str) -> float | None:
        """A number of the summary; None where it is missing, no number or not finite."""
        return finite(self.said(*path))

    def duration_s(self) -> float | None:
        """How long the run took: as the summary says, or up to the last interval."""
        said = self.figure("duration_s")
        return max(self.ends_s().values(), default=None) if said is None else said

    def metrics(self) -> PaperMetrics:
        """The four metrics: as the summary says, or from the intervals where it is silent; NaN where neither can."""
        seen, r_over = self.intervals, self.figure("r_over")
        entered, left = [row.entered for row in seen], [row.source_output for row in seen]
        counts = [row.latency_count if row.latency_mean_ms is not None else 0 for row in seen]
        latency_ms = mean_latency_ms(counts, [row.latency_mean_ms or 0.0 for row in seen])
        saved = saved_resources([row.replicas for row in seen], r_over) if r_over else math.nan
        return PaperMetrics(
            _first(self.figure("saved_resources"), saved),
            _first(self.figure("throughput_degradation"), throughput_degradation(entered, left)),
            _first(self.figure("processed_ratio"), processed_ratio(math.fsum(left), sum(entered))),
            _first(self.figure("latency_ms", "mean"), latency_ms),
        )


def _first(said: float | None, counted: float) -> float:
    return counted if said is None else said
