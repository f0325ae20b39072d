"""What a run left: its rows in the store and its own summary, as figures and as frames over time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd

from penstock.common.checks import is_number
from penstock.metrics import paper, rows
from penstock.metrics.store import Store

TABLES = (
    "intervals",
    "operators",
    "waiting",
    "forecasts",
    "decisions",
    "timetables",
    "workers",
    "managers",
    "pauses",
    "faults",
    "scores",
    "deciders",
    "checkpoints",
)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run. `summary` is what `penstock run --json` prints; anything in it may be missing or None."""

    run: rows.RunRow
    intervals: Sequence[rows.IntervalRow] = ()
    operators: Sequence[rows.OperatorRow] = ()
    waiting: Sequence[rows.WaitingRow] = ()
    forecasts: Sequence[rows.ForecastRow] = ()
    decisions: Sequence[rows.DecisionRow] = ()
    timetables: Sequence[rows.TimetableRow] = ()
    workers: Sequence[rows.WorkerRow] = ()
    managers: Sequence[rows.ManagerRow] = ()
    pauses: Sequence[rows.PauseRow] = ()
    faults: Sequence[rows.FaultRow] = ()
    scores: Sequence[rows.ScoreRow] = ()
    deciders: Sequence[rows.DeciderRow] = ()
    checkpoints: Sequence[rows.CheckpointRow] = ()
    summary: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_store(cls, store: Store, name: str | None, summary: Mapping[str, object] | None = None) -> RunReport:
        """All that the store has of the run of that name, or of the last."""
        run = store.run(name)
        return cls(run=run, **{table: getattr(store, table)(run.run) for table in TABLES}, summary=summary or {})

    def said(self, *path: str) -> object:
        """What the summary says under these keys; None where it is silent."""
        value: object = self.summary
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def figure(self, *path: str, otherwise: float | None = None) -> float | None:
        """A number of the summary, summed where it has parts; another where it is missing, no number or not finite."""
        said = self.said(*path)
        if isinstance(said, Mapping):
            said = math.fsum(filter(is_number, said.values()))
        return float(said) if is_number(said) else otherwise

    @property
    def changes(self) -> list[rows.DecisionRow]:
        """The decisions that changed something."""
        return [decision for decision in self.decisions if decision.before != decision.after]

    @property
    def metrics(self) -> paper.PaperMetrics:
        """The four metrics: as the summary says, or from the intervals where it is silent; NaN where neither can."""
        seen, r_over = self.intervals, self.figure("r_over")
        entered, left = [row.entered for row in seen], [row.source_output for row in seen]
        counts = [row.latency_count if row.latency_mean_ms is not None else 0 for row in seen]
        counted = {
            ("saved_resources",): paper.saved_resources([row.replicas for row in seen], r_over) if r_over else math.nan,
            ("throughput_degradation",): paper.throughput_degradation(entered, left),
            ("processed_ratio",): paper.processed_ratio(math.fsum(left), sum(entered)),
            ("latency_ms", "mean"): paper.mean_latency_ms(counts, [row.latency_mean_ms or 0.0 for row in seen]),
        }
        found = (self.figure(*path, otherwise=value) for path, value in counted.items())
        return paper.PaperMetrics(*(math.nan if one is None else one for one in found))

    @property
    def start_s(self) -> float:
        """When the first interval began, by the run's clock."""
        return next(filter(math.isfinite, (row.time_s - row.interval_s for row in self.intervals)), 0.0)

    @cached_property
    def over(self) -> pd.DataFrame:
        """The intervals that can be placed in time, by number, in seconds since the start; rates are per second."""
        seen = rows_frame(rows.IntervalRow, self.intervals).astype({"number": int}).set_index("number")
        seen = seen[np.isfinite(seen[["time_s", "interval_s"]].astype(float)).all(axis=1)]
        end_s, length_s = seen.time_s.astype(float) - self.start_s, seen.interval_s.clip(lower=1e-9)
        found = pd.DataFrame(
            {
                "start_s": end_s.shift(fill_value=0.0),
                "end_s": end_s,
                "input_rate": seen.entered / length_s,
                "throughput": seen.source_output / length_s,
                "replicas": seen.replicas,
                **{name: seen[f"latency_{name}_ms"] for name in ("mean", "p50", "p99")},
            }
        )
        return found.astype(float).replace([np.inf, -np.inf], np.nan)

    @cached_property
    def by_operator(self) -> dict[str, pd.DataFrame]:
        """`replicas`, `pool` and `backlog` by interval, a column for each operator in the order of the stream."""
        found, names = rows_frame(rows.OperatorRow, self.operators), operators_in_order(self.operators)
        return {
            what: found.pivot(index="number", columns="operator", values=what)
            .reindex(self.over.index, columns=names)
            .astype(float)
            for what in ("replicas", "pool", "backlog")
        }

    @property
    def forecast(self) -> pd.Series:
        """What was expected to enter in an interval, by the time when it ends; summed over the sources."""
        found, end_s = rows_frame(rows.ForecastRow, self.forecasts), self.over.end_s
        sources = (found.step == 1) & ~found.series.isin(self.by_operator["replicas"]) & found.number.isin(end_s.index)
        found = found[sources & np.isfinite(found.rate.astype(float))]
        due_s = (found.number + 1).map(end_s).fillna(found.number.map(end_s) + self.run.td_s)
        return found.rate.groupby(due_s.astype(float)).sum()

    @property
    def planned(self) -> dict[str, pd.DataFrame]:
        """By operator that was planned ahead: the `min` and `max` that plans made before had for each interval."""
        steps = rows_frame(rows.TimetableRow, self.timetables)
        bounds = steps.replicas.groupby([steps.operator, steps.number + steps.step]).agg(["min", "max"])
        ahead = steps.operator[steps.step > 1].unique()
        return {name: bounds.loc[name].reindex(self.over.index) for name in ahead}


def operators_in_order(seen: Iterable[rows.OperatorRow]) -> list[str]:
    """The operators' names, predecessors first, as far as who received from whom tells."""
    senders: dict[str, set[str]] = {}
    for row in seen:
        senders.setdefault(row.operator, set()).update(row.received_by)
    known = {name: sorted(found & senders.keys()) for name, found in sorted(senders.items())}
    return list(TopologicalSorter(known).static_order())


def rows_frame(kind: type, seen: Iterable[object]) -> pd.DataFrame:
    """Rows of the store, a column for each of their fields."""
    names = [one.name for one in dataclasses.fields(kind)]
    return pd.DataFrame([[getattr(row, name) for name in names] for row in seen], columns=names)
