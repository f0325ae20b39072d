"""`penstock explain`: why a run decided as it did, and what else it might have done."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from penstock.cli.console import clear_errors
from penstock.metrics.store import Store


def explain(
    store: Annotated[str, typer.Argument(help="The store of the run: a file, or a database URL.")],
    run: Annotated[str | None, typer.Option(help="Its name in the store; the last run by default.")] = None,
    interval: Annotated[int | None, typer.Option(help="The decisions at the end of this interval.")] = None,
    at: Annotated[float | None, typer.Option(help="Of the interval at this time, in seconds since the start.")] = None,
) -> None:
    """Explain a run's decisions at one time: what was seen and expected, and what else might have been."""
    with clear_errors(), closing(Store(store, must_exist=True)) as kept:
        from penstock.report.explain import explain as explained  # the simulator takes its time to load
        from penstock.report.explain_words import lines

        typer.echo("\n".join(lines(explained(kept, run, interval=interval, at_s=at))))
