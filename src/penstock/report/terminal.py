"""What is compared, for the terminal: policies in the arena, forecasters in a backtest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from penstock.forecast.evaluation.contest import YARDSTICK, SeriesTest, Trial
from penstock.report.text import ABSENT, count, decimal, figure, finite, late_share, milliseconds, percent
from penstock.report.verdict import is_oracle, meets, ranking, verdict
from penstock.simulator.result import SimulationResult

WIDEST = 110
POLICIES = ("ok", "replica-s", "×oracle", "saved", "proc.", "mean", "p99", "late", "changes", "backlog", "dropped")
FORECASTERS = ("sMAPE %", "×best", "×last", "RMSE", "MAE", "fit CPU s", "CPU ms")
_DISPENSABLE = ("backlog", "proc.", "changes", "dropped", "saved", "p99", "replica-s")  # the first to go comes first


def verdict_text(results: Sequence[SimulationResult]) -> Text:
    """The page's verdict, with the names of policies in bold."""
    return Text.assemble(*((piece, "bold" if place % 2 else "") for place, piece in enumerate(verdict(results))))


def results_table(results: Sequence[SimulationResult], width: int = WIDEST) -> Table:
    """One row a policy, the best first; columns that a narrow terminal has no room for are left out."""
    order = ranking(results)
    rows = [_cells(result) for result in order]
    names = max((cell_len(result.policy) for result in order), default=0)
    shown, loose = _fitting(rows, names, min(width, WIDEST))
    table = _table("policy", [POLICIES[place] for place in shown], padding=(0, int(loose), 0, 0))
    for result, cells in zip(order, rows, strict=True):
        table.add_row(_name(result), *(cells[place] for place in shown))
    return table


def backtest_table(test: SeriesTest) -> Table:
    """One row a model, the least error first."""
    table = _table("model", FORECASTERS)
    for trial in test.ranked:
        table.add_row(Text(trial.score.model), *score_cells(test, trial))
    for model in test.failed:
        table.add_row(Text(model, style="dim"), *[ABSENT] * len(FORECASTERS))
    return table


def mean_table(tests: Sequence[SeriesTest]) -> Table:
    """The mean sMAPE over all series, of the models that have one on each."""
    table = _table("model", FORECASTERS[:3])
    for model, cells in mean_cells(tests).items():
        table.add_row(Text(model), *cells)
    return table


def score_cells(test: SeriesTest, trial: Trial) -> list[str]:
    """The figures of a model, under `FORECASTERS`."""
    score = trial.score
    errors = score.smape, test.ratio(trial), test.ratio(trial, YARDSTICK), score.rmse, score.mae
    return [figure(value) for value in (*errors, score.fit_s, score.forecast_ms)]


def mean_cells(tests: Sequence[SeriesTest]) -> dict[str, list[str]]:
    """By model, the least first: the mean error, and that over the best and over the yardstick."""
    means = mean_errors(tests)
    bases = next(iter(means.values()), math.nan), means.get(YARDSTICK, math.nan)
    return {
        model: [figure(error), *(figure(error / base if base else math.nan) for base in bases)]
        for model, error in means.items()
    }


def mean_errors(tests: Sequence[SeriesTest]) -> dict[str, float]:
    """Mean sMAPE by model, the least first."""
    by_model: dict[str, list[float]] = {}
    for test in tests:
        for trial in test.trials:
            by_model.setdefault(trial.score.model, []).append(trial.score.smape)
    means = {model: math.fsum(found) / len(found) for model, found in by_model.items() if len(found) == len(tests)}
    return dict(sorted(means.items(), key=lambda pair: (math.isnan(pair[1]), pair[1])))


def short(value: object) -> str:
    """A whole number that stays short.

    >>> short(61470.4), short(158_112_000), short(None)
    ('61,470', '158 M', '–')
    """
    number = finite(value)
    if number is None:
        return ABSENT
    return count(round(number)) if number < 1e8 else f"{count(round(number / 1e6))} M"


def _table(first: str, others: Sequence[str], padding: tuple[int, ...] = (0, 1)) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=padding, pad_edge=False, show_edge=False)  # type: ignore[arg-type]
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="center" if name == "ok" else "right", no_wrap=True)
    return table


def _fitting(rows: Sequence[Sequence[str]], names: int, width: int) -> tuple[list[int], bool]:
    """The columns that fit beside the names, and whether there is room between them."""
    widths = [max(map(len, column)) for column in zip(POLICIES, *rows, strict=True)]
    shown = list(range(len(POLICIES)))
    for name in ("", *_DISPENSABLE):
        shown = [place for place in shown if POLICIES[place] != name]
        taken = names + sum(widths[place] + 1 for place in shown)
        if taken <= width:
            break
    return shown, taken + len(shown) <= width


def _name(result: SimulationResult) -> Text:
    """The name as it is, whatever rich would make of its brackets; the oracle stands back."""
    shown = "".join(letter if letter.isprintable() else "□" for letter in result.policy)
    return Text(shown, style="dim" if is_oracle(result) else "")


def _cells(result: SimulationResult) -> list[str]:
    latency = result.latency_ms or {}
    return [
        "✓" if meets(result) else ABSENT,
        short(result.replica_seconds),
        decimal(result.oracle_ratio, 2),
        percent(result.saved_resources),
        percent(result.processed_ratio),
        milliseconds(latency.get("mean")),
        milliseconds(latency.get("p99")),
        late_share(result.late_ratio),
        short(result.reconfigurations),
        short(result.max_backlog),
        short(sum((result.dropped or {}).values())),
    ]
