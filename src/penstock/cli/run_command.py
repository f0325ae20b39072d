"""`penstock run` and `penstock demo`: a topology on Spark."""

from __future__ import annotations

import json
import math
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console
from penstock.cli.files import write_text
from penstock.cli.request import RunRequest, data_folder, held_folder, new_folder, parse_pairs
from penstock.errors import InputError
from penstock.workload import made_trace, save_trace

if TYPE_CHECKING:
    from penstock.cli.drive import Driven

DEMO_TRACE = "twitter_stream_sample_2021_burst_1s.csv"
DEMO_S = 120.0


def run(
    topology: given.AppArgument,
    trace: given.TraceFile = None,
    rate: given.Rate = None,
    duration: given.Duration = None,
    mean_rate: given.MeanRate = None,
    speedup: given.Speedup = 1.0,
    replicas: given.Replicas = None,
    pool: given.Pool = None,
    service_ms: given.ServiceMs = None,
    grouping: given.Grouping = None,
    policy: Annotated[str | None, typer.Option(help="psps, static:4, static:peak, …; none by default.")] = None,
    td: given.Td = 5.0,
    forecaster: given.Forecaster = None,
    slots: given.Slots = None,
    cooldown: given.Cooldown = 0.0,
    warm_up: Annotated[float, typer.Option(help="Seconds to measure execution times before the loop starts.")] = 2.0,
    t_out: given.TOut = None,
    q_size: given.QSize = None,
    cluster: Annotated[
        str | None, typer.Option(help="local: on Spark workers of its own, which come and go; or spark://HOST:PORT.")
    ] = None,
    workers: Annotated[str | None, typer.Option(help="With --cluster: how many, as 4 or 2..8.")] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Length of a real-time batch, seconds.")] = 300.0,
    events: given.EventsFile = None,
    sink: Annotated[
        str | None, typer.Option(help="For the shipped apps' sinks: a database's URL, or a queue's (amqp://…).")
    ] = None,
    store: Annotated[str | None, typer.Option(help="Where metrics go: a file or a database URL.")] = None,
    seed: given.Seed = 0,
    resume: Annotated[Path | None, typer.Option(help="Carry on the run in this folder; options as then.")] = None,
    json_file: given.JsonFile = None,
    html: given.HtmlFile = None,
) -> None:
    """Run a topology on Spark under a trace or a constant rate."""
    with clear_errors():
        request = RunRequest(
            app=topology,
            trace=trace,
            rate=rate,
            duration_s=duration,
            mean_rate=mean_rate,
            speedup=speedup,
            replicas=parse_pairs("--replicas", replicas, int),
            pools=parse_pairs("--pool", pool, int),
            service_ms=parse_pairs("--service-ms", service_ms, float),
            grouping=grouping,
            t_out_s=t_out,
            q_size=q_size,
            seed=seed,
            events=events,
            sink=sink,
            policy=policy,
            td_s=td,
            forecaster=forecaster,
            slots=slots,
            cooldown_s=cooldown,
            warm_up_s=warm_up,
            checkpoint_every_s=checkpoint_every,
            cluster=cluster,
            workers=workers,
        )
        _run(request, store, json_file, html, folder=None if resume is None else held_folder(resume))


def demo(
    seconds: Annotated[float, typer.Option(help="How long it should take.")] = DEMO_S,
    json_file: given.JsonFile = None,
) -> None:
    """The Twitter application of the PSPS paper under two hours of bursty traffic, squeezed into two minutes."""
    with clear_errors():
        if not 0 < seconds < math.inf:
            raise InputError(f"--seconds must be above 0; got {seconds:g}")
        folder = data_folder("traces")
        real = folder / DEMO_TRACE if folder is not None and (folder / DEMO_TRACE).is_file() else None
        made = made_trace("spikes", mean_rate=118.0, duration_s=7200.0, seed=1)
        path = real or save_trace(made, new_folder("trace") / f"{made.name}.csv")
        console.print(f"twitter under {path.name} ({'real' if real else 'made'}), 7200 s in {seconds:g} s, policy psps")
        request = RunRequest(
            app="twitter",
            trace=path,
            speedup=7200.0 / seconds,
            policy="psps:predecessor_backlog",
            td_s=2.0,
            forecaster="last_value",
            grouping="load_balancing",
        )
        _run(request, None, json_file, None, report=True)


def _run(
    request: RunRequest,
    store: str | None,
    json_file: Path | None,
    html: Path | None,
    *,
    report: bool = False,
    folder: Path | None = None,
) -> None:
    from penstock.cli.drive import drive, prepare  # Spark takes its time to load
    from penstock.cli.live import LiveView
    from penstock.cli.summary import summarise

    fresh, folder = folder is None, folder or new_folder(request.app)
    try:
        driven = prepare(request, folder, store)
    except BaseException:
        if fresh:
            with suppress(OSError):  # there is something in it after all
                folder.rmdir()
        raise
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with LiveView(console).shown() as view:
        counters = drive(driven, view)
    summary = summarise(driven, counters)
    _tell(driven, summary)
    if json_file is not None:
        write_text(json_file, json.dumps(summary, indent=2) + "\n")
    if html is not None or report:
        _report(driven, summary, html or folder / "report.html")


def _tell(driven: Driven, summary: dict[str, Any]) -> None:
    from penstock.cli.summary import headline, metrics_table, operators_table, workers_line

    console.print(headline(summary), highlight=False)
    console.print(operators_table(summary))
    console.print(metrics_table(summary))
    if "workers" in summary:
        console.print(workers_line(summary["workers"]), highlight=False)
    console.print(f"events, metrics and Spark's log: {driven.folder}", highlight=False, soft_wrap=True)


def _report(driven: Driven, summary: dict[str, Any], path: Path) -> None:
    from penstock.report.run_report import RunReport, write_run_report  # so does matplotlib

    write_run_report(path, RunReport.from_store(driven.store, driven.name, summary))
    console.print(f"report: {path}", highlight=False, soft_wrap=True)
