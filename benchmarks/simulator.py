"""The simulator beside SimPy on the same scenario, the start of the command, and memory; medians of rounds.

    python benchmarks/simulator.py --rounds 3 --json simulator.json
    python benchmarks/simulator.py --huge          # memory with 10⁹ events too, some minutes more

A chain of four operators, pool 8, 5 active each, at 80 % load. SimPy plays fewer events: rates are compared. Rounds
alternate between the systems, so that what else the machine does falls on all alike. Both run on one core, and rates
are per second of its time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import Figures, Scenario, measure, play, write

SCENARIOS = Path(__file__).with_name("simulator_scenarios.py")
EVENTS = {"simulator": 5_000_000, "simpy": 100_000}
GROUPINGS = ("shuffle", "load_balancing")
MEMORY = (10**7, 10**8)
HUGE = 10**9
COMMAND = ("-m", "penstock.cli", "simulate", "dns", "--rate", "20", "--duration", "10")


def one(*scenario: str) -> Figures:
    """One scenario in a process of its own."""
    return start() if scenario == ("start",) else measure(SCENARIOS, *scenario, timeout_s=None)


def start() -> Figures:
    """How long the command takes for next to nothing, the second time."""
    for _ in range(2):
        began_s, began_cpu_s = time.perf_counter(), _children_cpu_s()
        done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
        took = {"wall_s": time.perf_counter() - began_s, "cpu_s": _children_cpu_s() - began_cpu_s}
        if done.returncode:
            raise SystemExit(f"{' '.join(COMMAND)} failed:\n{done.stderr}")
    return took


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plan(rounds: int, *, huge: bool) -> list[Scenario]:
    """Every scenario of every round, alternating."""
    once: list[Scenario] = [
        ("rate", system, grouping, str(events)) for grouping in GROUPINGS for system, events in EVENTS.items()
    ]
    sizes = (*MEMORY, HUGE) if huge else MEMORY
    return [*once, ("start",)] * rounds + [("memory", str(events)) for events in sizes]


def main() -> None:
    arguments = argparse.ArgumentParser(description="The simulator beside SimPy.")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--huge", action="store_true", help="play 10⁹ events as well")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    result = play(plan(options.rounds, huge=options.huge), one)
    tell(result)
    write(result, options.json)


def tell(result: dict[str, Figures]) -> None:
    console = Console()
    table = Table(title="four operators, 5 replicas each, one core; medians")
    for name in ("grouping", "system", "event-hops/s", "to SimPy", "mean latency ms"):
        table.add_column(name, justify="left" if name in ("grouping", "system") else "right")
    for grouping in GROUPINGS:
        rows = {system: result[f"rate {system} {grouping} {events}"] for system, events in EVENTS.items()}
        for system, one in rows.items():
            ratio = one["hops_per_s"] / rows["simpy"]["hops_per_s"]
            table.add_row(grouping, system, f"{one['hops_per_s']:,.0f}", f"{ratio:,.0f}×", f"{one['mean_ms']:.3f}")
    console.print(table)
    begun = result["start"]
    console.print(
        f"penstock simulate, 200 events, from start to end: {begun['wall_s']:.2f} s, {begun['cpu_s']:.2f} s of CPU"
    )
    sizes = {int(name.split()[1]): one for name, one in result.items() if name.startswith("memory")}
    for events, one in sizes.items():
        console.print(f"{events:,} events: at most {one['peak_mb']:.0f} MB, {one['cpu_s']:.1f} s of CPU")
    least, most = (sizes[edge(sizes)]["peak_mb"] for edge in (min, max))
    console.print(f"{max(sizes) // min(sizes)}× the events: {most / least:.2f}× the memory")


if __name__ == "__main__":
    main()
