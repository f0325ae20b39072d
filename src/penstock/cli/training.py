"""What `penstock train` does: check everything, train on Spark, keep the models, tell what came out."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli.console import write_text
from penstock.cli.histories import histories_of
from penstock.cli.kept import Kept, as_json, tell
from penstock.errors import InputError
from penstock.forecast.models import ModelFolder
from penstock.forecast.registry import FORECASTERS, make_forecaster
from penstock.forecast.training import Job

if TYPE_CHECKING:
    from penstock.engine.training import Outcome

LOG = "training.log"
RELOADING = "trained"


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """The options of `penstock train`, as given."""

    sources: Sequence[str]
    models: str = "auto"
    out: Path = Path("models")
    horizon: int = 1
    validation: float = 0.2
    day: int | None = None
    run: str | None = None
    cores: int | None = None

    def jobs(self) -> list[Job]:
        """A job for each series and model, once all is known to be right."""
        if self.cores is not None and self.cores < 1:
            raise InputError(f"--cores must be at least 1; got {self.cores}")
        specs = models_named(self.models)
        histories = histories_of(self.sources, self.run, self.day)
        jobs = [
            Job(history=history, spec=spec, horizon=self.horizon, validation=self.validation)
            for history in histories
            for spec in specs
        ]
        ModelFolder(self.out).prepare()
        return jobs


def models_named(text: str) -> list[str]:
    """Forecasters with their options, separated by commas; each is made once, to see that it can be.

    >>> models_named("drift:window=5,last_value,regression")
    ['drift:window=5', 'last_value', 'regression']
    """
    specs = FORECASTERS.specs(text)
    for spec in specs:
        make_forecaster(spec)
        if spec.partition(":")[0] == RELOADING:
            raise InputError(f"--models: '{RELOADING}' loads what was trained; name the forecasters to train")
    return specs


def run_training(request: TrainRequest, console: Console, json_file: Path | None = None) -> bool:
    """Train everything that was asked for; whether there is a model now. Ctrl-C keeps those that are there."""
    jobs = request.jobs()
    kept = Kept(ModelFolder(request.out), datetime.now(UTC).isoformat(timespec="seconds"), _models_each(jobs))
    console.print(_what(jobs), highlight=False)
    stopped = False
    try:
        with on_spark(jobs, request.cores, request.out / LOG) as arriving, _progress(console, jobs) as watch:
            for arrived in arriving:
                kept.keep(arrived)
                watch(kept)
    except KeyboardInterrupt:
        stopped = True
    finally:
        kept.keep_rest()
    tell(kept, console)
    if json_file is not None:
        write_text(json_file, json.dumps(as_json(kept), indent=2) + "\n")
    if stopped:
        raise KeyboardInterrupt
    return kept.trained > 0


@contextmanager
def on_spark(jobs: Sequence[Job], cores: int | None, log_file: Path) -> Iterator[Iterator[list[Outcome]]]:
    """What is done, as it arrives from Spark."""
    from penstock.engine.training import train, training_session  # Spark takes its time to load

    ends = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
    try:
        with training_session(cores, log_file) as spark, closing(train(jobs, spark)) as arriving:
            yield arriving
    finally:
        signal.signal(signal.SIGTERM, ends)


def _models_each(jobs: Sequence[Job]) -> int:
    return len({job.spec for job in jobs})


def _what(jobs: Sequence[Job]) -> str:
    rows = {job.history.series: len(job.history.rates) for job in jobs}
    least, most = min(rows.values()), max(rows.values())
    length = f"{most:,} rows" if least == most else f"{least:,} to {most:,} rows"
    return f"{len(rows):,} series of {length}, {_models_each(jobs)} models each"


@contextmanager
def _progress(console: Console, jobs: Sequence[Job]) -> Iterator[Callable[[Kept], None]]:
    """A bar over the series, with the best model of the one that was done last."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("series"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as progress:
        bar = progress.add_task("starting Spark", total=len({job.history.series for job in jobs}))

        def watch(kept: Kept) -> None:
            now = ": ".join(list(kept.written.items())[-1]) if kept.written else "no model yet"
            progress.update(bar, completed=kept.done, description=escape(now))

        yield watch
