"""`penstock simulate`: a policy on the user's own trace, without Spark; and what `penstock compare` shares with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.apps import APPS
from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text
from penstock.cli.options import parse_pairs
from penstock.errors import InputError
from penstock.infra.simulated import parse_regions
from penstock.simulator.calibration import calibration_of
from penstock.simulator.scenario import Cluster, Contest, Plant, Scenario
from penstock.workload import DAY_S, data_folder

if TYPE_CHECKING:
    from penstock.simulator.arena import Arena, Watch
    from penstock.simulator.result import SimulationResult

Chosen = given.Chosen
Command = Callable[..., None]

READ: dict[str, Callable[[str], Any]] = {  # fields that are no plain value on the command line
    "replicas": lambda text: parse_pairs("--replicas", text, int),
    "pool": lambda text: parse_pairs("--pool", text, int),
    "service_ms": lambda text: parse_pairs("--service-ms", text, float),
    "state_bytes": lambda text: parse_pairs("--state-bytes", text, float),
    "regions": parse_regions,
    "calibration": calibration_of,
}
INPUT = {
    "trace": (given.TraceFile, None),
    "rate": (given.Rate, None),
    "duration": (given.Duration, None),
    "mean_rate": (given.MeanRate, None),
    "speedup": (given.Speedup, 1.0),
}
OUTPUT = {
    "store": (
        Annotated[str | None, typer.Option(help="Keep the intervals there: a file or a database URL.")],
        None,
    ),
    "json_file": (given.JsonFile, None),
    "html": (given.HtmlFile, None),
}


def with_scenario(
    name: str, default: str, help: str, **more: tuple[Any, Any]
) -> Callable[[Callable[[Chosen], None]], Command]:
    """Gives a command the options of a scenario, one for every field that says what it means, and one for policies.

    `more` has the types and defaults of those that it has beside these.
    """
    policy = Annotated[str, typer.Option(help=help)]
    options = {
        name: (policy, default),
        **more,
        **INPUT,
        **{_name(one): _option(one) for one in given.OF_SCENARIO.values()},
        **OUTPUT,
    }
    parameters = [_parameter("topology", given.AppArgument)]
    parameters += [_parameter(option, kind, usual) for option, (kind, usual) in options.items()]

    def decorate(command: Callable[[Chosen], None]) -> Command:
        def called(**chosen: Any) -> None:
            with clear_errors():
                command(chosen)

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        return called

    return decorate


def _parameter(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _name(one: Field[Any]) -> str:
    """`td_s` is --td, and --hop-ms is `hop_s` in milliseconds."""
    plain = one.name.removesuffix("_s")
    return str(one.metadata.get("option") or (f"{plain}_ms" if one.metadata.get("ms") else plain))


def _option(one: Field[Any]) -> tuple[Any, Any]:
    """The type and the default of a field's option."""
    kind: Any = _KINDS[one.name]
    default: Any = one.default
    if one.name in READ:
        kind, default = str | None, None
    elif one.name == "events":
        kind = Path | None
    elif one.metadata.get("ms"):
        default = 1000 * default
    return Annotated[kind, typer.Option(help=one.metadata["help"])], default


_KINDS = {name: kind for part in (Scenario, Plant, Contest, Cluster) for name, kind in get_type_hints(part).items()}


def scenario_of(chosen: Chosen) -> Scenario:
    """The scenario that was asked for."""
    app = chosen["topology"]
    asked = [(one, chosen[_name(one)]) for one in given.OF_SCENARIO.values()]
    values = {one.name: _value(one, text) for one, text in asked if text is not None}
    if app in APPS:
        values.setdefault("events", data_folder("events"))
    scenario = Scenario(app).changed(**values)
    trace = given.read_input(*(chosen[name] for name in given.INPUT))
    if trace is not None:
        scenario = scenario.changed(trace=trace)
    elif scenario.app is None:
        raise InputError(f"app {app!r}: give its input with --trace FILE or --rate R")
    return scenario.played(mean_rate=chosen["mean_rate"], speedup=chosen["speedup"], duration_s=chosen["duration"])


