"""`penstock run`: a topology on Spark, with a live view and what is left of it at the end."""

from __future__ import annotations

import json
import math
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options as given
from penstock.cli.console import clear_errors, console, write_text
from penstock.cli.ui import Cert, InsecureListen, Key, given_listen
from penstock.common.checks import positive
from penstock.common.files import private_folder
from penstock.errors import InputError
from penstock.metrics.interval import DEFAULT_TD_S
from penstock.policy.penstock import LATE, TARGET_MS
from penstock.workload import DAY_S, Trace, played

if TYPE_CHECKING:
    from penstock.apps.deployment import Deployment
    from penstock.elastic import Elastic, ElasticWorkers
    from penstock.engine.options import RunOptions
    from penstock.engine.run import Run
    from penstock.ui.listen import Listen

Chosen = given.Chosen


def run(
    topology: given.AppArgument,
    source: Annotated[
        list[str] | None, typer.Option(help="kafka://host:9092/topic?…; NAME=URL where there are several.")
    ] = None,
    trace: given.TraceFile = None,
    rate: given.Rate = None,
    duration: given.Duration = None,
    mean_rate: given.MeanRate = None,
    speedup: given.Speedup = 1.0,
    replicas: given.Replicas = None,
    pool: given.Pool = None,
    service_ms: given.ServiceMs = None,
    grouping: given.Grouping = None,
    policy: Annotated[str, typer.Option(help="penstock, psps, static:4, …; none only watches.")] = "penstock",
    late: given.Late = LATE,
    target_ms: given.TargetMs = TARGET_MS,
    td: given.Td = DEFAULT_TD_S,
    forecaster: given.Forecaster = None,
    slots: given.Slots = None,
    cooldown: given.Cooldown = 0.0,
    calendar: given.CalendarText = None,
    shadow: given.ShadowPolicy = None,
    canary: given.CanaryPolicy = None,
    warm_up: Annotated[float, typer.Option(help="Seconds to measure execution times before the loop starts.")] = 2.0,
    t_out: given.TOut = None,
    q_size: given.QSize = None,
    cluster: Annotated[
        str | None, typer.Option(help="local: on Spark workers of its own, which come and go; or spark://HOST:PORT.")
    ] = None,
    workers: Annotated[str | None, typer.Option(help="With --cluster: how many, as 4 or 2..8.")] = None,
    encrypt: Annotated[
        bool | None,
        typer.Option(help="TLS among driver and replicas; by default where the driver is not on loopback."),
    ] = None,
    ports: Annotated[str | None, typer.Option(help="Ports for all that the run listens on, as 40000-40100.")] = None,
    conf: Annotated[list[str] | None, typer.Option(help="A Spark setting, as KEY=VALUE; may be repeated.")] = None,
    properties_file: Annotated[Path | None, typer.Option(help="Spark settings, a key and a value on a line.")] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds from checkpoint to checkpoint.")] = 10.0,
    checkpoints: Annotated[
        str | None, typer.Option(help="Another place for checkpoints and state than the run's folder: s3://bucket/run.")
    ] = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Have the next attempt wait beside the one at work: soon back after a fault."),
    ] = False,
    events: given.EventsFile = None,
    sink: Annotated[
        str | None, typer.Option(help="Where results go: URL of a database, a topic (kafka://…) or a queue (amqp://…).")
    ] = None,
    store: Annotated[str | None, typer.Option(help="Where metrics go: a file or a database URL.")] = None,
    seed: given.Seed = 0,
    resume: Annotated[Path | None, typer.Option(help="Carry on the run in this folder; options as then.")] = None,
    json_file: given.JsonFile = None,
    html: given.HtmlFile = None,
    ui: Annotated[str | None, typer.Option(metavar="[HOST:]PORT", help="Show it in a browser there.")] = None,
    cert: Cert = None,
    key: Key = None,
    insecure_listen: InsecureListen = False,
) -> None:
    """Run a topology on Spark: on a stream of Kafka, under a trace, or at a constant rate."""
    chosen = locals()
    with clear_errors():
        shown = given_listen(ui, cert, key, insecure_listen)
        with run_folder(topology, resume) as folder:
            live = assembled(chosen, folder, shown)
        drive(live, topology, json_file, html, duration if source else None)


def assembled(chosen: Chosen, folder: Path, shown: Listen | None) -> Elastic:
    """The run that was asked for, with its control loop, checked as far as can be before Spark starts."""
    from penstock.elastic import ElasticWorkers  # this, and Spark, take their time to load
    from penstock.engine.run import Run

    if chosen["workers"] is not None and chosen["cluster"] is None:
        raise InputError("--workers needs --cluster local or spark://HOST:PORT")
    trace = trace_of(chosen)
    deployment = _deployment(chosen)
    built = deployment.topology(folder)
    options, on = _options(chosen, folder), None
    if chosen["cluster"] is not None:
        workers = chosen["workers"] or "2..4"
        on = ElasticWorkers(built, workers, cluster=chosen["cluster"], expected=trace, folder=folder)
        options = on.options(options)
    first = given.parse_pairs("--replicas", chosen["replicas"], int)
    sources = deployment.sources(chosen["source"]) if trace is None else deployment.source(trace)
    run_ = Run(built, sources, replicas=first, options=options)
    run_.check()
    return _elastic(chosen, run_, folder, on, shown)


