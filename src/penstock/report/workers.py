"""The workers over time, as frames: the same for a run on Spark and a simulated one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from penstock.infra.worker import WorkerState
from penstock.metrics.rows import ManagerRow, PauseRow, WorkerRow
from penstock.report.run import RunReport
from penstock.report.series import group_size, rows_frame, thinned
from penstock.simulator.result import SimulationResult

STATES = tuple(
    state.value for state in (WorkerState.AVAILABLE, WorkerState.DRAINING, WorkerState.JOINING, WorkerState.STARTING)
)
WORDS = ("proposed", "granted", "refused", "done", "cancelled", "lost")

Row = TypeVar("Row", ManagerRow, PauseRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersSeries:
    """What was seen of the workers at the end of each interval, and holds until the end of the next."""

    levels: pd.DataFrame  # workers by state, and the slots `offered` by those that are available and `used` on any
    worker_seconds: float
    pauses: Sequence[PauseRow] = ()
    said: Sequence[ManagerRow] = ()
    counts: Mapping[tuple[str, str], int]  # by manager and word, over the whole run

    @property
    def workers(self) -> pd.Series:
        """All of them, whatever their state."""
        return self.levels[list(STATES)].sum(axis=1)

    @property
    def words(self) -> list[str]:
        """What managers said, in the order in which it is said of one thing."""
        return sorted({word for _, word in self.counts}, key=lambda word: (*WORDS, word).index(word))

    @property
    def once(self) -> list[tuple[ManagerRow, int]]:
        """What managers said, the same words once, where they first came, and how often they did."""
        found: dict[tuple[str, str, str, str], tuple[ManagerRow, int]] = {}
        for row in self.said:
            key = row.who, row.word, row.subject, row.reason
            first, times = found.get(key, (row, 0))
            found[key] = first, times + 1
        return list(found.values())

    def mean(self, values: pd.Series) -> float:
        """The mean over time."""
        length_s = self.levels.end_s - self.levels.start_s
        return float((values * length_s).sum() / length_s.sum()) if length_s.sum() > 0 else math.nan


def workers_of(report: RunReport) -> WorkersSeries | None:
    """Of a run; None where it had no workers."""
    ends_s, start_s = report.ends_s(), report.start_s
    rows = rows_frame(WorkerRow, report.workers)
    rows = rows[rows.number.isin(ends_s)]
    if rows.empty:
        return None
    levels = pd.crosstab(rows.number, rows.state).reindex(columns=STATES, fill_value=0)
    levels["offered"] = rows.capacity.where(rows.state == WorkerState.AVAILABLE, 0).groupby(rows.number).sum()
    levels["used"] = rows.hosted.groupby(rows.number).sum()
    levels = _held([ends_s[number] for number in levels.index], report.run.td_s, levels)
    counted = float((levels[list(STATES)].sum(axis=1) * (levels.end_s - levels.start_s)).sum())
    said = report.figure("workers", "worker_seconds")
    return WorkersSeries(
        levels=levels,
        worker_seconds=counted if said is None else said,
        pauses=[_since(row, start_s) for row in report.pauses],
        said=[_since(row, start_s) for row in report.managers],
        counts=Counter((row.who, row.word) for row in report.managers),
    )


def simulated_workers(result: SimulationResult) -> WorkersSeries | None:
    """Of a simulation; few points, however long it was."""
    history, seen = result.history, result.history.levels
    if seen is None or not history.times_s:
        return None
    levels = pd.DataFrame({**seen.by_state, "offered": seen.offered, "used": seen.used})
    return WorkersSeries(
        levels=thinned(_held(history.times_s, history.lengths_s[-1], levels), group_size(len(levels))),
        worker_seconds=result.worker_seconds or 0.0,
        said=seen.said,
        counts=seen.counts,
    )


def _held(times_s: Sequence[float], last_s: float, values: pd.DataFrame) -> pd.DataFrame:
    """The values from each of these times to the next; the last for so long."""
    edges_s = np.maximum.accumulate([*times_s, times_s[-1] + last_s])
    return values.reset_index(drop=True).assign(start_s=edges_s[:-1], end_s=edges_s[1:])


def _since(row: Row, start_s: float) -> Row:
    return replace(row, time_s=row.time_s - start_s)
