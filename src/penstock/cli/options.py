"""Options that several commands have, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.errors import InputError
from penstock.simulator.scenario import Cluster, Contest, Plant, Scenario
from penstock.workload import Trace, constant, load_trace

DEFAULT_DURATION_S = 60.0
INPUT = ("trace", "rate", "duration", "mean_rate", "speedup")  # the options of `read_input`, in its order
Chosen = dict[str, Any]  # the options as given, by the names of their parameters
OF_SCENARIO = {  # its fields that are options, by name; what they mean is said there
    one.name: one for part in (Scenario, Plant, Contest, Cluster) for one in fields(part) if one.metadata.get("help")
}


def _as_in_scenario(field: str) -> Any:
    return typer.Option(help=OF_SCENARIO[field].metadata["help"])


AppArgument = Annotated[str, typer.Argument(metavar="APP", help="A shipped application, or module:topology.")]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="CSV with time_s,rate.")]
Rate = Annotated[float | None, typer.Option(help="A constant rate, events per second.")]
Duration = Annotated[float | None, typer.Option(help="Seconds; the trace's own length by default.")]
MeanRate = Annotated[float | None, typer.Option(help="Rescale the trace to this mean rate.")]
Speedup = Annotated[float, typer.Option(help="Play the trace this many times faster.")]
Replicas = Annotated[str | None, _as_in_scenario("replicas")]
Pool = Annotated[str | None, _as_in_scenario("pool")]
ServiceMs = Annotated[str | None, _as_in_scenario("service_ms")]
Grouping = Annotated[str | None, _as_in_scenario("grouping")]
Td = Annotated[float, _as_in_scenario("td_s")]
Late = Annotated[float, _as_in_scenario("late")]
TargetMs = Annotated[float, _as_in_scenario("target_ms")]
Forecaster = Annotated[str | None, _as_in_scenario("forecaster")]
Slots = Annotated[int | None, _as_in_scenario("slots")]
Cooldown = Annotated[float, _as_in_scenario("cooldown_s")]
CalendarText = Annotated[str | None, _as_in_scenario("calendar")]
ShadowPolicy = Annotated[str | None, _as_in_scenario("shadow")]
CanaryPolicy = Annotated[str | None, _as_in_scenario("canary")]
TOut = Annotated[float | None, _as_in_scenario("t_out_s")]
QSize = Annotated[int | None, _as_in_scenario("q_size")]
EventsFile = Annotated[Path | None, _as_in_scenario("events")]
Seed = Annotated[int, _as_in_scenario("seed")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the results here; - for the screen.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write a report with plots here.")]


def read_input(
    trace: Path | None, rate: float | None, duration_s: float | None, mean_rate: float | None, speedup: float
) -> Trace | None:
    """A file's trace as it is, or a constant rate; None where neither was given."""
    if trace is not None and rate is not None:
        raise InputError("give either --trace FILE or --rate R, not both")
    if rate is None:
        return None if trace is None else load_trace(trace)
    if mean_rate is not None or speedup != 1.0:
        raise InputError("--mean-rate and --speedup change a trace; with --rate there is none")
    return constant(rate, DEFAULT_DURATION_S if duration_s is None else duration_s)


def parse_pairs(option: str, text: str | None, kind: Callable[[str], Any]) -> dict[str, Any]:
    """`clean=2,store=4` as a mapping.

    >>> parse_pairs("--replicas", "clean=2,store=4", int)
    {'clean': 2, 'store': 4}
    """
    pairs: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part:
            continue
        name, sign, value = part.partition("=")
        try:
            pairs[name.strip()] = kind(value)
        except ValueError:
            sign = ""
        if not sign:
            raise InputError(f"{option}: must be operator={kind.__name__},…; got {part!r}")
    return pairs


def parse_settings(pairs: Sequence[str] | None, file: Path | None) -> dict[str, str]:
    """Spark's settings: those of the file, and over them those given one by one."""
    from penstock.engine.session import read_settings  # Spark takes its time to load

    settings = read_settings(file) if file is not None else {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not (key and sign):
            raise InputError(f"--conf: must be KEY=VALUE; got {pair!r}")
        settings[key.strip()] = value
    return settings
