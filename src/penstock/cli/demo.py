"""`penstock demo`: the Twitter application of the PSPS paper on this machine."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console
from penstock.cli.run import drive, run_folder
from penstock.errors import InputError
from penstock.policy.penstock import LATE, TARGET_MS
from penstock.workload import DAY_S, Trace, load_trace, made_trace
from penstock.workload.data import data_folder, find_file

DEMO_TRACE = "twitter_stream_sample_2021_burst_1s.csv"
DEMO_S = 120.0


def demo(
    seconds: Annotated[float, typer.Option(help="How long it should take.")] = DEMO_S,
    late: given.Late = LATE,
    target_ms: given.TargetMs = TARGET_MS,
    json_file: given.JsonFile = None,
) -> None:
    """The Twitter application of the PSPS paper under two hours of bursty traffic, squeezed into two minutes."""
    with clear_errors():
        from penstock.apps.deployment import Deployment  # these, and Spark, take their time to load
        from penstock.elastic import Elastic
        from penstock.engine.options import RunOptions
        from penstock.engine.run import Run

        whole = _trace(seconds)
        trace = whole.compressed(whole.duration_s / seconds)
        with run_folder("twitter") as folder:
            deployment = Deployment(app="twitter", grouping="load_balancing")
            options = RunOptions(folder=folder, report_every_s=0.25)
            live = Elastic(
                Run(deployment.topology(folder), deployment.source(trace), options=options),
                late=late,
                target_ms=target_ms,
                forecaster="last_value",
                day_s=DAY_S * seconds / whole.duration_s,
                store=folder / "metrics.db",
            )
        drive(live, "twitter", json_file, folder / "report.html")


def _trace(seconds: float) -> Trace:
    """The trace as it was recorded, or one made like it where that is not there; says which."""
    if not 0 < seconds < math.inf:
        raise InputError(f"--seconds must be above 0; got {seconds:g}")
    real = find_file(data_folder("traces"), DEMO_TRACE)
    whole = load_trace(real) if real else made_trace("spikes", mean_rate=118.0, duration_s=7200.0, seed=1)
    kind = "real" if real else "made"
    console.print(f"twitter under {whole.name} ({kind}), {whole.duration_s:g} s in {seconds:g} s, policy penstock")
    return whole
