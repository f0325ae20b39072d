"""The papers' evaluation in the simulator: one HTML and one JSON file.

    python -m experiments --only table-vii,figure-12 --seeds 2

Real traces are those of `data/`, or of $PENSTOCK_DATA; where there are none, or with --made, made ones take their
place; the files say which.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.catalogue import EXPERIMENTS, chosen
from experiments.report import Part, as_json, page, parts_of
from experiments.runner import Job, Played, jobs_of, run_all
from penstock.errors import InputError, PenstockError
from penstock.workload import data_folder

console = Console(stderr=True)


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 0 if it could be done."""
    options = _parser().parse_args(arguments)
    if options.list:
        for one in EXPERIMENTS.values():
            sys.stdout.write(f"{one.name:26}{one.title}\n")
        return 0
    try:
        _run(options)
    except PenstockError as error:
        console.print(f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--html", type=Path, default=Path("out/experiments.html"), help="the page")
    parser.add_argument("--json", type=Path, default=Path("out/experiments.json"), help="the same for programs")
    parser.add_argument("--seeds", type=int, help="for every case; 3 by default, 5 for DABS as in its paper")
    parser.add_argument("--only", metavar="NAMES", help="of experiments, separated by commas")
    parser.add_argument("--made", action="store_true", help="made inputs, even where there are real ones")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; as many as cores")
    parser.add_argument("--list", action="store_true", help="name all experiments")
    return parser


def _run(options: argparse.Namespace) -> None:
    for name in ("seeds", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} must be at least 1; got {value}")
    experiments = chosen(options.only)
    traces = None if options.made else data_folder("traces")
    data = traces.parent.resolve() if traces else None
    started = time.perf_counter()
    played = _played(jobs_of(experiments, options.seeds), data, options.workers)
    parts, wall_s = parts_of(experiments, played, options.seeds, data), time.perf_counter() - started
    _write(options.json, json.dumps(as_json(parts, wall_s), indent=2) + "\n")
    _write(options.html, page(parts, wall_s))
    _tell(parts)
    console.print(f"page: {options.html}, figures: {options.json}", highlight=False, soft_wrap=True)


def _played(jobs: list[Job], data: Path | None, workers: int) -> dict[Job, Played]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("simulations", total=len(jobs))

        def done(job: Job) -> None:
            progress.update(
                task, advance=1, description=f"{job.case.scenario.name} under {job.case.policy}"[:40].ljust(40)
            )

        return run_all(jobs, data, workers=min(workers, len(jobs)) or 1, done=done)


def _tell(parts: list[Part]) -> None:
    words = {True: "[green]holds[/]", False: "[red]does not hold[/]", None: "not there yet"}
    for part in parts:
        for one in part.directions:
            console.print(f"{one.experiment}: {one.name}: {words[one.holds]}", highlight=False, soft_wrap=True)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"file '{path}': cannot be written; {error.strerror or error}") from error


if __name__ == "__main__":
    sys.exit(main())
