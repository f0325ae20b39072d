"""A run over time, as frames: a row for each stretch of time from `start_s` to `end_s`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd

from penstock.metrics.rows import ForecastRow, IntervalRow, OperatorRow, TimetableRow
from penstock.report.palette import GREY, operator_style
from penstock.report.run import RunReport

MOST_POINTS = 600
MOST_OPERATORS = 12  # apart in a plot
MOST_PLANNED = 8
_HORIZONS = 5  # that a close-up is wide
_LEAST = 20  # intervals, of a close-up


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """A run over time, in seconds since its start; rates are per second."""

    intervals: pd.DataFrame  # by number: input_rate, throughput, replicas, and of latency mean, p50 and p99
    operators: Mapping[str, pd.DataFrame]  # replicas, pool and backlog: by number, a column for each operator
    forecast: pd.Series  # of the input rate, by when the interval that it was made for ends
    r_over: float | None
    scale_out_s: Sequence[float]
    scale_in_s: Sequence[float]

    @property
    def end_s(self) -> float:
        """When the last interval ended."""
        return float(self.intervals.end_s.max()) if len(self.intervals) else 0.0

    def style(self, operator: str) -> dict[str, Any]:
        """The operator's colour and dashes, the same in every plot; grey for several together."""
        names = list(self.operators["replicas"])
        return operator_style(names.index(operator)) if operator in names else {"color": GREY, "linestyle": "-"}


def run_series(report: RunReport) -> RunSeries:
    """All series of a run."""
    ends_s = report.ends_s()
    rows = rows_frame(IntervalRow, report.timed).set_index("number")
    length_s = rows.interval_s.clip(lower=1e-9)
    intervals = {
        "start_s": [0.0, *ends_s.values()][: len(rows)],
        "end_s": list(ends_s.values()),
        "input_rate": rows.entered / length_s,
        "throughput": rows.source_output / length_s,
        "replicas": rows.replicas,
        **{name: rows[f"latency_{name}_ms"] for name in ("mean", "p50", "p99")},
    }
    changed = {True: set[float](), False: set[float]()}
    for row in report.changes:
        if row.number in ends_s:
            changed[row.after > row.before].add(ends_s[row.number])
    return RunSeries(
        intervals=pd.DataFrame(intervals, index=rows.index).astype(float).replace([np.inf, -np.inf], np.nan),
        operators=_by_operator(report.operators, rows.index),
        forecast=_forecast(report, ends_s),
        r_over=report.figure("r_over"),
        scale_out_s=sorted(changed[True]),
        scale_in_s=sorted(changed[False]),
    )


def operators_in_order(rows: Iterable[OperatorRow]) -> list[str]:
    """The operators' names, predecessors first, as far as who received from whom tells."""
    senders: dict[str, set[str]] = {}
    for row in rows:
        senders.setdefault(row.operator, set()).update(row.received_by)
    known = {name: sorted(found & senders.keys() - {name}) for name, found in sorted(senders.items())}
    try:
        return list(TopologicalSorter(known).static_order())
    except CycleError:
        return list(known)


def largest(operators: Mapping[str, pd.DataFrame], by: str) -> dict[str, pd.DataFrame]:
    """All operators, in their order; of very many, the largest alone and the others together."""
    sizes = operators[by].sum()
    if len(sizes) <= MOST_OPERATORS:
        return dict(operators)
    alone = sizes.index.isin(sizes.nlargest(MOST_OPERATORS - 1).index)
    others = f"{(~alone).sum()} other operators"
    return {
        what: values.loc[:, alone].assign(**{others: values.loc[:, ~alone].sum(axis=1)})
        for what, values in operators.items()
    }


def _by_operator(rows: Sequence[OperatorRow], intervals: pd.Index) -> dict[str, pd.DataFrame]:
    found, names = rows_frame(OperatorRow, rows), operators_in_order(rows)
    return {
        what: found.pivot(index="number", columns="operator", values=what)
        .reindex(intervals, columns=names)
        .astype(float)
        for what in ("replicas", "pool", "backlog")
    }


