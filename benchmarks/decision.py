"""How long a decision takes for 1, 100 and 10,000 operators: the plan alone, and the whole step of the loop.

    python benchmarks/decision.py --rounds 5 --json decision.json

A chain, and a wide topology in which every operator has the same two predecessors. The store is off. `core` is the CPU
time of a step as a share of the shortest interval, 0.2 s: what the loop costs where it decides as often as it may.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.control.analyze import Analyzer
from penstock.control.loop import SHORTEST_TD_S, Loop, Parts
from penstock.control.monitor import Monitor
from penstock.forecast.last_value import LastValue
from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules, difference
from penstock.policy.guards import guarded
from penstock.policy.psps import Psps
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant

SIZES = (1, 100, 10_000)
TD_S = SHORTEST_TD_S


@dataclass(frozen=True)
class Measured:
    """The median times of one topology."""

    shape: str
    operators: int
    plan_ms: float
    step_ms: float
    core: float  # CPU time of a step by the interval


def chain(size: int) -> list[FakeOperator]:
    return [FakeOperator(f"o{n}", {f"o{n - 1}" if n else "in": 1.0}, 0.01, pool=8) for n in range(size)]


def wide(size: int) -> list[FakeOperator]:
    heads = [FakeOperator(f"o{n}", {"in": 1.0}, 0.01, pool=8) for n in range(min(2, size))]
    rest = [FakeOperator(f"o{n}", {"o0": 0.5, "o1": 0.5}, 0.01, pool=8) for n in range(2, size)]
    return heads + rest


def median_ms(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


class Ready:
    """Hands out counters that were made beforehand, so that making them is not measured."""

    def __init__(self, now: RunCounters) -> None:
        self.now = now

    def counters(self) -> RunCounters:
        """The counters put there last."""
        return self.now


def measure(shape: str, operators: list[FakeOperator], rounds: int) -> Measured:
    clock = ManualClock()
    plant = FakePlant(operators, clock)
    plant.rates["in"] = 150.0
    rules = IntervalRules(TD_S, plant.declared())
    before = plant.counters()
    clock.advance(TD_S)
    snapshot = difference(before, plant.counters(), rules)
    policy = guarded(Psps(predecessor_backlog=True), slots=5 * len(operators), scale_in_s=30.0)
    plan_ms = median_ms(lambda: policy.plan(snapshot, None), rounds)

    ready = Ready(before)
    monitor = Monitor(ready, rules)
    loop = Loop(Parts(monitor, policy, plant, Analyzer("last_value", lambda _series: LastValue())), clock)
    loop.step(clock.now())
    times, cpu_s = [], []
    for _ in range(rounds):
        clock.advance(TD_S)
        ready.now = plant.counters()
        spent_s = time.process_time()
        times.append(median_ms(lambda: loop.step(clock.now()), 1))
        cpu_s.append(time.process_time() - spent_s)
    return Measured(shape, len(operators), plan_ms, statistics.median(times), statistics.median(cpu_s) / TD_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print("shape  operators   plan ms  µs/operator   step ms  µs/operator    core")
    results = []
    for shape, make in (("chain", chain), ("wide", wide)):
        for size in SIZES:
            one = measure(shape, make(size), given.rounds)
            results.append(one)
            print(
                f"{shape:5} {size:10,} {one.plan_ms:9.3f} {one.plan_ms * 1000 / size:12.1f}"
                f" {one.step_ms:9.3f} {one.step_ms * 1000 / size:12.1f} {one.core:7.2%}"
            )
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
