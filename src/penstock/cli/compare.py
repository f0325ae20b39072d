"""`penstock compare`: several policies on the same trace, or as curves on several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.cli.console import console, write_text
from penstock.cli.simulate import Chosen, run_arena, scenario_of, with_scenario
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.simulator.curves import SweepResult
    from penstock.simulator.scenario import Scenario
    from penstock.simulator.sweep import Sweep

OPTIONS = {
    "traces": (Annotated[str | None, typer.Option(help="Several traces: a.csv,b.csv,…")], None),
    "rates": (Annotated[str | None, typer.Option(help="Every trace at several mean rates: 20,200,2000.")], None),
    "seeds": (Annotated[int, typer.Option(help="So many seeds, from --seed on.")], 1),
    "sweep": (Annotated[bool, typer.Option(help="Every policy as a curve, with more and more headroom.")], False),
    "factors": (Annotated[str | None, typer.Option(help="The headrooms of --sweep: 1,1.3,2.")], None),
    "resume": (Annotated[Path | None, typer.Option(help="Keep what is done here, and go on from it.")], None),
    "jobs": (Annotated[int | None, typer.Option(help="Processes that share the work; all cores by default.")], None),
}


@with_scenario("policies", "all", "all, or names separated by commas.", **OPTIONS)
def compare(chosen: Chosen) -> None:
    """Compare policies on the same trace, the cheapest that is on time first; with --sweep as curves.

    With --traces, --rates, several --arrivals (poisson,even), --seeds or --sweep: what keeping the promise costs under
    each policy, as a multiple of what none can do without.
    """
    from penstock.simulator.parallel import cores

    jobs = cores() if chosen["jobs"] is None else chosen["jobs"]
    many = chosen["traces"] or chosen["rates"] or "," in chosen["arrivals"] or chosen["seeds"] != 1
    if chosen["sweep"] or many:
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

    factors: tuple[float, ...] = FACTORS if chosen["sweep"] else (1.0,)
    if chosen["factors"] is not None:
        factors = _numbers("--factors", chosen["factors"])
    return Sweep(list(_scenarios(chosen)), chosen["policies"], factors, chosen["seeds"])


def _scenarios(chosen: Chosen) -> Iterator[Scenario]:
    """One for every trace, mean rate and kind of arrivals; its trace is named by what differs."""
    traces = [Path(name.strip()) for name in (chosen["traces"] or "").split(",") if name.strip()]
    if traces and (chosen["trace"] is not None or chosen["rate"] is not None):
        raise InputError("give one of --traces, --trace and --rate")
    if chosen["rates"] and (chosen["mean_rate"] is not None or chosen["rate"] is not None):
        raise InputError("give one of --rates, --mean-rate and --rate")
    rates = _numbers("--rates", chosen["rates"]) if chosen["rates"] else (chosen["mean_rate"],)
    arrivals = [one.strip() for one in chosen["arrivals"].split(",")]
    for trace, rate, kind in product(traces or [chosen["trace"]], rates, arrivals):
        scenario = scenario_of({**chosen, "trace": trace, "mean_rate": rate, "arrivals": kind})
        more = ([f"{rate:g}/s"] if len(rates) > 1 else []) + ([kind] if len(arrivals) > 1 else [])
        name = ", ".join([scenario.input.name, *more])
        yield scenario.changed(trace=replace(scenario.input, name=name)) if more else scenario


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        raise InputError(f"{option}: must be numbers separated by commas; got {text!r}") from None


def _write(chosen: Chosen, result: SweepResult) -> None:
    if chosen["json_file"] is not None:
        write_text(chosen["json_file"], json.dumps(result.as_json(), indent=2) + "\n")
    if chosen["html"] is not None:
        from penstock.report.page import write_page
        from penstock.report.sweep_page import sweep_page  # matplotlib takes its time to load

        write_page(chosen["html"], sweep_page(result))
        console.print(f"report: {chosen['html']}", highlight=False, soft_wrap=True)