def _forecast(report: RunReport, ends_s: Mapping[int, float]) -> pd.Series:
    """What was expected to enter in the next interval, at the time when that ends; summed over the sources."""
    rows = rows_frame(ForecastRow, report.forecasts)
    operators = {row.operator for row in report.operators}
    of_sources = (rows.step == 1) & ~rows.series.isin(operators) & rows.number.isin(ends_s)
    rows = rows[of_sources & np.isfinite(rows.rate.astype(float))]
    due_s = (rows.number + 1).map(ends_s).fillna(rows.number.map(ends_s) + report.run.td_s)
    return rows.rate.groupby(due_s.astype(float)).sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetables:
    """What was planned ahead: `plans` has a row for each step of each, by operator and the interval at whose end."""

    operators: Sequence[str]  # that are shown
    plans: pd.DataFrame  # operator, number, step, replicas, start_s and end_s
    planned: int  # operators
    longest: int  # steps
    window: tuple[int, int] | None  # intervals, by place, in which most changed; None where all fit into one plot

    def plan(self, operator: str, number: int) -> pd.DataFrame:
        """One plan, step by step."""
        return self.plans[(self.plans.operator == operator) & (self.plans.number == number)]

    def bounds(self, operator: str, intervals: pd.Index) -> pd.DataFrame:
        """The `min` and `max` that plans had for each interval; NaN where no plan reached it."""
        steps = self.plans[self.plans.operator == operator]
        return steps.replicas.groupby(steps.number + steps.step).agg(["min", "max"]).reindex(intervals)


def timetables_of(report: RunReport, series: RunSeries) -> Timetables:
    """The run's timetables, of the operators with most replicas where there are very many."""
    ends_s, active = series.intervals.end_s, series.operators["replicas"]
    rows = rows_frame(TimetableRow, report.timetables)
    planned = rows.operator.nunique()
    shown = active.loc[:, active.columns.isin(rows.operator)].sum().nlargest(MOST_PLANNED).index
    rows = rows[rows.operator.isin(shown) & rows.number.isin(ends_s.index)].sort_values(["number", "operator", "step"])
    made_s = rows.number.map(ends_s)
    longest = max((row.step for row in report.timetables), default=0)

    def after_s(steps: pd.Series) -> pd.Series:  # where the run ended before, intervals go on with td
        return (rows.number + steps).map(ends_s).fillna(made_s + steps * report.run.td_s)

    return Timetables(
        operators=[name for name in active if name in shown],
        plans=rows.assign(start_s=after_s(rows.step - 1), end_s=after_s(rows.step)),
        planned=planned,
        longest=longest,
        window=_busiest(active[shown], max(_LEAST, _HORIZONS * longest)),
    )


def _busiest(active: pd.DataFrame, width: int) -> tuple[int, int] | None:
    if len(active) < 2 * width:
        return None
    moved = active.fillna(0).diff().abs().sum(axis=1)
    last = int(np.nanargmax(moved.rolling(width).sum())) + 1
    return last - width, last


def group_size(rows: int, most: int = MOST_POINTS) -> int:
    """How many rows make one point, so that there are not too many points.

    >>> group_size(0), group_size(600), group_size(17569)
    (1, 1, 30)
    """
    return max(1, math.ceil(rows / most))


def thinned(rows: pd.DataFrame, size: int, greatest: Sequence[str] = ()) -> pd.DataFrame:
    """Every `size` rows as one: means over time, and of some columns the greatest.

    >>> rows = pd.DataFrame({"start_s": [0, 1, 4], "end_s": [1, 4, 5], "replicas": [1, 3, 5], "backlog": [9, 0, 2]})
    >>> thinned(rows, 2, greatest=["backlog"]).to_dict("list")
    {'start_s': [0, 4], 'end_s': [4, 5], 'replicas': [2.5, 5.0], 'backlog': [9, 2]}
    """
    if size == 1:
        return rows
    length_s = (rows.end_s - rows.start_s).clip(lower=1e-12)
    means = rows.columns.difference(["start_s", "end_s", *greatest])
    group = np.arange(len(rows)) // size
    kinds = {"start_s": "first", "end_s": "last", **dict.fromkeys(means, "sum"), **dict.fromkeys(greatest, "max")}
    found = rows.assign(**rows[means].mul(length_s, axis=0)).groupby(group).agg(kinds)[list(rows.columns)]
    found[means] = found[means].div(length_s.groupby(group).sum(), axis=0)
    return found


def rows_frame(kind: type, rows: Iterable[object]) -> pd.DataFrame:
    """Rows of the store, a column for each of their fields."""
    names = [one.name for one in dataclasses.fields(kind)]
    return pd.DataFrame([[getattr(row, name) for name in names] for row in rows], columns=names)
