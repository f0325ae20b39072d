"""How long a decision takes for 1, 100 and 10,000 operators: the plan alone, and the whole step of the loop.

    python benchmarks/decision.py --rounds 5 --json decision.json

A chain, and a wide topology in which every operator has the same two predecessors, under `psps` and under `penstock`,
which replays what came about once a second. The store is off. Times are medians; `core` is the mean CPU time of a step,
with those that replay, as a share of the shortest interval, 0.2 s: what the loop costs where it decides as often as it
may. What a live run does around each step is in two columns of their own: `counted`, to make the counters of what
replicas have reported, and `record`, to make rows of the step. Replicas are shuffled to, as they are unless a topology
says otherwise, so nobody has to be told how used they are.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from penstock.control.analyze import Analyzer
from penstock.control.loop import SHORTEST_TD_S, Loop, Parts
from penstock.control.monitor import Monitor
from penstock.control.step import interval_record
from penstock.engine.driver.tally import Tally
from penstock.engine.protocol.messages import Report, Reports
from penstock.forecast.last_value import LastValue
from penstock.metrics.counters import RunCounters
from penstock.metrics.interval import IntervalRules, difference
from penstock.metrics.rows import IntervalRecord
from penstock.policy.base import Policy
from penstock.policy.guards import guarded
from penstock.policy.penstock import Penstock
from penstock.policy.psps import Psps
from penstock.testing.clock import ManualClock
from penstock.testing.plant import FakeOperator, FakePlant
from penstock.topology import Topology

SIZES = (1, 100, 10_000)
TD_S = SHORTEST_TD_S
POLICIES: Mapping[str, Callable[[], Policy]] = {"psps": lambda: Psps(predecessor_backlog=True), "penstock": Penstock}
REPLAYED = 5  # steps, in which penstock has replayed once


@dataclass(frozen=True)
class Measured:
    """The median times of one topology."""

    policy: str
    shape: str
    operators: int
    plan_ms: float
    step_ms: float
    core: float  # mean CPU time of a step by the interval
    counted_ms: float
    record_ms: float


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


class Shuffled(FakePlant):
    """A plant in which no grouping looks at how used replicas are."""

    balanced = ()


def reported(plant: FakePlant) -> tuple[Tally, dict[str, tuple[int, ...]]]:
    """A tally to which all replicas of the plant have reported, and which of them are active."""
    topology = Topology("made")
    streams: dict[str, Any] = {name: topology.source(name) for name in plant.rates}
    for name, one in plant.operators.items():
        streams[name] = topology.operator(name, print, inputs=[streams[p] for p in one.inputs], pool=one.pool)
    tally, counters = Tally(topology), plant.counters()
    for name, operator in counters.operators.items():
        reports = [Report(1, 0, name, replica, counted) for replica, counted in operator.replicas.items()]
        tally.enter(Reports("here", 1, 0, reports), counters.time_s)
    return tally, {name: one.active for name, one in counters.operators.items()}


def measure(name: str, shape: str, operators: list[FakeOperator], rounds: int) -> Measured:
    clock = ManualClock()
    plant = Shuffled(operators, clock)
    plant.rates["in"] = 150.0
    rules = IntervalRules(TD_S, plant.declared())
    before = plant.counters()
    clock.advance(TD_S)
    snapshot = difference(before, plant.counters(), rules)
    policy = guarded(POLICIES[name](), slots=5 * len(operators), scale_in_s=30.0)
    median_ms(lambda: policy.plan(snapshot, None), REPLAYED)  # what is made once is made
    plan_ms = median_ms(lambda: policy.plan(snapshot, None), rounds)
    step_ms, core, record_ms = measure_steps(plant, policy, rules, clock, rounds * REPLAYED)
    tally, active = reported(plant)
    counted_ms = median_ms(lambda: tally.counters(clock.now(), active), rounds)
    return Measured(name, shape, len(operators), plan_ms, step_ms, core, counted_ms, record_ms)


def measure_steps(
    plant: FakePlant, policy: Policy, rules: IntervalRules, clock: ManualClock, steps: int
) -> tuple[float, float, float]:
    """Milliseconds of a step of the loop, its share of the interval, and milliseconds to make rows of it."""
    ready = Ready(plant.counters())
    monitor = Monitor(ready, rules)
    loop = Loop(Parts(monitor, policy, plant, Analyzer("last_value", lambda _series: LastValue())), clock)
    loop.step(clock.now())
    times, cpu_s, records = [], [], []
    for _ in range(steps):
        clock.advance(TD_S)
        ready.now = plant.counters()
        spent_s = time.process_time()
        times.append(median_ms(lambda: loop.step(clock.now()), 1))
        cpu_s.append(time.process_time() - spent_s)
        records.append(median_ms(lambda: recorded(loop), 1))
    return statistics.median(times), statistics.fmean(cpu_s) / TD_S, statistics.median(records)


def recorded(loop: Loop) -> IntervalRecord:
    """The rows of the last step."""
    step = loop.state.seen
    assert step is not None
    assert step.snapshot is not None
    return interval_record(step, step.snapshot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print("policy   shape  operators   plan ms  µs/operator   step ms  µs/operator    core  counted ms  record ms")
    results = []
    for name, (shape, make) in product(POLICIES, (("chain", chain), ("wide", wide))):
        for size in SIZES:
            one = measure(name, shape, make(size), given.rounds)
            results.append(one)
            print(
                f"{name:8} {shape:5} {size:10,} {one.plan_ms:9.3f} {one.plan_ms * 1000 / size:12.1f}"
                f" {one.step_ms:9.3f} {one.step_ms * 1000 / size:12.1f} {one.core:7.2%}"
                f" {one.counted_ms:11.3f} {one.record_ms:10.3f}"
            )
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
