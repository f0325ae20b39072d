"""`penstock simulate` and `penstock compare`: policies on the user's own trace, without Spark."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console
from penstock.cli.options import parse_pairs

TargetMs = Annotated[float, typer.Option(help="An event that takes longer is late, ms.")]
Actuation = Annotated[str, typer.Option(help="What a change of replicas costs: pool, restart or restart-lossy.")]
Restart = Annotated[float, typer.Option(help="How long a restart takes, seconds.")]
HopMs = Annotated[float, typer.Option(help="From one operator to the next, ms.")]
ActivationDelay = Annotated[float, typer.Option(help="Until an activated replica works, seconds.")]
Arrivals = Annotated[str, typer.Option(help="even (as a run on Spark plays a trace) or poisson.")]
Skew = Annotated[float | None, typer.Option(help="Of the events' values: 0 is uniform, 1.5 is Zipf 1.5.")]
BalanceBy = Annotated[str, typer.Option(help="What load_balancing looks at: booked, or used as in the paper.")]
Levels = Annotated[
    str | None, typer.Option(help="Replicas on workers: static, application, or both come and go (e2df's default).")
]
Workers = Annotated[int | None, typer.Option(help="Workers, at most; as many as the peak needs, and 1.")]
Regions = Annotated[
    str | None, typer.Option(help="Where workers are: near;far:capacity=4,price=0.6,start=30,delay_ms=20.")
]
StateBytes = Annotated[str | None, typer.Option(help="Bytes of state for each key, by operator: count=200.")]
MoveBandwidth = Annotated[float, typer.Option(help="How fast state moves, bytes per second.")]
MoveLatency = Annotated[float, typer.Option(help="Until a replica hears that moved state is there, seconds.")]
Kept = Annotated[str | None, typer.Option("--store", help="Keep the intervals there: a file or a database URL.")]
Calibrate = Annotated[str | None, typer.Option(help="Store of a live run: take hop delay and times from it.")]


def simulate(
    topology: given.AppArgument,
    policy: Annotated[str, typer.Option(help="psps, static:peak, oracle, ds2, flink:short, keda, …")] = "psps",
    trace: given.TraceFile = None,
    rate: given.Rate = None,
    duration: given.Duration = None,
    mean_rate: given.MeanRate = None,
    speedup: given.Speedup = 1.0,
    forecaster: given.Forecaster = None,
    grouping: given.Grouping = None,
    td: given.Td = 5.0,
    t_out: given.TOut = None,
    q_size: given.QSize = None,
    target_ms: TargetMs = 2000.0,
    actuation: Actuation = "pool",
    restart: Restart = 30.0,
    hop_ms: HopMs = 2.5,
    activation_delay: ActivationDelay = 0.05,
    state_bytes: StateBytes = None,
    move_bandwidth: MoveBandwidth = 10e6,
    move_latency: MoveLatency = 0.1,
    arrivals: Arrivals = "even",
    skew: Skew = None,
    balance_by: BalanceBy = "booked",
    calibrate: Calibrate = None,
    replicas: given.Replicas = None,
    pool: given.Pool = None,
    service_ms: given.ServiceMs = None,
    slots: given.Slots = None,
    cooldown: given.Cooldown = 0.0,
    levels: Levels = None,
    workers: Workers = None,
    regions: Regions = None,
    events: given.EventsFile = None,
    store: Kept = None,
    seed: given.Seed = 0,
    json_file: given.JsonFile = None,
    html: given.HtmlFile = None,
) -> None:
    """Try a policy on a trace, event by event, without Spark."""
    if policy.partition(":")[0] == "e2df" and levels is None:
        levels = "both"
    _simulate(locals(), [policy])


def compare(
    topology: given.AppArgument,
    policies: Annotated[str, typer.Option(help="all, or names separated by commas.")] = "all",
    trace: given.TraceFile = None,
    rate: given.Rate = None,
    duration: given.Duration = None,
    mean_rate: given.MeanRate = None,
    speedup: given.Speedup = 1.0,
    forecaster: given.Forecaster = None,
    grouping: given.Grouping = None,
    td: given.Td = 5.0,
    t_out: given.TOut = None,
    q_size: given.QSize = None,
    target_ms: TargetMs = 2000.0,
    actuation: Actuation = "pool",
    restart: Restart = 30.0,
    hop_ms: HopMs = 2.5,
    activation_delay: ActivationDelay = 0.05,
    state_bytes: StateBytes = None,
    move_bandwidth: MoveBandwidth = 10e6,
    move_latency: MoveLatency = 0.1,
    arrivals: Arrivals = "even",
    skew: Skew = None,
    balance_by: BalanceBy = "booked",
    calibrate: Calibrate = None,
    replicas: given.Replicas = None,
    pool: given.Pool = None,
    service_ms: given.ServiceMs = None,
    slots: given.Slots = None,
    cooldown: given.Cooldown = 0.0,
    levels: Levels = None,
    workers: Workers = None,
    regions: Regions = None,
    events: given.EventsFile = None,
    store: Kept = None,
    seed: given.Seed = 0,
    json_file: given.JsonFile = None,
    html: given.HtmlFile = None,
) -> None:
    """Compare policies on the same trace; the cheapest that is on time comes first."""
    _simulate(locals(), None)


def _simulate(chosen: dict[str, Any], specs: list[str] | None) -> None:
    """What both commands do with their options."""
    with clear_errors():
        from penstock.cli.arena import run_arena  # numba takes its time to load
        from penstock.cli.simulation import SimulationRequest
        from penstock.simulator.arena import policies_named
        from penstock.simulator.options import SimulationOptions

        request = SimulationRequest(
            app=chosen["topology"],
            duration_s=chosen["duration"],
            replicas=parse_pairs("--replicas", chosen["replicas"], int),
            pools=parse_pairs("--pool", chosen["pool"], int),
            service_ms=parse_pairs("--service-ms", chosen["service_ms"], float),
            cooldown_s=chosen["cooldown"],
            **{name: chosen[name] for name in _AS_GIVEN},
            options=SimulationOptions(
                td_s=chosen["td"],
                t_out_s=chosen["t_out"],
                q_size=chosen["q_size"],
                hop_s=chosen["hop_ms"] / 1000,
                activation_delay_s=chosen["activation_delay"],
                actuation=chosen["actuation"],
                restart_s=chosen["restart"],
                target_s=chosen["target_ms"] / 1000,
                seed=chosen["seed"],
                state_bytes=parse_pairs("--state-bytes", chosen["state_bytes"], float),
                move_bandwidth=chosen["move_bandwidth"],
                move_latency_s=chosen["move_latency"],
            ),
        )
        named = specs if specs is not None else policies_named(chosen["policies"])
        run_arena(request, named, console, chosen["json_file"], chosen["html"])


_AS_GIVEN = (
    *("trace", "rate", "mean_rate", "speedup", "grouping", "balance_by", "forecaster"),
    *("slots", "arrivals", "skew", "events", "calibrate", "levels", "workers", "regions", "store"),
)
