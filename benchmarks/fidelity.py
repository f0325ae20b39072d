"""How like a run on Spark is its simulation? The same scenario live and simulated, the four metrics side by side.

    python benchmarks/fidelity.py --rounds 2 --json fidelity.json
    python benchmarks/fidelity.py --grouping pull --td 1

The Twitter application under two hours of real bursty traffic, played 60 times faster, with service times and a rate
that leave two cores some rest: what a busy machine adds is not simulated. The simulation takes hop delay, execution
times and overhead from the store of the live run, and knows nothing else of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from fidelity_scenarios import SERVICE_MS, TRACE, WARM_UP_S
from rich.console import Console
from rich.table import Table
from rounds import measure

from penstock.simulator import Scenario, simulate
from penstock.simulator.calibration import calibration_of
from penstock.workload import data_file, data_folder, load_trace, played

SOURCES_BEGIN_S = 0.1  # after the run has started, on which the loop's clock counts
SCENARIOS = Path(__file__).with_name("fidelity_scenarios.py")
WITHIN, NEAR_ZERO, WITHIN_NEAR_ZERO = 0.15, 0.1, 0.02
LATE_WITHIN = 0.005
METRICS = ("saved_resources", "throughput_degradation", "processed_ratio", "latency_mean_ms", "late_ratio")


def live(case: argparse.Namespace, store: Path) -> dict[str, float]:
    """One run on Spark, in a process of its own, with its store."""
    store.unlink(missing_ok=True)
    values = (case.policy, case.grouping, case.td, case.mean_rate, case.speedup, case.duration or 1e9, case.target)
    return measure(SCENARIOS, *map(str, values), str(store), timeout_s=None)


def simulated(case: argparse.Namespace, store: Path) -> dict[str, float]:
    """The same in the simulator, calibrated with the run's store."""
    scenario = Scenario(
        "twitter",
        load_trace(case.trace),
        grouping=case.grouping,
        service_ms=SERVICE_MS,
        calibration=calibration_of(str(store)),
        events=data_folder("events"),
    ).changed(td_s=case.td, first_step_s=WARM_UP_S - SOURCES_BEGIN_S, target_ms=1000 * case.target, wake=True)
    scenario = scenario.played(mean_rate=case.mean_rate, speedup=case.speedup, duration_s=case.duration)
    result = simulate(scenario, case.policy)
    found = {name: float(getattr(result, name)) for name in METRICS if name != "latency_mean_ms"}
    return found | {"latency_mean_ms": result.latency_ms["mean"]}


def agrees(name: str, run: float, simulation: float) -> bool:
    """Within 15 %; near zero, within 0.02; shares of late events within half a point."""
    if name == "late_ratio":
        return abs(run - simulation) <= LATE_WITHIN
    if abs(run) < NEAR_ZERO:
        return abs(run - simulation) <= WITHIN_NEAR_ZERO
    return abs(simulation / run - 1) <= WITHIN


def one_round(case: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """Both, once."""
    store = folder / "metrics.db"
    return {"live": live(case, store), "simulated": simulated(case, store)}


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
            {
                "metric": name,
                "live": run,
                "simulated": simulation,
                "ratio": ratio,
                "agrees": agrees(name, run, simulation),
            }
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
    arguments.add_argument("--target", type=float, default=2.0, help="seconds, beyond which an event is late")
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
