"""The workers of a run over time, ready to be drawn: the same for a run on Spark and a simulated one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from penstock.infra.worker import WorkerState
from penstock.metrics.rows import ManagerRow, PauseRow, WorkerRow
from penstock.report.arena_series import MOST_POINTS, group_size, means
from penstock.report.data import RunReport
from penstock.report.series import Array
from penstock.simulator.result import SimulationResult

Row = TypeVar("Row", ManagerRow, PauseRow)

STATES = tuple(
    state.value for state in (WorkerState.AVAILABLE, WorkerState.DRAINING, WorkerState.JOINING, WorkerState.STARTING)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersOverTime:
    """What was seen at the end of each interval, and holds until the end of the next; times since the start."""

    edges_s: Array  # one more than there are values
    by_state: Mapping[str, Array]  # workers
    offered: Array  # slots of workers that are available
    used: Array  # slots taken, on any worker
    worker_seconds: float
    pauses: tuple[PauseRow, ...] = ()
    said: tuple[ManagerRow, ...] = ()
    counts: Mapping[tuple[str, str], int]  # by manager and word, over the whole run

    @property
    def workers(self) -> Array:
        """All of them, whatever their state."""
        return np.asarray(sum(self.by_state.values()))

    @property
    def end_s(self) -> float:
        """Until when it is known."""
        return float(self.edges_s.max(initial=0.0))

    def mean(self, values: Array) -> float:
        """The mean over time."""
        lengths_s = np.diff(self.edges_s)
        return float(values @ lengths_s / lengths_s.sum()) if lengths_s.sum() > 0 else float("nan")


def workers_of(report: RunReport) -> WorkersOverTime | None:
    """Of a run; None where it had none."""
    ends_s, start_s = report.ends_s(), report.start_s
    rows: dict[int, list[WorkerRow]] = {}
    for row in report.workers:
        if row.number in ends_s:
            rows.setdefault(row.number, []).append(row)
    if not rows:
        return None
    edges_s = _edges([ends_s[number] for number in rows], report.run.td_s)
    counted = {state: [_count(found, state) for found in rows.values()] for state in STATES}
    workers, lengths_s = [len(found) for found in rows.values()], np.diff(edges_s)
    said = report.figure("workers", "worker_seconds")
    return WorkersOverTime(
        edges_s=edges_s,
        by_state={state: _array(column) for state, column in counted.items()},
        offered=_array([_offered(found) for found in rows.values()]),
        used=_array([sum(row.hosted for row in found) for found in rows.values()]),
        worker_seconds=float(_array(workers) @ lengths_s) if said is None else said,
        pauses=tuple(_since(row, start_s) for row in report.pauses),
        said=tuple(_since(row, start_s) for row in report.managers),
        counts=_counts(report.managers),
    )


def simulated_workers(result: SimulationResult) -> WorkersOverTime | None:
    """Of a simulation; few points, however long it was."""
    history, levels = result.history, result.history.levels
    if levels is None or not history.times_s:
        return None
    size = group_size(len(history.times_s), MOST_POINTS)
    edges_s = _edges(history.times_s, history.lengths_s[-1])
    lengths_s = np.diff(edges_s)

    def points(values: Sequence[int]) -> Array:
        return means(_array(values), lengths_s, size)

    return WorkersOverTime(
        edges_s=np.append(edges_s[:-1:size], edges_s[-1]),
        by_state={state: points(levels.by_state[state]) for state in STATES},
        offered=points(levels.offered),
        used=points(levels.used),
        worker_seconds=result.worker_seconds or 0.0,
        said=levels.said,
        counts=levels.counts,
    )


def _count(rows: Iterable[WorkerRow], state: str) -> int:
    return sum(row.state == state for row in rows)


def _offered(rows: Iterable[WorkerRow]) -> int:
    return sum(row.capacity for row in rows if row.state == WorkerState.AVAILABLE)


def _edges(ends_s: Sequence[float], last_s: float) -> Array:
    """From the end of each interval to the end of the next; the last has the length of an interval."""
    return np.maximum.accumulate(_array([*ends_s, ends_s[-1] + last_s]))


def _since(row: Row, start_s: float) -> Row:
    return replace(row, time_s=row.time_s - start_s)


def _counts(rows: Iterable[ManagerRow]) -> dict[tuple[str, str], int]:
    return dict(Counter((row.who, row.word) for row in rows))


def _array(values: Sequence[float]) -> Array:
    return np.array(values, dtype=np.float64)
