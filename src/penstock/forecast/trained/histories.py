"""Series to train on: from CSV files, or from the store of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from penstock.common.checks import whole
from penstock.errors import InputError
from penstock.forecast.base import Rates
from penstock.forecast.evaluation.series import rows_per_day
from penstock.forecast.trained.job import History
from penstock.metrics.rows import IntervalRow, OperatorRow, RunRow
from penstock.metrics.store import Store
from penstock.workload import load_trace


def histories_of(sources: Sequence[str], run: str | None = None, day: int | None = None) -> list[History]:
    """The series of all sources; `run` names one in a store, the last by default, and `day` the rows of a day."""
    if day is not None:
        whole("training", "day", day)
    if run is not None and all(map(_is_csv, sources)):
        raise InputError(f"--run is for a store; there is none among {', '.join(sources)}")
    found: dict[str, tuple[str, History]] = {}
    for source in sources:
        for history in [_from_csv(source, day)] if _is_csv(source) else _from_store(source, run, day):
            if history.series in found:
                other = found[history.series][0]
                raise InputError(f"series '{history.series}': must come from one source; is in {other} and {source}")
            found[history.series] = source, history
    return [history for _, history in found.values()]


def _is_csv(source: str) -> bool:
    return source.lower().endswith((".csv", ".csv.gz")) and "://" not in source


def _from_csv(source: str, day: int | None) -> History:
    trace = load_trace(source)
    rates, step_s = trace.measured, trace.step_s
    return History(series=trace.name, rates=rates, interval_s=step_s, day=day or rows_per_day(step_s))


def _from_store(source: str, name: str | None, day: int | None) -> list[History]:
    if "://" not in source and not Path(source).is_file():
        raise InputError(f"source '{source}': must be a CSV file, a store's file or its URL; there is no such file")
    store = Store(source, must_exist=True)
    try:
        run = store.run(name)
        return run_histories(run, store.intervals(run.run), store.operators(run.run), day)
    finally:
        store.close()


def run_histories(
    run: RunRow, intervals: Sequence[IntervalRow], operators: Sequence[OperatorRow], day: int | None = None
) -> list[History]:
    """Every source's input rate and every operator's received rate; what is incomplete or not there is missing."""
    if not intervals:
        raise InputError(f"run '{run.run}': must have intervals to learn from; has none")
    speedup = run.settings.get("speedup")
    rows_a_day = day or rows_per_day(run.td_s * (speedup if isinstance(speedup, int | float) else 1.0))
    length_s = {row.number: row.interval_s for row in intervals if row.interval_s > 0}
    numbers = range(intervals[0].number, intervals[-1].number + 1)
    return [
        History(
            series=series,
            rates=_rates(counts, length_s, numbers),
            interval_s=run.td_s,
            day=rows_a_day,
            run=run.run,
            interval=numbers[-1],
        )
        for series, counts in _counts(intervals, operators).items()
    ]


def _counts(intervals: Sequence[IntervalRow], operators: Sequence[OperatorRow]) -> dict[str, dict[int, int]]:
    """Events by series and by the interval's number, where they can be trusted."""
    counts: dict[str, dict[int, int]] = {}
    for interval in intervals:
        for source, count in interval.source_input.items():
            counts.setdefault(source, {})[interval.number] = count
    for row in operators:
        counts.setdefault(row.operator, {}).update({row.number: row.received} if row.incomplete is None else {})
    return counts


def _rates(counts: Mapping[int, int], length_s: Mapping[int, float], numbers: Iterable[int]) -> Rates:
    return np.array(
        [counts[number] / length_s[number] if number in counts and number in length_s else np.nan for number in numbers]
    )
