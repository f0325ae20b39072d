"""`penstock`: run a topology on Spark, or the demo."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from penstock.cli.drive import Driven, drive, prepare
from penstock.cli.live import LiveView
from penstock.cli.request import RunRequest, data_folder, new_folder, parse_pairs
from penstock.cli.summary import headline, metrics_table, operators_table, summarise
from penstock.errors import PenstockError
from penstock.report import RunReport, write_run_report
from penstock.workload import made_trace, save_trace

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console(stderr=True)

DEMO_TRACE = "twitter_stream_sample_2021_burst_1s.csv"
DEMO_S = 120.0


@app.callback()
def main(verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every decision.")] = False) -> None:
    """Predictive elasticity for stream processing on Spark."""
    level = logging.INFO if verbose else logging.WARNING
    handler = RichHandler(console=console, show_path=False, show_level=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("penstock").setLevel(level)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


@app.command()
def run(
    topology: Annotated[str, typer.Argument(metavar="APP", help="A shipped application, or module:topology.")],
    trace: Annotated[Path | None, typer.Option(help="CSV with time_s,rate.")] = None,
    rate: Annotated[float | None, typer.Option(help="A constant rate, events per second.")] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds; the trace's own length by default.")] = None,
    mean_rate: Annotated[float | None, typer.Option(help="Rescale the trace to this mean rate.")] = None,
    speedup: Annotated[float, typer.Option(help="Play the trace this many times faster.")] = 1.0,
    mode: Annotated[str, typer.Option(help="realtime or microbatch.")] = "realtime",
    replicas: Annotated[str | None, typer.Option(help="Replicas to start with: clean=2,store=4.")] = None,
    pool: Annotated[str | None, typer.Option(help="Pools: clean=8,store=4.")] = None,
    service_ms: Annotated[str | None, typer.Option(help="Service times of a shipped app: clean=10,store=5.")] = None,
    grouping: Annotated[
        str | None, typer.Option(help="shuffle or load_balancing, for operators without a key.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="psps, static:4, static:peak, …; none by default.")] = None,
    td: Annotated[float, typer.Option(help="Length of the control interval, seconds.")] = 5.0,
    forecaster: Annotated[
        str | None, typer.Option(help="Size for its forecast: last_value, moving_average:5, drift:5.")
    ] = None,
    slots: Annotated[int | None, typer.Option(help="Replicas that all operators may have together.")] = None,
    cooldown: Annotated[float, typer.Option(help="Seconds an operator must wait to shrink after a change.")] = 0.0,
    warm_up: Annotated[float, typer.Option(help="Seconds to measure execution times before the loop starts.")] = 2.0,
    t_out: Annotated[float | None, typer.Option(help="Drop events older than this, seconds.")] = None,
    q_size: Annotated[int | None, typer.Option(help="Drop events that find this many waiting.")] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Length of a real-time batch, seconds.")] = 300.0,
    events: Annotated[Path | None, typer.Option(help="A file of events, or a folder of real ones.")] = None,
    sink: Annotated[str | None, typer.Option(help="Database URL for the shipped apps' sinks.")] = None,
    store: Annotated[str | None, typer.Option(help="Where metrics go: a file or a database URL.")] = None,
    seed: Annotated[int, typer.Option(help="Of made events.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the summary here; - for the screen.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots here.")] = None,
) -> None:
    """Run a topology on Spark under a trace or a constant rate."""
    with _clear_errors():
        request = RunRequest(
            app=topology,
            trace=trace,
            rate=rate,
            duration_s=duration,
            mean_rate=mean_rate,
            speedup=speedup,
            mode=mode,
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
        )
        _run(request, store, json_file, html)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long it should take.")] = DEMO_S,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the summary here.")] = None,
) -> None:
    """The Twitter application of the PSPS paper under two hours of bursty traffic, squeezed into two minutes."""
    with _clear_errors():
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
    request: RunRequest, store: str | None, json_file: Path | None, html: Path | None, *, report: bool = False
) -> None:
    folder = new_folder(request.app)
    try:
        driven = prepare(request, folder, store)
    except PenstockError:
        folder.rmdir()
        raise
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with LiveView(console).shown() as view:
        counters = drive(driven, view)
    summary = summarise(driven, counters)
    _tell(driven, summary)
    if json_file is not None:
        _write(json_file, json.dumps(summary, indent=2) + "\n")
    if html is not None or report:
        _report(driven, summary, html or folder / "report.html")


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _tell(driven: Driven, summary: dict[str, Any]) -> None:
    console.print(headline(summary), highlight=False)
    console.print(operators_table(summary))
    console.print(metrics_table(summary))
    console.print(f"events, metrics and Spark's log: {driven.folder}", highlight=False, soft_wrap=True)


def _report(driven: Driven, summary: dict[str, Any], path: Path) -> None:
    write_run_report(path, RunReport.from_store(driven.store, driven.run.id, summary))
    console.print(f"report: {path}", highlight=False, soft_wrap=True)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """A mistake of the user's is one sentence, not a stack trace."""
    try:
        yield
    except PenstockError as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print("stopped")
        raise typer.Exit(130) from None
