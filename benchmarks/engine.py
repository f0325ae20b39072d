"""The engine beside plain Structured Streaming: latency, rate, cost, idle cost, pauses; one run, medians of rounds.

    python benchmarks/engine.py --rounds 3 --json engine.json
    python benchmarks/engine.py --pull      # also pull beside shuffle, at 5, 200 and 2,000 events/s and the most

A chain of four trivial Python operators, pool 4, 2 active each, also under TLS (encrypted), and as one plain query with
the same four functions in `mapInArrow` and a `repartition` between them. Rounds alternate between the systems, so that
what else the machine does falls on all alike. Micro-batch mode is there to read what only Spark's connectors read, not
to be fast, and is not measured.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import Figures, Scenario, measure, play, write

SCENARIOS = Path(__file__).with_name("engine_scenarios.py")
SYSTEMS = ("penstock", "encrypted", "plain")
BINDINGS = ("shuffle", "pull")  # early, and late
RATES = ("5", "200", "2000")
EVENTS = "600000"


def plan(rounds: int, pull: bool = False) -> list[Scenario]:
    """Every scenario of every round, alternating."""
    once: list[Scenario] = [("latency", system) for system in SYSTEMS]
    once += [("latency", "penstock", "5"), *[("rate", system) for system in SYSTEMS]]
    if pull:
        once += [("latency", "penstock", rate, grouping) for rate in RATES for grouping in BINDINGS]
        once += [("rate", "penstock", EVENTS, grouping) for grouping in BINDINGS]
    rare: list[Scenario] = [
        ("idle", "1"),
        ("idle", "9"),
        ("checkpoints", "1"),
        ("checkpoints", "3600"),
        ("activation",),
    ]
    return once * rounds + rare * max(1, rounds // 2)


def main() -> None:
    arguments = argparse.ArgumentParser(description="The engine beside plain Structured Streaming.")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--pull", action="store_true", help="also the grouping pull, beside shuffle")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    result = play(plan(options.rounds, options.pull), partial(measure, SCENARIOS))
    tell(result)
    if options.pull:
        Console().print(bindings(result))
    write(result, options.json)


def tell(result: dict[str, Figures]) -> None:
    console = Console()
    table = Table(title="four trivial operators, 200 events/s; medians")
    for name in (
        "system",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p50 to plain",
        "events/s at most",
        "rate to plain",
        "CPU s/1000",
    ):
        table.add_column(name, justify="left" if name == "system" else "right")
    plain, plain_rate = result["latency plain"], result["rate plain"]["rate"]
    for system in SYSTEMS:
        one, rate = result[f"latency {system}"], result[f"rate {system}"]["rate"]
        times = [f"{one[name]:.0f}" for name in ("p50", "p90", "p99")]
        ratios = f"{plain['p50'] / one['p50']:.1f}× less", f"{rate:,.0f}", f"{rate / plain_rate:.2f}×"
        table.add_row(system, *times, *ratios, f"{one['cpu_s_per_1000']:.2f}")
    console.print(table)
    slow, idle_1, idle_9 = result["latency penstock 5"], result["idle 1"], result["idle 9"]
    more = idle_9["replicas"] - idle_1["replicas"]
    console.print(f"penstock at 5 events/s: p50 {slow['p50']:.0f} ms, p99 {slow['p99']:.0f} ms")
    console.print(
        f"{more:.0f} inactive replicas: {idle_9['cores'] - idle_1['cores']:.2f} cores, "
        f"{(idle_9['private_mb'] - idle_1['private_mb']) / more:.0f} MB private each"
    )
    often, never, at_work = result["checkpoints 1"], result["checkpoints 3600"], result["activation"]
    console.print(
        f"a checkpoint every second, state in one operator: p50 {often['p50']:.0f}, p99 {often['p99']:.0f} ms, without "
        f"{never['p50']:.0f} and {never['p99']:.0f} ms; it takes {often['took_ms']:.0f} ms "
        f"(longest {often['longest_ms']:.0f} ms)"
    )
    console.print(
        f"an activated replica is at work after {at_work['at_work_s']:.2f} s; longest pause of the other: "
        f"{at_work['longest_pause_around_s']:.3f} s around it, {at_work['longest_pause_before_s']:.3f} s before"
    )


def bindings(result: dict[str, Figures]) -> Table:
    """What it makes to bind events late: latency at each rate, and the highest rate."""
    table = Table(title="events bound early and late, four trivial operators; medians")
    for name in ("grouping", *(f"p50, p99 ms at {rate}/s" for rate in RATES), "events/s at most", "rate to shuffle"):
        table.add_column(name, justify="left" if name == "grouping" else "right")
    most = {grouping: result[f"rate penstock {EVENTS} {grouping}"]["rate"] for grouping in BINDINGS}
    for grouping in BINDINGS:
        times = [result[f"latency penstock {rate} {grouping}"] for rate in RATES]
        shown = [f"{one['p50']:.0f}, {one['p99']:.0f}" for one in times]
        table.add_row(grouping, *shown, f"{most[grouping]:,.0f}", f"{most[grouping] / most[BINDINGS[0]]:.2f}×")
    return table


if __name__ == "__main__":
    main()
