"""The live view of a run in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.drive import Driven
from penstock.cli.live_workers import workers_view
from penstock.metrics.counters import OperatorCounters, RunCounters

REFRESH_S = 0.5
LINE_EVERY_S = 10.0
DECISIONS_SHOWN = 6


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

    def __call__(self, driven: Driven) -> None:
        """Draw the run as it is now, if it is time to."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < (REFRESH_S if self._live else LINE_EVERY_S):
            return
        self._drawn_s = now_s
        counters = driven.run.counters()
        last, self._last = self._last or counters, counters
        if self._live is not None:
            self._live.update(self._view(driven, last, counters), refresh=True)
        else:
            self._console.print(_line(driven, last, counters), highlight=False)

    def _view(self, driven: Driven, last: RunCounters, now: RunCounters) -> Group:
        sent, total = sum(now.sources.values()), round(driven.trace.events)
        parts: list[RenderableType] = [
            Text(_line(driven, last, now)),
            Padding(ProgressBar(total=max(total, 1), completed=sent, width=60), (0, 0, 1, 0)),
            _operators(last, now),
        ]
        workers = workers_view(driven.loop.state, driven.started_s) if driven.loop is not None else []
        return Group(*parts, *_decisions(driven), *workers)


def _line(driven: Driven, last: RunCounters, now: RunCounters) -> str:
    elapsed = driven.run.clock.now() - driven.started_s
    sent, total = sum(now.sources.values()), round(driven.trace.events)
    rate = (sent - sum(last.sources.values())) / max(now.time_s - last.time_s, 1e-9)
    recent = now.latency.since(last.latency)
    latency = f"{recent.percentile_ms(0.5):.0f}/{recent.percentile_ms(0.99):.0f} ms" if recent.count else "–"
    text = f"{elapsed:5.0f} s  sent {sent:,} of {total:,}  {rate:,.0f}/s  latency p50/p99 {latency}"
    active = sum(len(one.active) for one in now.operators.values())
    text += f"  replicas {active}  backlog {sum(one.backlog for one in now.operators.values()):,}"
    if driven.loop is not None and (seen := driven.loop.state.seen) is not None and seen.forecast is not None:
        text += "  forecast " + ", ".join(f"{rates[0]:,.0f}/s" for rates in seen.forecast.rates.values())
    workers = _workers(driven)
    return text + workers + (f"  restarts {now.restarts}" if now.restarts else "")


def _workers(driven: Driven) -> str:
    seen = driven.loop.state.seen if driven.loop is not None else None
    return f"  workers {len(seen.levels.workers)}" if seen is not None and seen.levels is not None else ""


def _operators(last: RunCounters, now: RunCounters) -> Table:
    table = Table(header_style="bold", expand=False)
    table.add_column("operator")
    for name in ("active", "in/s", "out/s", "backlog", "busy", "et ms", "dropped"):
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
        f"{min(max(busy, 0.0), 1.0):.0%}",
        "–" if time_s is None else f"{1000 * time_s:.2f}",
        f"{sum(total.dropped.values()):,}",
    ]


def _decisions(driven: Driven) -> list[Text]:
    if driven.loop is None:
        return [Text("measuring execution times on the first events …", style="dim")]
    changes = driven.loop.state.changes[-DECISIONS_SHOWN:]
    return [
        Text(f"{time_s - driven.started_s:5.0f} s  {decision}", overflow="ellipsis", no_wrap=True)
        for time_s, decision in changes
    ]
