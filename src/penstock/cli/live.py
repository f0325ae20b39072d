"""A run in the terminal: the live view while it goes on, the tables when it has ended."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.control.step import LoopState
from penstock.elastic import Elastic
from penstock.metrics.counters import CheckpointStatus, OperatorCounters, RunCounters
from penstock.metrics.paper import PUBLISHED
from penstock.metrics.rows import ManagerRow, WorkerRow

REFRESH_S = 0.5
LINE_EVERY_S = 10.0
DECISIONS_SHOWN = 6
WORKERS_SHOWN = 8
WORDS_SHOWN = 4
WIDEST_BAR = 16
_STATE_STYLES = {"starting": "dim", "joining": "dim", "draining": "yellow"}
_WORD_STYLES = {"refused": "yellow", "cancelled": "yellow", "lost": "red", "granted": "green", "done": "green"}


class LiveView:
    """Rates between two looks, drawn as a table; without a terminal, a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._last: RunCounters | None = None
        self._drawn_s = 0.0

    @contextmanager
    def shown(self) -> Iterator[LiveView]:
        """Show it as long as the block runs."""
        if not self._console.is_terminal:
            yield self
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            live.update(Text("starting Spark and the replicas …"), refresh=True)
            yield self

    def __call__(self, run: Elastic) -> None:
        """Draw the run as it is now, if it is time to."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < (REFRESH_S if self._live else LINE_EVERY_S):
            return
        self._drawn_s = now_s
        counters = run.counters()
        last, self._last = self._last or counters, counters
        if self._live is not None:
            self._live.update(self._view(run, last, counters), refresh=True)
        else:
            self._console.print(_line(run, last, counters), highlight=False, soft_wrap=True)

    def _view(self, run: Elastic, last: RunCounters, now: RunCounters) -> Group:
        sent, total = sum(now.sources.values()), _total(run)
        parts: list[RenderableType] = [
            Text(_line(run, last, now)),
            Padding(ProgressBar(total=total, completed=sent, width=60), (0, 0, 1, 0)),
            _operators(last, now),
        ]
        workers = workers_view(run.loop.state, run.started_s) if run.loop is not None else []
        return Group(*parts, *_decisions(run), *workers)


def _line(run: Elastic, last: RunCounters, now: RunCounters) -> str:
    elapsed = run.run.clock.now() - run.started_s
    sent, total = sum(now.sources.values()), _total(run)
    of = "" if total is None else f" of {total:,}"
    rate = (sent - sum(last.sources.values())) / max(now.time_s - last.time_s, 1e-9)
    recent = now.latency.since(last.latency)
    latency = f"{recent.percentile_ms(0.5):.0f}/{recent.percentile_ms(0.99):.0f} ms" if recent.count else "–"
    text = f"{elapsed:5.0f} s  sent {sent:,}{of}  {rate:,.0f}/s  latency p50/p99 {latency}"
    active = sum(len(one.active) for one in now.operators.values())
    text += f"  replicas {active}  backlog {sum(one.backlog for one in now.operators.values()):,}"
    if lag := sum(now.lag.values()):
        text += f"  outside {lag:,}"
    text += _checkpoints(run.run.checkpoint_status())
    if run.loop is not None and (seen := run.loop.state.seen) is not None and seen.forecast is not None:
        text += "  forecast " + ", ".join(f"{rates[0]:,.0f}/s" for rates in seen.forecast.rates.values())
    workers = _workers(run)
    return text + workers + (f"  restarts {now.restarts}" if now.restarts else "")


def _checkpoints(status: CheckpointStatus) -> str:
    """The last one, and how many were given up; nothing where there are none.

    >>> _checkpoints(CheckpointStatus(committed=12, took_s=0.08, age_s=4.2, given_up=1, every_s=10.0))
    '  checkpoint 12 (80 ms, 4 s ago), 1 given up'
    """
    if status.every_s is None or not (status.committed or status.given_up):
        return ""
    last = (
        f" {status.committed} ({1000 * status.took_s:.0f} ms, {status.age_s:.0f} s ago)"
        if status.committed
        else "s: none"
    )
    return f"  checkpoint{last}" + (f", {status.given_up} given up" if status.given_up else "")


def _workers(run: Elastic) -> str:
    seen = run.loop.state.seen if run.loop is not None else None
    return f"  workers {len(seen.levels.workers)}" if seen is not None and seen.levels is not None else ""


def _total(run: Elastic) -> int | None:
    """The events that there will be, if that is known."""
    return None if run.expected is None else max(1, round(run.expected.events))


def _operators(last: RunCounters, now: RunCounters) -> Table:
    table = Table(header_style="bold", expand=False)
    table.add_column("operator")
    for name in ("active", "in/s", "out/s", "backlog", "held", "booked", "busy", "et ms", "dropped"):
        table.add_column(name, justify="right")
    elapsed_s = max(now.time_s - last.time_s, 1e-9)
    for name, one in now.operators.items():
        table.add_row(name, *_cells(last.operators[name], one, elapsed_s))
    return table


def _cells(last: OperatorCounters, now: OperatorCounters, elapsed_s: float) -> list[str]:
    before, total = last.total, now.total
    received = sum(total.received.values()) - sum(before.received.values())
    busy = (total.busy_s - before.busy_s) / elapsed_s / max(len(now.active), 1)
    time_s = now.execution_time_s
    return [
        f"{len(now.active)}/{now.pool}",
        f"{received / elapsed_s:,.0f}",
        f"{(total.processed - before.processed) / elapsed_s:,.0f}",
        f"{now.backlog:,}",
        f"{now.held:,}",
        f"{now.booked:,}",
        f"{min(max(busy, 0.0), 1.0):.0%}",
        "–" if time_s is None else f"{1000 * time_s:.2f}",
        f"{sum(total.dropped.values()):,}",
    ]


def _decisions(run: Elastic) -> list[Text]:
    if run.loop is None:
        return [Text("measuring execution times on the first events …", style="dim")]
    changes = run.loop.state.changes[-DECISIONS_SHOWN:]
    return [
        Text(f"{time_s - run.started_s:5.0f} s  {decision}", overflow="ellipsis", no_wrap=True)
        for time_s, decision in changes
    ]


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def workers_view(state: LoopState, started_s: float) -> list[RenderableType]:
    """A table of the workers and a few lines below it."""
    seen = state.seen
    if seen is None or seen.levels is None:
        return []
    said = [_said(row, started_s) for row in state.said[-WORDS_SHOWN:]]
    return [Text(_workers_title(seen.levels.workers), style="bold"), _workers_table(seen.levels.workers), *said]


def _workers_title(workers: Sequence[WorkerRow]) -> str:
    """How many there are, by state, and the slots of all.

    >>> _workers_title(())
    'no workers'
    """
    if not workers:
        return "no workers"
    states = ", ".join(f"{count} {state}" for state, count in Counter(one.state for one in workers).items())
    used, slots = sum(one.hosted for one in workers), sum(one.capacity for one in workers)
    return f"workers: {states}; {used} of {slots} slots used"


def _workers_table(workers: Sequence[WorkerRow]) -> Table:
    regions = len({one.region for one in workers}) > 1
    table = Table(header_style="bold", expand=False)
    for name in ("worker", *(["region"] if regions else []), "state", "slots"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    table.add_column("used", justify="right", no_wrap=True)
    shown = workers if len(workers) <= WORKERS_SHOWN else workers[: WORKERS_SHOWN - 1]
    for one in shown:
        use = "–" if one.utilisation is None else f"{one.utilisation:.0%}"
        cells = (one.worker, *([one.region] if regions else []), one.state, _slots(one), use)
        table.add_row(*map(Text, cells), style=_STATE_STYLES.get(one.state))
    if len(shown) < len(workers):
        table.add_row(f"{len(workers) - len(shown)} more", style="dim")
    return table


def _slots(worker: WorkerRow) -> str:
    """Slots taken and free, as boxes where there are few.

    >>> about = {"number": 0, "time_s": 0.0, "worker": "w", "region": "here", "state": "available", "price": 1.0}
    >>> _slots(WorkerRow(**about, capacity=4, hosted=3, utilisation=0.5))
    '■■■□ 3/4'
    """
    taken = f"{worker.hosted}/{worker.capacity}"
    if worker.capacity > WIDEST_BAR:
        return taken
    return f"{'■' * worker.hosted}{'□' * (worker.capacity - worker.hosted)} {taken}"


def _said(row: ManagerRow, started_s: float) -> Text:
    line = Text(f"{row.time_s - started_s:5.0f} s  {row.who} ", overflow="ellipsis", no_wrap=True)
    line.append(row.word, style=_WORD_STYLES.get(row.word, ""))
    return line.append(f" {row.subject}: {row.reason}")


# ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def tell(console: Console, summary: Mapping[str, Any]) -> None:
    """What a run came to."""
    console.print(headline(summary), highlight=False)
    console.print(operators_table(summary))
    console.print(metrics_table(summary))
    if summary.get("faults"):
        console.print(faults_line(summary["faults"]), highlight=False, soft_wrap=True)
    if "workers" in summary:
        console.print(workers_line(summary["workers"]), highlight=False)


def operators_table(summary: Mapping[str, Any]) -> Table:
    """One row an operator."""
    table = Table(title="operators", title_justify="left", header_style="bold")
    for name, justify in (("operator", "left"), ("active", "right"), ("processed", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name in ("dropped", "backlog", "et ms", "busy s", "CPU s", "changes/min"):
        table.add_column(name, justify="right")
    for name, one in summary["operators"].items():
        dropped = ", ".join(f"{cause} {count}" for cause, count in one["dropped"].items()) or "0"
        table.add_row(
            name,
            f"{len(one['active'])}/{one['pool']}",
            f"{one['processed']:,}",
            dropped,
            f"{one['backlog']:,}",
            _shown(one["execution_time_ms"], 2),
            f"{one['busy_s']:.1f}",
            f"{one['cpu_s']:.1f}",
            _shown(summary.get("changes_per_minute", {}).get(name), 1),
        )
    return table


def metrics_table(summary: Mapping[str, Any]) -> Table:
    """The four metrics, the paper's beside them where it ran the same application."""
    published = PUBLISHED.get(str(summary["app"]))
    paper = dataclasses.astuple(published) if published else None
    table = Table(title="the four metrics", title_justify="left", header_style="bold")
    table.add_column("")
    table.add_column("here", justify="right")
    if paper:
        table.add_column("paper", justify="right")
    rows = (
        ("saved resources", _shown(summary["saved_resources"], 4)),
        ("throughput degradation", _shown(summary["throughput_degradation"], 4)),
        ("processed ratio", _shown(summary["processed_ratio"], 4)),
        ("latency ms (mean)", _shown(summary["latency_ms"]["mean"], 1)),
    )
    for number, (name, value) in enumerate(rows):
        table.add_row(name, value, *([f"{paper[number]:g}"] if paper else []))
    return table


