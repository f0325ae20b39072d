"""`penstock simulate` and `penstock compare`: run, show progress, print and write what came out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli.console import write_text
from penstock.cli.simulated_runs import SimulatedRuns
from penstock.cli.simulation import SimulationRequest
from penstock.report.terminal import results_table, verdict_text
from penstock.simulator.arena import Contest, Watch, compete, ranked
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import Setup


def run_arena(
    request: SimulationRequest, specs: Sequence[str], console: Console, json_file: Path | None, html: Path | None
) -> list[SimulationResult]:
    """Simulate these policies; the results in the order that they are shown in."""
    setup = request.setup()
    contest = request.contest(setup)
    for spec in specs:
        contest.policy(spec, setup)  # a mistake shows before anything else does
    console.print(_what(request, setup), highlight=False)
    with _kept(request, contest) as keeping, _progress(console) as watch:
        results = compete(setup, specs, keeping, watch)
    shown = ranked(results)
    console.print(results_table(shown, console.width))
    console.print(verdict_text(shown))
    for line in (*_workers(shown, setup), *_state(shown)):
        console.print(line, highlight=False)
    if json_file is not None:
        write_text(json_file, json.dumps([one.as_json() for one in results], indent=2) + "\n")
    if html is not None:
        _write_page(request, setup, results, html)
        console.print(f"report: {html}", highlight=False, soft_wrap=True)
    return shown


@contextmanager
def _kept(request: SimulationRequest, contest: Contest) -> Iterator[Contest]:
    """The contest, with a store for its intervals if one was asked for."""
    if request.store is None:
        yield contest
        return
    with closing(SimulatedRuns(request.store, request)) as runs:
        yield replace(contest, keep=runs.keep)


def _what(request: SimulationRequest, setup: Setup) -> str:
    trace, options = request.input, setup.options
    length = f"{trace.duration_s:,.0f} s" if trace.duration_s < 172800 else f"{trace.duration_s / 86400:,.1f} days"
    return (
        f"{request.app} under {trace.name}: {length}, {trace.events:,.0f} events, mean {trace.mean:,.4g}/s, "
        f"peak {trace.peak:,.4g}/s; td {options.td_s:g} s, actuation {options.actuation}"
    )


def _workers(results: Sequence[SimulationResult], setup: Setup) -> list[str]:
    """What became of the workers, where there are any."""
    if setup.cluster is None:
        return []
    fixed, deployed, several = setup.cluster.workers, setup.cluster.deployed, len(results) > 1
    saved = ", ".join(f"{count} of {name}" for name, count in deployed.items())
    return [f"saved: of the paper's static deployment, {saved}"] * bool(deployed) + [
        f"workers{f' under {one.policy}' if several else ''}: {one.worker_seconds:,.0f} worker-seconds, "
        f"{one.workers_saved:.1%} fewer than {fixed} all the time"
        for one in results
    ]


def _state(results: Sequence[SimulationResult]) -> list[str]:
    """What operators keep, and how long what moved waited for it, where there is any."""
    several = len(results) > 1
    return [
        f"state of '{name}'{f' under {one.policy}' if several else ''}: {state_line(kept)}"
        for one in results
        for name, kept in (one.state or {}).items()
    ]


def state_line(kept: Mapping[str, Any]) -> str:
    """What one operator keeps and moved, in words.

    >>> state_line({"state_bytes": 61440, "state_keys": 1024, "groups_moved": 64,
    ...             "wait_ms": {"mean": 104.2, "max": 130.0, "p50": 103.0, "p99": 130.0}})
    '0.0614 MB in 1,024 keys; 64 groups moved and waited 104 ms in the mean, 130 ms at most'
    """
    wait_ms, megabytes = kept["wait_ms"], kept["state_bytes"] / 1e6
    size = f"{megabytes:,.0f}" if megabytes >= 100 else f"{megabytes:.3g}"
    size += f" MB in {kept['state_keys']:,} keys"
    if not kept["groups_moved"]:
        return f"{size}; no group moved"
    waited = f"waited {wait_ms['mean']:,.0f} ms in the mean, {wait_ms['max']:,.0f} ms at most"
    return f"{size}; {kept['groups_moved']:,} groups moved and {waited}"


@contextmanager
def _progress(console: Console) -> Iterator[Watch]:
    """A bar for every policy, as it runs."""
    columns = (TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        waiting = progress.add_task("compiling kernels", total=None)
        bars: dict[str, object] = {}

        def watch(spec: str, now_s: float, end_s: float) -> None:
            if spec not in bars:
                progress.update(waiting, visible=False)
                bars[spec] = progress.add_task(spec, total=end_s)
            progress.update(bars[spec], completed=now_s)  # type: ignore[arg-type]

        yield watch


def _write_page(request: SimulationRequest, setup: Setup, results: Sequence[SimulationResult], path: Path) -> None:
    from penstock.report.arena import ArenaReport
    from penstock.report.arena_page import write_arena_report  # matplotlib takes its time to load

    settings = {"grouping": request.grouping, "forecaster": request.forecaster, "seed": setup.options.seed}
    report = ArenaReport(
        app=request.app,
        trace=request.input,
        options=setup.options,
        results=results,
        settings={name: value for name, value in settings.items() if value is not None},
    )
    write_arena_report(path, report)
