"""`penstock compare`: several policies on the same trace, or as curves on several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.cli.console import console, write_text
from penstock.cli.simulate import Chosen, run_arena, scenario_of, with_scenario
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.simulator.curves import SweepResult
    from penstock.simulator.sweep import Sweep

OPTIONS = {
    "traces": (Annotated[str | None, typer.Option(help="Several traces: a.csv,b.csv,…")], None),
    "seeds": (Annotated[int, typer.Option(help="So many seeds, from --seed on.")], 1),
    "late": (
        Annotated[float | None, typer.Option(help="The share of events that may be late; 0.01 by default.")],
        None,
    ),
    "sweep": (Annotated[bool, typer.Option(help="Every policy as a curve, with more and more headroom.")], False),
    "factors": (Annotated[str | None, typer.Option(help="The headrooms of --sweep: 1,1.3,2.")], None),
    "resume": (Annotated[Path | None, typer.Option(help="Keep what is done here, and go on from it.")], None),
    "jobs": (Annotated[int | None, typer.Option(help="Processes that share the work; all cores by default.")], None),
}


@with_scenario("policies", "all", "all, or names separated by commas.", **OPTIONS)
def compare(chosen: Chosen) -> None:
    """Compare policies on the same trace, the cheapest that is on time first; with --sweep as curves.

    With --traces, --seeds or --sweep: what keeping the promise costs under each policy, as a multiple of what
    none can do without.
    """
    from penstock.simulator.parallel import cores

    jobs = cores() if chosen["jobs"] is None else chosen["jobs"]
    if chosen["sweep"] or chosen["traces"] or chosen["seeds"] != 1:
        _sweep(chosen, jobs)
    elif chosen["resume"] is not None or chosen["factors"] is not None:
        raise InputError("--resume and --factors belong to --sweep")
    else:
        run_arena(chosen, chosen["policies"], jobs)


def _sweep(chosen: Chosen, jobs: int) -> None:
    from penstock.report.sweep import cost_table, promise

    if chosen["store"] is not None:
        raise InputError("--store: a sweep keeps no intervals; give --resume FILE for its points")
    sweep = _asked(chosen)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("simulations", total=None)
        result = sweep.run(
            jobs=jobs,
            keep=chosen["resume"],
            progress=lambda there, total: progress.update(bar, completed=there, total=total),
        )
    console.print(cost_table(result, console.width))
    console.print(promise(result), highlight=False)
    _write(chosen, result)


def _asked(chosen: Chosen) -> Sweep:
    """The sweep that was asked for."""
    from penstock.simulator.sweep import FACTORS, Sweep  # numba takes its time to load

    traces = [Path(name.strip()) for name in (chosen["traces"] or "").split(",") if name.strip()]
    if traces and (chosen["trace"] is not None or chosen["rate"] is not None):
        raise InputError("give one of --traces, --trace and --rate")
    scenarios = [scenario_of({**chosen, "trace": one}) for one in traces] or [scenario_of(chosen)]
    factors: tuple[float, ...] = FACTORS if chosen["sweep"] else (1.0,)
    if chosen["factors"] is not None:
        factors = _factors(chosen["factors"])
    return Sweep(scenarios, chosen["policies"], factors, chosen["seeds"])


def _factors(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        raise InputError(f"--factors: must be numbers separated by commas; got {text!r}") from None


def _write(chosen: Chosen, result: SweepResult) -> None:
    if chosen["json_file"] is not None:
        write_text(chosen["json_file"], json.dumps(result.as_json(), indent=2) + "\n")
    if chosen["html"] is not None:
        from penstock.report.page import write_page
        from penstock.report.sweep_page import sweep_page  # matplotlib takes its time to load

        write_page(chosen["html"], sweep_page(result))
        console.print(f"report: {chosen['html']}", highlight=False, soft_wrap=True)
