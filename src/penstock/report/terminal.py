"""What is compared, for the terminal: policies in the arena, forecasters in a backtest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from penstock.forecast.evaluation.contest import YARDSTICK, SeriesTest
from penstock.report.text import ABSENT, count, decimal, figure, milliseconds, percent
from penstock.report.verdict import verdict
from penstock.simulator.arena import ranked
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import ORACLE

WIDEST = 110
FORECASTERS = ("sMAPE %", "×best", "×last", "RMSE", "MAE", "fit CPU s", "CPU ms")
_DISPENSABLE = [
    "backlog",
    "proc.",
    "changes",
    "a min.",
    "dropped",
    "saved",
    "p99",
    "replica-s",
]  # the first to go comes first


def verdict_text(results: Sequence[SimulationResult]) -> Text:
    """The page's verdict, with the names of policies in bold."""
    return Text.assemble(*((piece, "bold" if place % 2 else "") for place, piece in enumerate(verdict(results))))


def results_table(results: Sequence[SimulationResult], width: int = WIDEST) -> Table:
    """One row a policy, the best first; columns that a narrow terminal has no room for are left out."""
    order, most = ranked(results), min(width, WIDEST)
    rows = [_cells(one) for one in order]
    columns = list(rows[0]) if rows else ["policy"]
    widths = {name: 1 + max(map(cell_len, (name, *(row[name] for row in rows)))) for name in columns}
    for name in _DISPENSABLE:
        if sum(widths.values()) > most:
            widths.pop(name, None)
    loose = sum(widths.values()) + len(widths) <= most
    table = plain_table(list(widths), padding=(0, int(loose), 0, 0))
    for one, row in zip(order, rows, strict=True):  # the name as it is, whatever rich would make of its brackets
        shown = Text(row["policy"], style="dim" if one.policy == ORACLE else "")
        table.add_row(shown, *(row[column] for column in [*widths][1:]))
    return table


def _cells(result: SimulationResult) -> dict[str, str]:
    latency = result.latency_ms or {}
    return {
        "policy": "".join(letter if letter.isprintable() else "□" for letter in result.policy),
        "ok": "✓" if result.meets_target else ABSENT,
        "replica-s": count(result.replica_seconds),
        "×oracle": decimal(result.oracle_ratio, 2),
        "×bound": decimal(result.hindsight_ratio, 2),
        "saved": percent(result.saved_resources),
        "proc.": percent(result.processed_ratio),
        "mean": milliseconds(latency.get("mean")),
        "p99": milliseconds(latency.get("p99")),
        "late": percent(result.late_ratio),
        "changes": count(result.reconfigurations),
        "a min.": decimal(sum((result.changes_per_minute or {}).values()), 1),
        "backlog": count(result.max_backlog),
        "dropped": count(sum((result.dropped or {}).values())),
    }


def forecasters_table(rows: Mapping[str, Sequence[str]]) -> Table:
    """One row a model, under the first of `FORECASTERS`."""
    table = plain_table(["model", *FORECASTERS[: max(map(len, rows.values()), default=0)]])
    for model, cells in rows.items():
        table.add_row(Text(model), *cells)
    return table


def score_rows(test: SeriesTest) -> dict[str, list[str]]:
    """The figures of each model, the least error first; dashes for those that have none."""
    shown = {}
    for one in test.ranked:
        score, ratios = one.score, (test.ratio(one), test.ratio(one, YARDSTICK))
        figures = (score.smape, *ratios, score.rmse, score.mae, score.fit_s, score.forecast_ms)
        shown[score.model] = [figure(value) for value in figures]
    return shown | {model: [ABSENT] * len(FORECASTERS) for model in test.failed}


def mean_rows(tests: Sequence[SeriesTest]) -> dict[str, list[str]]:
    """By model, the least first: the mean sMAPE over all series, and that over the best and over the yardstick."""
    means = mean_errors(tests)
    bases = next(iter(means.values()), math.nan), means.get(YARDSTICK, math.nan)
    return {
        model: [figure(error), *(figure(error / base if base else math.nan) for base in bases)]
        for model, error in means.items()
    }


def mean_errors(tests: Sequence[SeriesTest]) -> dict[str, float]:
    """Mean sMAPE of the models that have one on each series, the least first."""
    by_model: dict[str, list[float]] = {}
    for trial in (trial for test in tests for trial in test.trials):
        by_model.setdefault(trial.score.model, []).append(trial.score.smape)
    means = {model: math.fsum(found) / len(found) for model, found in by_model.items() if len(found) == len(tests)}
    return dict(sorted(means.items(), key=lambda pair: (math.isnan(pair[1]), pair[1])))


def plain_table(head: Sequence[str], padding: tuple[int, int, int, int] = (0, 1, 0, 1)) -> Table:
    """A table with names in its first column, and numbers."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=padding, pad_edge=False, show_edge=False)
    table.add_column(head[0], overflow="fold")
    for name in head[1:]:
        table.add_column(name, justify="center" if name == "ok" else "right", no_wrap=True)
    return table
