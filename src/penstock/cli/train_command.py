"""`penstock train`: forecasters fitted to series, many at once on Spark, for a loop to load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console

Sources = Annotated[
    list[str], typer.Argument(metavar="SOURCE…", help="CSV files (time_s,rate or date,rate) or stores.")
]
Models = Annotated[str, typer.Option(help="Forecasters to train, separated by commas: auto,holt_winters,arima.")]
Out = Annotated[Path, typer.Option(help="The folder that the models go to.")]
Horizon = Annotated[int, typer.Option(help="Rows ahead that a model is measured for.")]
Validation = Annotated[float, typer.Option(help="The share of the rows, the last, that a model is measured on.")]
Day = Annotated[int | None, typer.Option(help="Rows in a day; by default what the time between rows makes it.")]
RunName = Annotated[str | None, typer.Option("--run", help="The run to take from a store; the last by default.")]
Cores = Annotated[int | None, typer.Option(help="Models to train at once; by default as many as there are cores.")]


def train(
    sources: Sources,
    models: Models = "auto",
    out: Out = Path("models"),
    horizon: Horizon = 1,
    validation: Validation = 0.2,
    day: Day = None,
    run: RunName = None,
    cores: Cores = None,
    json_file: given.JsonFile = None,
) -> None:
    """Train forecasters for series from files or from a run's store, and keep the models in a folder."""
    with clear_errors():
        from penstock.cli.training import TrainRequest, run_training

        request = TrainRequest(
            sources=sources,
            models=models,
            out=out,
            horizon=horizon,
            validation=validation,
            day=day,
            run=run,
            cores=cores,
        )
        trained = run_training(request, console, json_file)
    if not trained:
        raise typer.Exit(1)
