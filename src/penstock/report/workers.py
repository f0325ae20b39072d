"""The workers over time, in frames and plots: the same for a run on Spark and a simulated one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.infra.worker import WorkerState
from penstock.metrics.rows import ManagerRow, PauseRow, WorkerRow
from penstock.report import draw
from penstock.report.draw import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILLION
from penstock.report.run import RunReport, rows_frame
from penstock.report.text import count, decimal
from penstock.simulator.result import SimulationResult

STATES = {"available": BLUE, "draining": ORANGE, "joining": GREEN, "starting": SKY}  # from the bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersSeries:
    """What was seen of the workers at the end of each interval, and holds until the end of the next."""

    levels: pd.DataFrame  # workers by state and in all, slots `offered` by those available and `used` on any
    worker_seconds: float
    pauses: Sequence[PauseRow] = ()
    said: Sequence[ManagerRow] = ()
    counts: Mapping[tuple[str, str], int]  # by manager and word, over the whole run

    @property
    def once(self) -> list[tuple[ManagerRow, int]]:
        """What managers said, the same words once, where they first came, and how often they did."""
        keys = [(row.who, row.word, row.subject, row.reason) for row in self.said]
        return [(self.said[keys.index(key)], times) for key, times in Counter(keys).items()]


def workers_of(report: RunReport) -> WorkersSeries | None:
    """Of a run; None where it had no workers."""
    end_s, rows = report.over.end_s, rows_frame(WorkerRow, report.workers)
    rows = rows[rows.number.isin(end_s.index)]
    if rows.empty:
        return None
    levels = pd.crosstab(rows.number, rows.state).reindex(columns=list(STATES), fill_value=0)
    levels["offered"] = rows.capacity.where(rows.state == WorkerState.AVAILABLE, 0).groupby(rows.number).sum()
    levels["used"] = rows.hosted.groupby(rows.number).sum()
    levels = _held(end_s[levels.index], report.run.td_s, levels)
    counted = float(levels.workers @ (levels.end_s - levels.start_s))
    return WorkersSeries(
        levels=levels,
        worker_seconds=report.figure("workers", "worker_seconds", otherwise=counted) or 0.0,
        pauses=[replace(row, time_s=row.time_s - report.start_s) for row in report.pauses],
        said=[replace(row, time_s=row.time_s - report.start_s) for row in report.managers],
        counts=Counter((row.who, row.word) for row in report.managers),
    )


def simulated_workers(result: SimulationResult) -> WorkersSeries | None:
    """Of a simulation; few points, however long it was."""
    history, seen = result.history, result.history.levels
    if seen is None or not history.times_s:
        return None
    levels = pd.DataFrame({**seen.by_state, "offered": seen.offered, "used": seen.used})
    return WorkersSeries(
        levels=draw.thinned(_held(history.times_s, history.lengths_s[-1], levels)),
        worker_seconds=result.worker_seconds or 0.0,
        said=seen.said,
        counts=seen.counts,
    )


def _held(times_s: Sequence[float], last_s: float, values: pd.DataFrame) -> pd.DataFrame:
    """The values and their sum from each of these times to the next; the last for so long."""
    edges_s = np.maximum.accumulate([*times_s, [*times_s][-1] + last_s])
    workers = values[list(STATES)].sum(axis=1)
    return values.assign(workers=workers, start_s=edges_s[:-1], end_s=edges_s[1:]).reset_index(drop=True)


@draw.plot
def workers_plot(series: Mapping[str, WorkersSeries]) -> Figure:
    """Workers by state over time, under one policy after the other; of one alone, the slots and pauses too."""
    alone, end_s = len(series) == 1, max(float(one.levels.end_s.max()) for one in series.values())
    figure, places = draw.rows([1.8, 1.8] if alone else [1.0] * len(series), 1.0)
    for axes, (name, one) in zip(places, series.items(), strict=False):
        _states(axes, one)
        mean, seconds = decimal(draw.mean(one.levels.workers, one.levels), 1), count(one.worker_seconds)
        words = "" if alone else f"{mean} workers on average, {seconds} worker-seconds"
        draw.panel(axes, "Workers" if alone else name, words)
        draw.count_axis(axes, *(other.levels.workers for other in series.values()))
    if alone:
        levels = one.levels
        draw.steps(places[1], levels.offered, levels, color=GREY, linewidth=2.8, label="offered")
        draw.steps(places[1], levels.used, levels, fill=0.18, color=BLUE, linewidth=1.5, label="used")
        draw.panel(places[1], "Slots")
        draw.count_axis(places[1], levels.offered, levels.used)
        _pauses(places, one.pauses)
        draw.legend(places[1])
    draw.legend(places[0])
    draw.time_axis(places[-1], end_s)
    return figure


def _states(axes: Axes, series: WorkersSeries) -> None:
    """Stacked, those that can be used at the bottom; states that never came are left out."""
    levels, below = series.levels, pd.Series(0.0, series.levels.index)
    for state, colour in STATES.items():
        if colour == BLUE or levels[state].any():
            draw.band(axes, below, below + levels[state], levels, color=colour, alpha=0.75, label=state)
            below = below + levels[state]
    draw.steps(axes, below, levels, color=INK, linewidth=1.0)


def _pauses(places: Sequence[Axes], pauses: Sequence[PauseRow]) -> None:
    """A band from when events stopped to when they went on, and a mark above, as the band may be thin."""
    middles_s = [one.time_s - one.seconds / 2 for one in pauses]
    for axes in places:
        for one in pauses:
            axes.axvspan(one.time_s - one.seconds, one.time_s, color=VERMILLION, alpha=0.3, linewidth=0, zorder=0.5)
        draw.marks(axes, middles_s, 0.97, marker="v", s=26, color=VERMILLION, label="sources stood still")