def trace_of(chosen: Chosen) -> Trace | None:
    """The trace as it will be played: a file's, rescaled, compressed and cut, or a constant rate; None for a source."""
    trace, rate, duration_s, mean_rate, speedup = (chosen[name] for name in given.INPUT)
    if chosen["source"]:
        if trace is not None or rate is not None:
            raise InputError("give one of --source URL, --trace FILE and --rate R")
        if mean_rate is not None or speedup != 1.0 or chosen["events"] is not None:
            raise InputError("--mean-rate, --speedup and --events are for a trace or a rate, and not for --source")
        if duration_s is not None:
            positive("run", "--duration", duration_s)
        return None
    found = given.read_input(trace, rate, duration_s, mean_rate, speedup)
    if found is None:
        raise InputError("give its input with --source URL, --trace FILE or --rate R")
    if found.note:
        console.print(f"{found.name}: {found.note}", highlight=False)
    return played(found, mean_rate, speedup, duration_s)


def _deployment(chosen: Chosen) -> Deployment:
    from penstock.apps.deployment import Deployment

    return Deployment(
        app=chosen["topology"],
        pools=given.parse_pairs("--pool", chosen["pool"], int),
        service_ms=given.parse_pairs("--service-ms", chosen["service_ms"], float),
        **{name: chosen[name] for name in ("grouping", "sink", "events", "seed")},
    )


def _options(chosen: Chosen, folder: Path) -> RunOptions:
    from penstock.engine.options import RunOptions

    return RunOptions(
        t_out_s=chosen["t_out"],
        checkpoint_every_s=chosen["checkpoint_every"],
        folder=folder,
        spark=given.parse_settings(chosen["conf"], chosen["properties_file"]),
        **{name: chosen[name] for name in ("q_size", "checkpoints", "encrypt", "ports", "standby")},
    )


def _elastic(chosen: Chosen, run_: Run, folder: Path, on: ElasticWorkers | None, shown: Listen | None) -> Elastic:
    from penstock.elastic import Elastic

    return Elastic(
        run_,
        None if chosen["policy"] == "none" else chosen["policy"],
        td_s=chosen["td"],
        cooldown_s=chosen["cooldown"],
        warm_up_s=chosen["warm_up"],
        day_s=DAY_S / chosen["speedup"],
        store=chosen["store"] or folder / "metrics.db",
        workers=on,
        settings={name: chosen[name] for name in ("speedup", "grouping", "seed")},
        ui=shown,
        **{name: chosen[name] for name in ("forecaster", "slots", "late", "target_ms", "calendar", "shadow", "canary")},
    )


@contextmanager
def run_folder(app: str, resume: Path | None = None) -> Iterator[Path]:
    """A new folder under `out/` for what a run leaves behind, gone if it cannot begin; or that of a run to carry on."""
    if resume is not None:
        if not (resume / "run.json").is_file():
            raise InputError(f"--resume: no run in {str(resume)!r}, as there is no file run.json")
        yield resume.resolve()
        return
    folder = new_folder(app)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # also what trying the sinks has made
        raise


def new_folder(app: str) -> Path:
    """A folder of its own under `out/`, by name and time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = Path("out") / f"{app.replace(':', '-')}-{stamp}"
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    private_folder(folder.parent)
    private_folder(folder)
    return folder.resolve()


def drive(live: Elastic, app: str, json_file: Path | None, html: Path | None, duration_s: float | None = None) -> None:
    """Run it to its end, showing how it is, then tell what it came to; Ctrl-C finishes what is in flight first.

    A stream that does not end by itself ends after the duration, if there is one.
    """
    from penstock.cli.live import LiveView, tell

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with LiveView(console).shown() as view, live:
        _say_where(live)
        end_s = time.monotonic() + (math.inf if duration_s is None else duration_s)
        try:
            while not (live.wait(0.25) or live.stopping) and time.monotonic() < end_s:
                view(live)
        except KeyboardInterrupt:
            live.run.stop_sources()
            console.print("finishes what is in flight, for up to 30 s; Ctrl-C again ends it at once", highlight=False)
        view(live)
    summary = {"app": app, **live.summary()}
    tell(console, summary)
    if live.stopping:
        carried_on = "--resume FOLDER carries it on from its savepoint"
        console.print(f"stopped by order: {carried_on}", highlight=False, soft_wrap=True)
    console.print(f"events, metrics and Spark's log: {live.run.folder}", highlight=False, soft_wrap=True)
    _write(live, summary, json_file, html)


def _write(live: Elastic, summary: dict[str, Any], json_file: Path | None, html: Path | None) -> None:
    """The summary and the report, where they are wanted."""
    if json_file is not None:
        write_text(json_file, json.dumps(summary, indent=2) + "\n")
    if html is not None and live.store is not None:
        from penstock.report.page import write_page
        from penstock.report.run import RunReport
        from penstock.report.run_page import run_page  # so does matplotlib

        with closing(live.store):
            write_page(html, run_page(RunReport.from_store(live.store, live.name, summary)))
        console.print(f"report: {html}", highlight=False, soft_wrap=True)


def _say_where(live: Elastic) -> None:
    """Where it is shown, and the token to steer it with."""
    if live.ui_url is None or live.access is None:
        return
    console.print(f"dashboard: {live.ui_url}run/{live.name}", highlight=False, soft_wrap=True)
    where = f"shown once; penstock ctl finds it in {live.run.folder}"
    console.print(f"token to steer it: {live.access.token} ({where})", highlight=False, soft_wrap=True)
