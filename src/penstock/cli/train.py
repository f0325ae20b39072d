"""`penstock train`: forecasters fitted to series, many at once on Spark, for a loop to load."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text
from penstock.common.checks import whole
from penstock.forecast.trained.histories import histories_of
from penstock.forecast.trained.job import Job, Outcome, models_to_train
from penstock.forecast.trained.kept import Kept
from penstock.forecast.trained.model_folder import ModelFolder

LOG = "training.log"
SHOWN = 40  # rows of a table

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
        if cores is not None:
            whole("training", "cores", cores)
        specs = models_to_train(models)
        histories = histories_of(sources, run, day)
        jobs = [
            Job(history=one, spec=spec, horizon=horizon, validation=validation) for one in histories for spec in specs
        ]
        folder = ModelFolder(out)
        folder.prepare()
        kept = Kept(folder, datetime.now(UTC).isoformat(timespec="seconds"), len(specs))
        trained = _trained(kept, jobs, cores, json_file)
    if not trained:
        raise typer.Exit(1)


def _trained(kept: Kept, jobs: Sequence[Job], cores: int | None, json_file: Path | None) -> bool:
    """Train all of it and tell what came out; whether there is a model now. Ctrl-C keeps those that are there."""
    console.print(_what(jobs, kept.wanted), highlight=False)
    stopped = None
    try:
        with on_spark(jobs, cores, kept.folder.path / LOG) as arriving, _progress(jobs) as watch:
            kept.keep_all(arriving, watch)
    except KeyboardInterrupt as pressed:
        stopped = pressed
    _tell(kept)
    if json_file is not None:
        write_text(json_file, json.dumps(kept.as_json(), indent=2) + "\n")
    if stopped is not None:
        raise stopped
    return kept.trained > 0


@contextmanager
def on_spark(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
    """What is done, as it arrives from Spark; to be ended is as Ctrl-C."""
    from penstock.forecast.trained.on_spark import train, training_session  # Spark takes its time to load

    ends = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with training_session(cores, log_file) as spark, closing(train(jobs, spark)) as arriving:
            yield arriving
    finally:
        signal.signal(signal.SIGTERM, ends)


def _what(jobs: Sequence[Job], models: int) -> str:
    rows = {job.history.series: len(job.history.rates) for job in jobs}
    least, most = min(rows.values()), max(rows.values())
    length = f"{most:,} rows" if least == most else f"{least:,} to {most:,} rows"
    missing = sum({job.history.series: int(np.isnan(job.history.rates).sum()) for job in jobs}.values())
    gaps = f" ({missing:,} are missing)" if missing else ""
    return f"{len(rows):,} series of {length}{gaps}, {models} models each"


@contextmanager
def _progress(jobs: Sequence[Job]) -> Iterator[Callable[[Kept], None]]:
    """A bar over the series, with the best model of the one that was done last."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("series"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as progress:
        bar = progress.add_task("starting Spark", total=len({job.history.series for job in jobs}))

        def watch(kept: Kept) -> None:
            now = ": ".join(list(kept.written.items())[-1]) if kept.written else "no model yet"
            progress.update(bar, completed=kept.done, description=escape(now))

        yield watch


def _tell(kept: Kept) -> None:
    """The best model of each series, and what could not be trained and why."""
    if kept.trained:
        console.print(_best_table(kept))
    if kept.failed:
        console.print(_failures_table(kept.failed))
    if older := kept.given_up:
        more = f" and {len(older) - SHOWN:,} more" if len(older) > SHOWN else ""
        words = f"older models stay, as some of the new ones had not arrived: {', '.join(older[:SHOWN])}{more}"
        console.print(words, highlight=False, markup=False, soft_wrap=True)
    where = f"models: {kept.folder.path}" if kept.trained or older else "nothing could be trained"
    console.print(where, highlight=False, markup=False, soft_wrap=True)


def _best_table(kept: Kept) -> Table:
    table = _table("best models", len(kept.series))
    for name in ("series", "best"):
        table.add_column(name)
    for name in ("sMAPE %", "RMSE", "MAE", "CPU s"):
        table.add_column(name, justify="right")
    for series in sorted(kept.series)[:SHOWN]:
        cpu_s = sum(one.cpu_s for one in kept.series[series].values())
        best = escape(kept.written.get(series, "none"))
        table.add_row(escape(series), best, *map(_shown, kept.errors(series)), f"{cpu_s:.1f}")
    return table


def _failures_table(failed: Sequence[Outcome]) -> Table:
    table = _table("not trained", len(failed))
    for name in ("series", "model", "why"):
        table.add_column(name)
    for one in failed[:SHOWN]:
        table.add_row(*(escape(text) for text in (*one.job.whose, one.failure or "")))
    return table


def _table(title: str, rows: int) -> Table:
    first = f", the first {SHOWN} of {rows:,}" if rows > SHOWN else ""
    return Table(title=title + first, title_justify="left", header_style="bold")


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
