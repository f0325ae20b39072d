"""`penstock`: run a topology on Spark, or try policies on it without."""

from __future__ import annotations

import logging
from typing import Annotated

import typer
from rich.logging import RichHandler

from penstock.cli.backtest import backtest
from penstock.cli.cluster import cluster
from penstock.cli.compare import compare
from penstock.cli.console import console
from penstock.cli.demo import demo
from penstock.cli.report import report
from penstock.cli.run import run
from penstock.cli.simulate import simulate
from penstock.cli.train import train

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main(verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision.")] = False) -> None:
    """Predictive elasticity for stream processing on Spark."""
    level = logging.INFO if verbose else logging.WARNING
    handler = RichHandler(console=console, show_path=False, show_level=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("penstock").setLevel(level)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


for command in (run, simulate, compare, report, train, backtest, demo):
    app.command()(command)
app.add_typer(cluster, name="cluster")