def _value(one: Field[Any], text: Any) -> Any:
    if one.name in READ:
        return READ[one.name](text)
    return text / 1000 if one.metadata.get("ms") else text


@with_scenario("policy", "penstock", "penstock, psps, static:peak, oracle, ds2, flink:short, keda, …")
def simulate(chosen: Chosen) -> None:
    """Try a policy on a trace, event by event, without Spark."""
    if chosen["policy"].partition(":")[0] == "e2df" and chosen["levels"] is None:
        chosen["levels"] = "both"
    run_arena(chosen, [chosen["policy"]])


def run_arena(chosen: Chosen, policies: str | list[str], jobs: int = 1) -> None:
    """Simulate these policies in so many processes, print and write what came out."""
    from penstock.report.terminal import results_table, verdict_text
    from penstock.report.verdict import forecasts
    from penstock.simulator.arena import Arena, ranked  # numba takes its time to load

    arena = Arena(scenario_of(chosen), policies)
    console.print(_what(arena), highlight=False)
    with _progress() as watch:
        results = arena.run(store=chosen["store"], watch=watch, jobs=jobs)
    shown = ranked(results)
    console.print(results_table(shown, console.width))
    console.print(verdict_text(shown))
    for line in filter(None, (forecasts(shown), *_workers(shown, arena), *_state(shown), *_deciders(shown))):
        console.print(line, highlight=False)
    if chosen["json_file"] is not None:
        write_text(chosen["json_file"], json.dumps([one.as_json() for one in results], indent=2) + "\n")
    if chosen["html"] is not None:
        _write_page(arena, results, chosen["html"])
        console.print(f"report: {chosen['html']}", highlight=False, soft_wrap=True)


def _what(arena: Arena) -> str:
    trace, scenario = arena.prepared.trace, arena.scenario
    length = f"{trace.duration_s:,.0f} s" if trace.duration_s < 2 * DAY_S else f"{trace.duration_s / DAY_S:,.1f} days"
    gaps = f"; {trace.note}" if trace.note else ""
    return (
        f"{scenario.name} under {trace.name}: {length}, {trace.events:,.0f} events, mean {trace.mean:,.4g}/s, "
        f"peak {trace.peak:,.4g}/s{gaps}; td {scenario.contest.td_s:g} s, actuation {scenario.plant.actuation}"
    )


def _workers(results: Sequence[SimulationResult], arena: Arena) -> list[str]:
    """What became of the workers, where there are any."""
    cluster = arena.prepared.scenario.cluster
    if cluster.levels is None:
        return []
    several = len(results) > 1
    saved = ", ".join(f"{count} of {name}" for name, count in (cluster.deployed or {}).items())
    return [f"saved: of the paper's static deployment, {saved}"] * bool(saved) + [
        f"workers{f' under {one.policy}' if several else ''}: {one.worker_seconds:,.0f} worker-seconds, "
        f"{one.workers_saved:.1%} fewer than {cluster.workers} all the time"
        for one in results
        if one.worker_seconds is not None  # the oracle needs none
    ]


def _deciders(results: Sequence[SimulationResult]) -> list[str]:
    """Who decided from when on, where there is somebody in the shadow."""
    several = len(results) > 1
    return [f"{f'{one.policy}, ' if several else ''}{told}" for one in results for told in one.deciders]


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
def _progress() -> Iterator[Watch]:
    """A bar for every policy, as it runs."""
    columns = (TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        waiting = progress.add_task("getting ready", total=None)
        bars: dict[str, Any] = {}

        def watch(policy: str, now_s: float, end_s: float) -> None:
            if policy not in bars:
                progress.update(waiting, visible=False)
                bars[policy] = progress.add_task(policy, total=end_s)
            progress.update(bars[policy], completed=now_s)

        yield watch


def _write_page(arena: Arena, results: Sequence[SimulationResult], path: Path) -> None:
    from penstock.report.arena import ArenaReport
    from penstock.report.arena_page import arena_page  # matplotlib takes its time to load
    from penstock.report.page import write_page

    write_page(path, arena_page(ArenaReport(scenario=arena.prepared.scenario, results=results)))
