"""`penstock backtest`: forecasters on the user's own series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console

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
        from penstock.cli.backtesting import BacktestRequest, run_backtest

        request = BacktestRequest(
            files=files,
            models=models,
            horizon=horizon,
            overlap=overlap,
            test_start=test_start,
            split=split,
            day=day,
            seed=seed,
        )
        run_backtest(request, console, json_file, html)
        if html is not None:
            console.print(f"report: {html}", highlight=False, soft_wrap=True)
