"""`penstock backtest`: forecasters on the user's own series."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text
from penstock.errors import InputError
from penstock.forecast.evaluation.backtest import Edge, Rule
from penstock.forecast.evaluation.contest import SeriesTest, Terms, contest, models_named
from penstock.forecast.evaluation.series import DEFAULT_SPLIT, Split, load_all, rows_per_day, split_at, split_in_parts
from penstock.report.terminal import forecasters_table, mean_rows, score_rows
from penstock.workload import Trace

Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="CSV with time_s,rate or date,rate.")]
Models = Annotated[str, typer.Option(help="all, or forecasters with their options, separated by commas.")]
Horizon = Annotated[int, typer.Option(help="Compare with the forecast made so many rows before.")]
Overlap = Annotated[
    str | None, typer.Option(help="mean: compare with the mean of all forecasts made for a row in the last rows.")
]
TestStart = Annotated[int | None, typer.Option(help="The first row of the test part, from 0.")]
SplitParts = Annotated[
    str | None, typer.Option("--split", help="Train/validate/test, as in 40/10/10: days of a long series, else shares.")
]
Day = Annotated[int | None, typer.Option(help="Rows that make a day; from the step of the file by default.")]


def backtest(
    files: Files,
    models: Models = "all",
    horizon: Horizon = 1,
    overlap: Overlap = None,
    test_start: TestStart = None,
    split: SplitParts = None,
    day: Day = None,
    seed: given.Seed = 0,
    json_file: given.JsonFile = None,
    html: given.HtmlFile = None,
) -> None:
    """Try forecasters on series of rates: train, then forecast, compare and learn, row by row."""
    with clear_errors():
        terms = Terms(rule=_rule(horizon, overlap), day=day, seed=seed)
        splits = [(one, *_split(one, split, test_start)) for one in load_all(files)]
        specs, left_out = models_named(models)
        for spec in specs:
            terms.forecaster(spec, splits[0][0])  # a mistake shows before anything else does
        for words in left_out:
            console.print(words, highlight=False)
        tests = [_tested(one, parts, words, specs, terms) for one, parts, words in splits]
        if len(tests) > 1:
            console.print(f"mean over {len(tests)} series", highlight=False)
            console.print(forecasters_table(mean_rows(tests)))
        _write(tests, terms, json_file, html)


def _rule(horizon: int, overlap: str | None) -> Rule:
    if overlap not in (None, "mean"):
        raise InputError(f"--overlap: must be mean, or left out; got {overlap!r}")
    return Rule(horizon, overlap=overlap == "mean")


def _split(series: Trace, parts: str | None, test_start: int | None) -> tuple[Split, str]:
    """How a series is split, and a few words on it."""
    if test_start is not None:
        if parts is not None:
            raise InputError("give either --test-start ROW or --split PARTS")
        return split_at(series, test_start), "the fifth before the test part validates"
    text = parts or DEFAULT_SPLIT
    split, meant = split_in_parts(series, text)
    return split, f"{text} are {'days from the start' if meant == 'days' else 'shares of all rows'}"


def _tested(series: Trace, split: Split, words: str, specs: Sequence[str], terms: Terms) -> SeriesTest:
    """All models on one series, with a table of what came out."""
    console.print(_what(series, split, words, terms), highlight=False, soft_wrap=True)
    with _progress(series.name) as edge:
        test = contest(series, split, specs, terms, edge)
    console.print(forecasters_table(score_rows(test)))
    for model, why in test.failed.items():
        console.print(f"{model} has no figures: {why}", highlight=False, markup=False, soft_wrap=True)
    return test


def _what(series: Trace, split: Split, words: str, terms: Terms) -> str:
    rule = terms.rule
    ahead = f"{rule.horizon} row{'s' if rule.horizon > 1 else ''} ahead"
    how = f"mean of the forecasts up to {ahead}" if rule.overlap else ahead
    day = terms.day or rows_per_day(series.step_s)
    gaps = f"; {len(series.missing):,} are missing, and not compared" if series.missing else ""
    return f"{series.name}: {split}{gaps}; {words}; {how}; a day has {day} rows of {series.step_s:g} s"


@contextmanager
def _progress(series: str) -> Iterator[Callable[[str], Edge]]:
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
        from penstock.report.backtest_page import backtest_page  # matplotlib takes its time to load
        from penstock.report.page import write_page

        write_page(html, backtest_page(tests, terms))
        console.print(f"report: {html}", highlight=False, soft_wrap=True)
