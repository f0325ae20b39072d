"""`penstock backtest`: read, split, try every model with progress, print and write what came out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli.console import write_text
from penstock.errors import InputError
from penstock.forecast.backtest import Edge, Rule
from penstock.forecast.contest import SeriesTest, Terms, contest, models_named
from penstock.forecast.series import DEFAULT_SPLIT, Split, load_series, rows_per_day, split_at, split_in_parts
from penstock.report.terminal import backtest_table, mean_table
from penstock.workload import Trace


@dataclass(frozen=True, kw_only=True)
class BacktestRequest:
    """The options of `penstock backtest`, as given."""

    files: Sequence[Path]
    models: str = "all"
    horizon: int = 1
    overlap: str | None = None
    test_start: int | None = None
    split: str | None = None
    day: int | None = None
    seed: int = 0

    def terms(self) -> Terms:
        """What holds for all models."""
        if self.overlap not in (None, "mean"):
            raise InputError(f"--overlap: must be mean, or left out; got {self.overlap!r}")
        return Terms(rule=Rule(self.horizon, overlap=self.overlap == "mean"), day=self.day, seed=self.seed)

    def series(self) -> list[Trace]:
        """The files, read."""
        found = [load_series(path) for path in self.files]
        names = [one.name for one in found]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"backtest: files must have different names; got {names.count(name)} named {name!r}")
        return found

    def parts(self, series: Trace) -> tuple[Split, str]:
        """How a series is split, and a few words on it."""
        if self.test_start is not None:
            if self.split is not None:
                raise InputError("give either --test-start ROW or --split PARTS")
            return split_at(series, self.test_start), "the fifth before the test part validates"
        text = self.split or DEFAULT_SPLIT
        split, meant = split_in_parts(series, text)
        return split, f"{text} are {'days from the start' if meant == 'days' else 'shares of all rows'}"


def run_backtest(
    request: BacktestRequest, console: Console, json_file: Path | None = None, html: Path | None = None
) -> list[SeriesTest]:
    """Try the models on all series; a mistake shows before anything else does."""
    terms, series = request.terms(), request.series()
    specs, left_out = models_named(request.models)
    splits = [request.parts(one) for one in series]
    for spec in specs:
        terms.forecaster(spec, series[0])
    for words in left_out:
        console.print(words, highlight=False)
    tests = []
    for one, (split, words) in zip(series, splits, strict=True):
        console.print(_what(one, split, words, terms), highlight=False, soft_wrap=True)
        with _progress(console, one.name) as edge:
            tests.append(contest(one, split, specs, terms, edge))
        _show(tests[-1], console)
    if len(tests) > 1:
        console.print(f"mean over {len(tests)} series", highlight=False)
        console.print(mean_table(tests))
    _write(tests, terms, json_file, html)
    return tests


def _what(series: Trace, split: Split, words: str, terms: Terms) -> str:
    rule = terms.rule
    ahead = f"{rule.horizon} row{'s' if rule.horizon > 1 else ''} ahead"
    how = f"mean of the forecasts up to {ahead}" if rule.overlap else ahead
    day = terms.day or rows_per_day(series.step_s)
    return f"{series.name}: {split}; {words}; {how}; a day has {day} rows of {series.step_s:g} s"


def _show(test: SeriesTest, console: Console) -> None:
    console.print(backtest_table(test))
    for model, why in test.failed.items():
        console.print(f"{model} has no figures: {why}", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _progress(console: Console, series: str) -> Iterator[Callable[[str], Edge]]:
    """A bar for every model, as it runs; it moves to and fro while the model is fitted."""
    columns = (TextColumn("{task.description:<32}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:

        def edge(spec: str) -> Edge:
            for old in progress.task_ids:
                progress.remove_task(old)
            bar = progress.add_task(f"{series} {spec}", total=None)
            return Edge(time.process_time, lambda done, rows: progress.update(bar, completed=done, total=rows))

        yield edge


def _write(tests: Sequence[SeriesTest], terms: Terms, json_file: Path | None, html: Path | None) -> None:
    if json_file is not None:
        scores = [trial.score.as_json() for test in tests for trial in test.ranked]
        write_text(json_file, json.dumps(scores, indent=2) + "\n")
    if html is not None:
        from penstock.report.backtest_page import write_backtest_report  # matplotlib takes its time to load

        write_backtest_report(html, tests, terms)
