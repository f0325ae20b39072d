"""`penstock ctl`: steer a run that goes on, from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import clear_errors, console

ctl = typer.Typer(no_args_is_help=True, help="Steer a run that goes on; it must have been started with --ui.")

Place = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder, which has its token.")]
Who = Annotated[str | None, typer.Option(help="Who gives the order, for the store; you by default.")]
Operator = Annotated[str, typer.Argument(help="An operator of the topology.")]
Least = Annotated[int | None, typer.Option(help="At least so many replicas.")]
Most = Annotated[int | None, typer.Option(help="At most so many replicas.")]


@ctl.command()
def show(run: Place) -> None:
    """What is in force."""
    with clear_errors():
        from penstock.ui.access import look, read_access  # these take their time to load

        _tell(look(read_access(run))["told"])


@ctl.command()
def freeze(run: Place, who: Who = None) -> None:
    """Change nothing any more, but by hand."""
    _give(run, who, "freeze")


@ctl.command()
def unfreeze(run: Place, who: Who = None) -> None:
    """Let the policy decide again."""
    _give(run, who, "unfreeze")


@ctl.command()
def limit(run: Place, operator: Operator, least: Least = None, most: Most = None, who: Who = None) -> None:
    """Bound an operator's replicas; without --least and --most, let it be bounded by its pool alone."""
    _give(run, who, "limit", operator=operator, least=least, most=most)


@ctl.command()
def hold(run: Place, operator: Operator, replicas: int, who: Who = None) -> None:
    """Set an operator's replicas by hand, until it is released."""
    _give(run, who, "hold", operator=operator, replicas=replicas)


@ctl.command()
def release(run: Place, operator: Operator, who: Who = None) -> None:
    """Let the policy decide on an operator again."""
    _give(run, who, "release", operator=operator)


@ctl.command()
def policy(run: Place, policy: Annotated[str, typer.Argument(help="psps, cba:12, …")], who: Who = None) -> None:
    """Plan with another policy from now on."""
    _give(run, who, "policy", policy=policy)


@ctl.command()
def shadow(run: Place, policy: Annotated[str, typer.Argument(help="psps, …; none.")], who: Who = None) -> None:
    """Let another policy decide in the shadow, where it is kept and scored."""
    _give(run, who, "shadow", policy=policy)


@ctl.command()
def canary(
    run: Place, policy: Annotated[str, typer.Argument(help="psps:minutes=10, …; none.")], who: Who = None
) -> None:
    """Let another policy take over once it is better, and take it back if it is not."""
    _give(run, who, "canary", policy=policy)


@ctl.command()
def forecaster(
    run: Place, forecaster: Annotated[str, typer.Argument(help="auto, drift:5, …; none.")], who: Who = None
) -> None:
    """Forecast with another forecaster from now on."""
    _give(run, who, "forecaster", forecaster=forecaster)


@ctl.command()
def td(run: Place, seconds: float, who: Who = None) -> None:
    """Look and decide every so many seconds."""
    _give(run, who, "td", td_s=seconds)


@ctl.command()
def stop(
    run: Place,
    within: Annotated[float, typer.Option(help="Seconds to finish what is in flight.")] = 30.0,
    who: Who = None,
) -> None:
    """End the run with a savepoint, from which --resume carries it on."""
    _give(run, who, "stop", within_s=within)


def _give(run: Path, who: str | None, order: str, **values: object) -> None:
    with clear_errors():
        from penstock.control.orders import parse_order
        from penstock.ui.access import read_access, send, this_user

        _tell(send(read_access(run), parse_order({"order": order, **values}), who or this_user())["told"])


def _tell(told: list[str]) -> None:
    console.print(f"in force: {'; '.join(told) or 'nothing'}", highlight=False, soft_wrap=True)
