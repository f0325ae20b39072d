"""State by key: how long moved keys wait while replicas change, and what state costs; one run, medians of rounds.

    python benchmarks/state.py --rounds 3 --json state.json

One replica becomes two and two become one, four times each, with 1, 10 and 100 MB of state in 1,000 keys, at 1,000
events/s: the waits of events that were due while a change went on, of moved groups and of the others, and of events at
other times (quiet). Then the events per second through a keyed operator that counts in its state, beside one that
counts in memory. The rate means something on a machine that does nothing else; CPU time an event also on others.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import Figures, measure, play, write

SCENARIOS = Path(__file__).with_name("state_scenarios.py")
SIZES_MB = ("1", "10", "100")


def main() -> None:
    arguments = argparse.ArgumentParser(description="State by key: waits and cost.")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--sizes", nargs="+", default=SIZES_MB, metavar="MB")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    once = [("rate", "state"), ("rate", "memory"), *(("move", size) for size in options.sizes)]
    result = play(once * options.rounds, partial(measure, SCENARIOS), digits=2)
    tell(result, options.sizes)
    write(result, options.json)


def tell(result: dict[str, Figures], sizes: list[str]) -> None:
    console = Console()
    table = Table(title="one replica to two and back, 1,000 events/s; medians, ms")
    columns = ("moved p50", "moved p99", "others p50", "others p99", "quiet p50", "quiet p99", "taken p50", "taken max")
    table.add_column("state")
    for name in columns:
        table.add_column(name, justify="right")
    for size in sizes:
        one = result[f"move {size}"]
        table.add_row(f"{size} MB", *(f"{one[name.replace(' ', '_') + '_ms']:.0f}" for name in columns))
    console.print(table)
    state, memory = result["rate state"], result["rate memory"]
    console.print(
        f"events/s at most: {state['rate']:,.0f} with state, {memory['rate']:,.0f} in memory, "
        f"{state['rate'] / memory['rate']:.2f}×; {state['cpu_us']:.1f} and {memory['cpu_us']:.1f} µs of CPU an event"
    )


if __name__ == "__main__":
    main()