def headline(summary: Mapping[str, Any]) -> str:
    """What happened to the events, in a line."""
    dropped = sum(summary["dropped"].values())
    latency = summary["latency_ms"]
    return (
        f"{summary['events']:,} events sent, {summary['processed']:,} processed, {dropped:,} dropped, "
        f"{summary['repeated']:,} repeated; "
        f"latency p50 {_shown(latency['p50'], 0)} ms, p99 {_shown(latency['p99'], 0)} ms; "
        f"{summary['duration_s']:.0f} s, {summary['restarts']} restarts, "
        f"{summary['checkpoints']['committed']} checkpoints"
    )


def faults_line(faults: Sequence[Mapping[str, Any]]) -> str:
    """How often the query died, for how long events stood still, and of what it died last.

    >>> faults_line([{"seconds": 2.0, "cause": "x"}, {"seconds": 4.0, "cause": "Python worker exited unexpectedly"}])
    'faults: 2, events stood still for 3.0 s (median), 4.0 s (longest); the last: Python worker exited unexpectedly'
    """
    lasted = [one["seconds"] for one in faults if one["seconds"] is not None]
    stood = f", events stood still for {median(lasted):.1f} s (median), {max(lasted):.1f} s (longest)" if lasted else ""
    return f"faults: {len(faults)}{stood}; the last: {faults[-1]['cause']}"


def workers_line(workers: Mapping[str, Any]) -> str:
    """What became of the workers, in a line.

    >>> workers_line({"worker_seconds": 240.0, "pauses": [{"seconds": 0.025}]})
    'workers: 240 worker-seconds; 1 change of them, sources stood still for at most 25 ms'
    """
    pauses = [one["seconds"] for one in workers["pauses"]]
    changes = f"{len(pauses)} change{'s' if len(pauses) != 1 else ''} of them"
    stood = f", sources stood still for at most {1000 * max(pauses):.0f} ms" if pauses else ""
    return f"workers: {workers['worker_seconds']:,.0f} worker-seconds; {changes}{stood}"


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
