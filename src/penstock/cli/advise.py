"""`penstock advise`: what the executors of queries could have been, from an event log or a keeper's store."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from penstock.advise.advice import Advice, advise, as_json, decimal_hours, settings, words
from penstock.advise.event_log import read_log
from penstock.advise.kept_run import is_store, kept_load
from penstock.advise.replay import Load, Outcome, Rules, logged_load
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import UNKNOWN_JOIN_S, Bounds
from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text
from penstock.metrics.store import Store
from penstock.report.text import count, milliseconds, percent

Log = Annotated[str, typer.Argument(metavar="LOG", help="An event log, file or folder; or the store of a keeper.")]
Executors = Annotated[str, typer.Option(help="The fewest and the most: 1..8.")]
TargetMs = Annotated[float, typer.Option(help="A row that takes longer to the end of its batch is late, ms.")]
Late = Annotated[float, typer.Option(help="The share of rows that may be late.")]
JoinS = Annotated[float, typer.Option(help="How long an executor takes to come, seconds.")]
Forecaster = Annotated[str | None, typer.Option(help="Let policies go by its forecast: auto, drift:5, …")]
Picture = Annotated[Path | None, typer.Option(help="Draw the load and the executors here, as PNG.")]


def advise_command(
    log: Log,
    executors: Executors = "1..8",
    target_ms: TargetMs = 10_000,
    late: Late = 0.01,
    join_s: JoinS = UNKNOWN_JOIN_S,
    forecaster: Forecaster = None,
    picture: Picture = None,
    json_file: given.JsonFile = None,
) -> None:
    """Say what the executors of queries could have been: cost, late rows, and the settings for it."""
    with clear_errors():
        rules = Rules(
            promise=Promise(target_ms / 1000, late),
            bounds=Bounds.parse(executors),
            join_s=join_s,
            forecaster=forecaster,
        )
        load = _read(log, rules.promise)
        with console.status("playing") as status:
            advice = advise(load, rules, lambda policy: status.update(f"playing the load under {policy}"))
        if json_file is not None:
            write_text(json_file, json.dumps(as_json(advice), indent=2) + "\n")
        if str(json_file) != "-":
            _print(advice)
        if picture is not None:
            _draw(advice, picture)


def _read(place: str, promise: Promise) -> Load:
    """A store where it is one, by its address or its first bytes; else an event log."""
    if "://" in place or (Path(place).is_file() and is_store(Path(place))):
        with closing(Store(place, must_exist=True)) as store:
            return kept_load(store, promise)
    return logged_load(read_log(Path(place)), promise)


def _print(advice: Advice) -> None:
    for sentence in words(advice):
        console.print(sentence, highlight=False, soft_wrap=True)
    console.print(_table(advice))
    console.print("to have that:\n", highlight=False)
    console.print(settings(advice), highlight=False, soft_wrap=True, markup=False)


def _table(advice: Advice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for name in ("policy", "ok", "executor-h", "late", "p50", "p99", "changes"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    constant = () if advice.constant is None else (advice.constant,)
    for one in (advice.load.was, *advice.outcomes, *constant):
        table.add_row(*_cells(one, advice))
    return table


def _cells(one: Outcome, advice: Advice) -> list[str]:
    name = f"{one.policy} executors" if one is advice.constant else one.policy
    kept = "✓" if one.late_ratio <= advice.rules.promise.late else "–"
    times = (milliseconds(one.p50_ms), milliseconds(one.p99_ms))
    return [name, kept, decimal_hours(one.executor_seconds), percent(one.late_ratio), *times, count(one.changes)]


def _draw(advice: Advice, file: Path) -> None:
    from penstock.advise.picture import picture  # matplotlib takes its time to load

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(picture(advice))
    console.print(f"drawn: {file}", highlight=False)
