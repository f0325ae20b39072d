"""A live run on Spark read by a real Prometheus: how many scrapes fail, which alerts fire, which panels have data.

    python benchmarks/prometheus.py [--minutes 10] [--scrape-s 1]

One replica of 50 ms gets 8 events a second for a third of the time, then 60, which is three times what it can do. The
alert rules are those of `ops/prometheus/`, with the times that they wait. Prints what Prometheus says of its scrapes,
when each alert fired for the first time, and, at the end, which panels of `ops/grafana/penstock.json` have data.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import numpy as np
import typer
from rich.console import Console

import penstock
from penstock.workload import Trace

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from tests.services.prometheus import Prometheus, board, has_data, program  # noqa: E402 - the tests' Prometheus

SLOW_S = 0.05
CALM_RATE, LATE_RATE = 8.0, 60.0
LOOK_EVERY_S = 2.0
CALM_SHARE = 1 / 3
STEP_S = 1.0


def slow(event: dict[str, int]) -> dict[str, int]:
    time.sleep(SLOW_S)
    return event


def loaded(duration_s: float) -> Trace:
    """Calm at first, then three times too much."""
    steps = round(2 * duration_s / STEP_S)  # the run is stopped before it ends
    rates = np.where(np.arange(steps) * STEP_S < CALM_SHARE * duration_s, CALM_RATE, LATE_RATE)
    return Trace("calm, then late", STEP_S, rates)


def late(folder: Path, duration_s: float) -> penstock.Elastic:
    """A run that keeps its one replica, whatever comes."""
    topology = penstock.Topology("late", pool=2)
    topology.operator("slow", slow, inputs=topology.source("numbers"))
    run = penstock.Run(topology, penstock.TraceSource(loaded(duration_s), [{"n": 1}]))
    return penstock.Elastic(
        run, "static:1", td_s=1.0, forecaster="last_value", target_ms=500.0, store=folder / "metrics.db", ui="0"
    )


def watched(reader: Prometheus, live: penstock.Elastic, duration_s: float) -> dict[str, float]:
    """When each alert fired first, in seconds since the run began."""
    fired: dict[str, float] = {}
    while (now_s := live.run.clock.now() - live.started_s) < duration_s:
        for name in reader.alerts() - fired.keys():
            fired[name] = now_s
        time.sleep(LOOK_EVERY_S)
    return fired


def number(reader: Prometheus, query: str) -> float:
    """The only value that a query finds."""
    (found,) = reader.query(query)
    return float(found["value"][1])


def tell(console: Console, reader: Prometheus, fired: dict[str, float], span: str) -> None:
    """Print what there is to say at the end."""
    up = 'up{job="penstock"}'
    scrapes = number(reader, f"count_over_time({up}[{span}])")
    failed = scrapes - number(reader, f"sum_over_time({up}[{span}])")
    longest = number(reader, f'max_over_time(scrape_duration_seconds{{job="penstock"}}[{span}])')
    console.print(f"scrapes {scrapes:.0f}, failed {failed:.0f}, the longest took {1000 * longest:.0f} ms")
    series = number(reader, 'count({job="penstock", __name__=~"penstock_.*"})')
    samples = number(reader, 'scrape_samples_scraped{job="penstock"}')
    console.print(f"series {series:.0f}, samples of a scrape {samples:.0f}")
    told = ", ".join(f"{name} at {at_s:.0f} s" for name, at_s in fired.items()) or "none"
    console.print(f"alerts that fired: {told}", soft_wrap=True)
    panels = {title: all(has_data(reader, one) for one in queries) for title, queries in board().items()}
    console.print(f"panels with data: {sum(panels.values())} of {len(panels)}")
    for title in (title for title, found in panels.items() if not found):
        console.print(f"  without: {title}")


def main(
    minutes: Annotated[float, typer.Option("--minutes")] = 10.0,
    scrape_s: Annotated[float, typer.Option("--scrape-s", help="Between two scrapes.")] = 1.0,
) -> None:
    """Run, watch and tell."""
    console = Console()
    if program() is None:
        raise SystemExit("Prometheus is not installed: apt-get install prometheus")
    rules = (ROOT / "ops" / "prometheus" / "alerts.yml").read_text()
    with tempfile.TemporaryDirectory() as name, late(Path(name), 60 * minutes) as live:
        assert live.ui_url is not None
        with Prometheus(Path(name), urlsplit(live.ui_url).netloc, rules, scrape_s) as reader:
            fired = watched(reader, live, 60 * minutes)
            tell(console, reader, fired, f"{round(60 * minutes)}s")
            status = live.checkpoint_status()
            told = f"checkpoints: {status.committed} committed, {status.given_up} given up"
            console.print(f"{told}; the last took {status.took_s:.1f} s and is {status.age_s:.0f} s old")
            live.run.stop_sources()
            live.stop(timeout_s=0.0)


if __name__ == "__main__":
    typer.run(main)
