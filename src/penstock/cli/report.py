"""`penstock report`: a run as a page, from its store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import clear_errors, console
from penstock.metrics.store import Store


def report(
    store: Annotated[str, typer.Argument(help="The store of the run: a file, or a database URL.")],
    run: Annotated[str | None, typer.Option(help="Its name in the store; the last run by default.")] = None,
    html: Annotated[Path, typer.Option(help="Write the page here.")] = Path("report.html"),
) -> None:
    """Draw a run from its store: one that has ended, still goes on, was killed, or was simulated."""
    with clear_errors(), closing(Store(store, must_exist=True)) as kept:
        from penstock.report.page import write_page
        from penstock.report.run import RunReport
        from penstock.report.run_page import run_page  # matplotlib takes its time to load

        data = RunReport.from_store(kept, run)
        write_page(html, run_page(data))
        intervals = f"{len(data.intervals)} intervals of {data.run.topology} under {data.run.policy}"
        console.print(f"run {data.run.run}, {intervals}: {html}", highlight=False, soft_wrap=True)
