"""How like a run on Spark is its simulation? The same scenario live and simulated, the four metrics side by side.

    python benchmarks/fidelity.py --rounds 2 --json fidelity.json

The live run is one of `penstock run`: the Twitter application under two hours of real bursty traffic, played 60 times
faster, with service times and a rate that leave two cores some rest: what a busy machine adds is not simulated. The
simulation takes hop delay, execution times and overhead from the store of that run, and knows nothing else of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from live_psps import TRACE
from rich.console import Console
from rich.table import Table

from penstock.simulator import Scenario, simulate
from penstock.simulator.calibration import calibration_of
from penstock.workload import data_file, data_folder, load_trace, played

WARM_UP_S = 2.0
SOURCES_BEGIN_S = 0.1  # after the run has started, on which the loop's clock counts
SERVICE_MS = {"clean": 30.0, "classify": 60.0, "author": 45.0, "store": 30.0}
WITHIN, NEAR_ZERO, WITHIN_NEAR_ZERO = 0.15, 0.1, 0.02
METRICS = ("saved_resources", "throughput_degradation", "processed_ratio", "latency_mean_ms")


def live(case: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One run on Spark from the command line: its summary, and where its store is."""
    summary, store = folder / "summary.json", folder / "metrics.db"
    store.unlink(missing_ok=True)
    command = [sys.executable, "-m", "penstock.cli", "run", "twitter", "--trace", str(case.trace)]
    times = ",".join(f"{name}={time_ms:g}" for name, time_ms in SERVICE_MS.items())
    command += ["--speedup", str(case.speedup), "--mean-rate", str(case.mean_rate), "--service-ms", times]
    command += ["--td", str(case.td), "--policy", case.policy]
    command += ["--grouping", case.grouping, "--store", str(store), "--json", str(summary)]
    command += ["--warm-up", str(WARM_UP_S), *(["--duration", str(case.duration)] if case.duration else [])]
    subprocess.run(command, check=True, stdout=sys.stderr)
    result: dict[str, Any] = json.loads(summary.read_text())
    return result | {"store": str(store)}


def simulated(case: argparse.Namespace, store: str) -> dict[str, float]:
    """The same in the simulator, calibrated with the run's store."""
    scenario = Scenario(
        "twitter",
        load_trace(case.trace),
        grouping=case.grouping,
        service_ms=SERVICE_MS,
        calibration=calibration_of(store),
        events=data_folder("events"),
    ).changed(td_s=case.td, first_step_s=WARM_UP_S - SOURCES_BEGIN_S)
    scenario = scenario.played(mean_rate=case.mean_rate, speedup=case.speedup, duration_s=case.duration)
    result = simulate(scenario, case.policy)
    return {name: getattr(result, name) for name in METRICS[:3]} | {"latency_mean_ms": result.latency_ms["mean"]}


def agrees(run: float, simulation: float) -> bool:
    """Within 15 %; near zero, within 0.02."""
    if abs(run) < NEAR_ZERO:
        return abs(run - simulation) <= WITHIN_NEAR_ZERO
    return abs(simulation / run - 1) <= WITHIN


def one_round(case: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Both, once."""
    run = live(case, folder)
    measured = {name: run[name] for name in METRICS[:3]} | {"latency_mean_ms": run["latency_ms"]["mean"]}
    return {"live": measured, "simulated": simulated(case, run["store"])}


def table_of(rounds: list[dict[str, dict[str, float]]]) -> tuple[Table, list[dict[str, Any]]]:
    """The medians side by side, for people and for programs."""
    table = Table(title=f"live and simulated, medians of {len(rounds)}", title_justify="left")
    for column in ("metric", "live", "simulated", "simulated / live", ""):
        table.add_column(column, justify="left" if column == "metric" else "right")
    rows = []
    for name in METRICS:
        run, simulation = (median(one[side][name] for one in rounds) for side in ("live", "simulated"))
        ratio = simulation / run if run else float("nan")
        rows.append(
            {"metric": name, "live": run, "simulated": simulation, "ratio": ratio, "agrees": agrees(run, simulation)}
        )
        table.add_row(name, f"{run:.4f}", f"{simulation:.4f}", f"{ratio:.3f}", "✓" if rows[-1]["agrees"] else "off")
    return table, rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--policy", default="psps")
    arguments.add_argument("--grouping", default="load_balancing")
    arguments.add_argument("--speedup", type=float, default=60.0)
    arguments.add_argument("--mean-rate", type=float, default=40.0)
    arguments.add_argument("--td", type=float, default=2.0)
    arguments.add_argument("--duration", type=float, help="cut the played trace, seconds")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--json", type=Path, help="also write the result here")
    case = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        case.trace = data_file("traces", TRACE)
        events = played(load_trace(case.trace), case.mean_rate, case.speedup, case.duration).events
        rounds = [one_round(case, Path(name)) for _ in range(case.rounds)]
    table, rows = table_of(rounds)
    Console().print(f"twitter under {case.trace.name}, {events:,.0f} events, {case.policy}, {case.grouping}", table)
    if case.json:
        case.json.write_text(json.dumps({"metrics": rows, "rounds": rounds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
