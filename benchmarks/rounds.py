"""Scenarios in processes of their own, several rounds of them, the medians of what they print, and what they share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

from rich.console import Console
from rich.progress import track

from penstock.metrics.latency import LatencyHistogram

Figures = dict[str, float]
Scenario = tuple[str, ...]


def measure(scenarios: Path, *scenario: str, timeout_s: float | None = 600.0) -> Figures:
    """One scenario of the script in a process of its own: the figures in its last line.

    However it ends, also by Ctrl-C or SIGTERM, what it has started ends with it.
    """
    command = [sys.executable, str(scenarios), *scenario]
    with TemporaryFile("w+") as out, TemporaryFile("w+") as complaints:  # pipes stay open for what it has started
        started = subprocess.Popen(command, stdout=out, stderr=complaints, start_new_session=True)
        try:
            code = started.wait(timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        out.seek(0)
        complaints.seek(0)
        if code:
            raise SystemExit(f"{' '.join(scenario)} failed:\n{complaints.read()}")
        figures: Figures = json.loads(out.read().strip().splitlines()[-1])
    return figures


def play(plan: Sequence[Scenario], one: Callable[..., Figures], digits: int = 3) -> dict[str, Figures]:
    """Every scenario of the plan in its order; the medians by scenario, with one digit more than is told meanwhile."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with all that was started
    console = Console(stderr=True)
    found: dict[Scenario, list[Figures]] = {}
    for scenario in track(plan, description="measuring", console=console):
        found.setdefault(scenario, []).append(one(*scenario))
        console.print(" ".join(scenario), {name: round(value, digits) for name, value in found[scenario][-1].items()})
    return {" ".join(scenario): _medians(rounds, digits + 1) for scenario, rounds in found.items()}


def write(result: dict[str, Figures], file: Path | None) -> None:
    """Keep the result as JSON, if there is a file for it."""
    if file is not None:
        file.write_text(json.dumps(result, indent=2) + "\n")


def figures(latency: LatencyHistogram, cpu: float) -> Figures:
    """Of latencies, and of the CPU seconds in which they came."""
    found = {name: latency.percentile_ms(q) for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
    return found | {"events": latency.count, "cpu_s_per_1000": 1000 * cpu / max(latency.count, 1)}


def _medians(rounds: list[Figures], digits: int) -> Figures:
    return {name: round(median(one[name] for one in rounds), digits) for name in rounds[0]}
