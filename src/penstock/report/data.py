"""What a report is made from: a run's rows in the store and the run's own summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.metrics.paper import (
    PaperMetrics,
    mean_latency_ms,
    processed_ratio,
    saved_resources,
    throughput_degradation,
)
from penstock.metrics.rows import (
    DecisionRow,
    ForecastRow,
    IntervalRow,
    ManagerRow,
    OperatorRow,
    PauseRow,
    RunRow,
    TimetableRow,
    WorkerRow,
)
from penstock.metrics.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run. `summary` is what `penstock run --json` prints; anything in it may be missing or None.

    >>> run = RunRow(run="r1", topology="twitter", policy="psps", td_s=5, started_at="2026-01-01T00:00:00Z")
    >>> report = RunReport(run=run, summary={"events": 120, "latency_ms": {"mean": float("nan"), "p50": 3}})
    >>> report.figure("events"), report.figure("latency_ms", "mean"), report.figure("restarts")
    (120.0, None, None)
    """

    run: RunRow
    intervals: Sequence[IntervalRow] = ()
    operators: Sequence[OperatorRow] = ()
    forecasts: Sequence[ForecastRow] = ()
    decisions: Sequence[DecisionRow] = ()
    timetables: Sequence[TimetableRow] = ()
    workers: Sequence[WorkerRow] = ()
    managers: Sequence[ManagerRow] = ()
    pauses: Sequence[PauseRow] = ()
    summary: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_store(cls, store: Store, name: str | None, summary: Mapping[str, object] | None = None) -> RunReport:
        """All that the store has of the run of that name, or of the last."""
        run = store.run(name)
        run_id = run.run
        return cls(
            run=run,
            intervals=store.intervals(run_id),
            operators=store.operators(run_id),
            forecasts=store.forecasts(run_id),
            decisions=store.decisions(run_id),
            timetables=store.timetables(run_id),
            workers=store.workers(run_id),
            managers=store.managers(run_id),
            pauses=store.pauses(run_id),
            summary=summary or {},
        )

    @property
    def changes(self) -> list[DecisionRow]:
        """The decisions that changed something."""
        return [decision for decision in self.decisions if decision.before != decision.after]

    @property
    def timed(self) -> list[IntervalRow]:
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

    def figure(self, *path: str) -> float | None:
        """A number of the summary; None where it is missing, no number or not finite."""
        value: object = self.summary
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return finite(value)

    def duration_s(self) -> float | None:
        """How long the run took: as the summary says, or up to the last interval."""
        said = self.figure("duration_s")
        return max(self.ends_s().values(), default=None) if said is None else said

    def metrics(self) -> PaperMetrics:
        """The four metrics: as the summary says, or from the intervals where it is silent; NaN where neither can."""
        entered = [row.entered for row in self.intervals]
        left = [row.source_output for row in self.intervals]
        r_over = self.figure("r_over")
        counts = [row.latency_count if row.latency_mean_ms is not None else 0 for row in self.intervals]
        means = [row.latency_mean_ms or 0.0 for row in self.intervals]
        replicas = [row.replicas for row in self.intervals]
        return PaperMetrics(
            _first(self.figure("saved_resources"), saved_resources(replicas, r_over) if r_over else math.nan),
            _first(self.figure("throughput_degradation"), throughput_degradation(entered, left)),
            _first(self.figure("processed_ratio"), processed_ratio(math.fsum(left), sum(entered))),
            _first(self.figure("latency_ms", "mean"), mean_latency_ms(counts, means)),
        )


def finite(value: object) -> float | None:
    """A value as a number; None if it is none, or not finite.

    >>> finite(3), finite(float("inf")), finite("3"), finite(None), finite(True)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _first(said: float | None, counted: float) -> float:
    return counted if said is None else said
