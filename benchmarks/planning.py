"""What the planners take, and what their timetables cost, side by side: 1,000 operators, 48 epochs.

    python benchmarks/planning.py --operators 1000 --epochs 48 --json planning.json

Every operator has a day of its own (a wave, noise and a few short dips); prices are those of BGElasor's figure. `ratio`
is the cost of all timetables over that of the optimum that serves the same need. SREA knows the current load only, so
it is short of replicas in many epochs, and its cost is not that of the same service. Below, the whole plan of the
policies: expected rates, needs, timetables and reasons.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from penstock.forecast.base import Forecast
from penstock.policy.planning.planners import cba, optimal, shortfall, spea, srea
from penstock.policy.planning.timetable import Counts, Limits, Prices
from penstock.policy.registry import make_policy
from penstock.testing.loads import load, snapshot

PRICES = Prices()
DELAYED = Limits(delay=1)
PRICED = Limits(delay=1, lateness=20_000)

Planner: TypeAlias = Callable[[Counts, int], Counts]
PLANNERS: dict[str, Planner] = {
    "optimal": lambda needed, start: optimal(needed, start, PRICES),
    "srea": lambda needed, _: srea(needed),
    "spea": lambda needed, _: spea(needed),
    "cba": lambda needed, start: cba(needed, start, PRICES),
    "optimal, delay 1": lambda needed, start: optimal(needed, start, PRICES, DELAYED),
    "optimal, delay 1, lateness": lambda needed, start: optimal(needed, start, PRICES, PRICED),
}


POLICIES = ("srea", "spea:{}", "cba:{}", "optimal:{}", "optimal:{},delay=1,lateness=20000")
EXECUTION_TIME_S = 0.02


@dataclass(frozen=True)
class Measured:
    """One planner over all operators."""

    planner: str
    ms: float
    us_per_operator: float
    cost: float
    ratio: float  # to the optimum
    changes: int
    short: int  # replicas that were needed and not there, over all epochs


def made_needs(operators: int, epochs: int, seed: int = 1) -> list[Counts]:
    """Epoch 0 and those to plan, for each operator."""
    random = np.random.default_rng(seed)
    times = np.arange(epochs + 1)
    needs = []
    for _ in range(operators):
        wave = 1 + np.sin(2 * np.pi * (times / epochs + random.random()))
        load = random.uniform(2, 30) * (0.3 + wave) * random.normal(1, 0.15, times.size).clip(0.2)
        load[random.random(times.size) < 0.05] *= 0.3
        needs.append(np.ceil(load).astype(np.int64))
    return needs


def measure(name: str, needs: list[Counts], best: float | None, rounds: int) -> Measured:
    plan = PLANNERS[name]
    plan(needs[0], 1)  # compiled, or loaded from numba's cache
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        timetables = [plan(needed, int(needed[0])) for needed in needs]
        times.append(1000 * (time.perf_counter() - begun))
    pairs = list(zip(needs, timetables, strict=True))
    cost = sum(PRICES.cost(one.tolist(), int(needed[0])) for needed, one in pairs)
    changes = sum(int(np.count_nonzero(np.diff(one, prepend=needed[0]))) for needed, one in pairs)
    short = sum(int(shortfall(needed, one, int(needed[0])).sum()) for needed, one in pairs)
    ms = statistics.median(times)
    return Measured(name, ms, 1000 * ms / len(needs), cost, cost / (best or cost), changes, short)


def measure_policy(spec: str, needs: list[Counts], rounds: int) -> float:
    """Milliseconds of one plan for all operators, each fed by the one before it."""
    loads = [
        load(
            f"o{n}",
            {f"o{n - 1}" if n else "in": 1},
            execution_time_s=EXECUTION_TIME_S,
            replicas=int(needed[0]),
            pool=512,
        )
        for n, needed in enumerate(needs)
    ]
    seen = snapshot({"in": 1}, loads)
    rates = {f"o{n}": tuple((needed[1:] / EXECUTION_TIME_S).tolist()) for n, needed in enumerate(needs)}
    policy, forecast, times = make_policy(spec), Forecast("made", rates), []
    for _ in range(rounds):
        begun = time.perf_counter()
        policy.plan(seen, forecast)
        times.append(1000 * (time.perf_counter() - begun))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operators", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    needs = made_needs(options.operators, options.epochs)
    print(f"{options.operators:,} operators, {options.epochs} epochs, medians of {options.rounds} rounds")
    print(f"{'planner':28}{'ms':>9}{'µs/operator':>13}{'cost W':>16}{'ratio':>8}{'changes':>10}{'short':>9}")
    found: list[Measured] = []
    for name in PLANNERS:
        one = measure(name, needs, found[0].cost if found else None, options.rounds)
        found.append(one)
        figures = f"{one.ms:9.1f}{one.us_per_operator:13.1f}{one.cost:16,.0f}{one.ratio:8.3f}"
        print(f"{name:28}{figures}{one.changes:10,}{one.short:9,}")
    plans = {}
    for spec in (name.format(options.epochs) for name in POLICIES):
        plans[spec] = measure_policy(spec, needs, options.rounds)
        print(f"plan of {spec:36}{plans[spec]:9.1f} ms")
    if options.json:
        result = {"planners": [asdict(one) for one in found], "plans_ms": plans}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
