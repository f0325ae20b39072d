"""Pools and late binding: large pools, a replica that hangs, twice the capacity, and jumps; each pushed and pulled.

    python benchmarks/pools.py --json pools.json
    python benchmarks/pools.py --only overload --seconds 600

Every scenario takes less than three minutes on a quiet machine, unless twice the capacity lasts longer. `late` are
events that took over a second, `lost` those that never came; `at_best_s` is what waits over what the replicas do beyond
what still comes; `asked` is from the jump to the loop's decision, `at_work` to the first event at a replica that was
idle.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rounds import Figures, Scenario, measure, play, write

SCENARIOS = Path(__file__).with_name("pools_scenarios.py")
GROUPINGS = ("load_balancing", "pull")
KINDS = ("start", "hang", "overload", "jump")


def plan(given: argparse.Namespace) -> list[Scenario]:
    """The scenarios that are wanted."""
    every: dict[str, list[Scenario]] = {
        "start": [("start", str(given.pool))],
        "hang": [("hang", grouping) for grouping in GROUPINGS],
        "overload": [("overload", "pull", f"{given.seconds:g}")],
        "jump": [("jump", grouping) for grouping in GROUPINGS],
    }
    return [scenario for kind in given.only for scenario in every[kind]] * int(given.rounds)


def tell(result: dict[str, Figures]) -> None:
    console = Console()
    for name, figures in result.items():
        table = Table(title=name, title_justify="left", show_header=False)
        for key, value in figures.items():
            table.add_row(key, f"{value:,.2f}")
        console.print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    arguments.add_argument("--pool", type=int, default=64, help="of each of four operators")
    arguments.add_argument("--seconds", type=float, default=60.0, help="of twice the capacity")
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--json", type=Path, help="also write the result here")
    given = arguments.parse_args()
    result = play(plan(given), partial(measure, SCENARIOS, timeout_s=None))
    tell(result)
    write(result, given.json)


if __name__ == "__main__":
    main()
