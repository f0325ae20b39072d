"""`penstock`: run a topology on Spark, or try policies on it without."""

from __future__ import annotations

import logging
from typing import Annotated

import typer
from rich.logging import RichHandler

from penstock.cli.advise import advise_command
from penstock.cli.backtest import backtest
from penstock.cli.cluster import cluster
from penstock.cli.compare import compare
from penstock.cli.config import config, found_config, read_config
from penstock.cli.console import clear_errors, console
from penstock.cli.ctl import ctl
from penstock.cli.demo import demo
from penstock.cli.explain import explain
from penstock.cli.report import report
from penstock.cli.run import run
from penstock.cli.simulate import simulate
from penstock.cli.train import train
from penstock.cli.ui import ui

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision.")] = False,
) -> None:
    """Predictive elasticity for stream processing on Spark."""
    if (file := found_config()) is not None and context.invoked_subcommand != "config":
        with clear_errors():
            context.default_map = dict(read_config(file, vars(context.command)["commands"]).commands)
    level = logging.INFO if verbose else logging.WARNING
    handler = RichHandler(console=console, show_path=False, show_level=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("penstock").setLevel(level)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


for command in (run, simulate, compare, report, explain, ui, train, backtest, demo):
    app.command()(command)
app.command("advise")(advise_command)
app.add_typer(cluster, name="cluster")
app.add_typer(ctl, name="ctl")
app.add_typer(config, name="config")
