"""Results of policies as the arena gives them, made up."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

from penstock.report.arena import ArenaReport
from penstock.simulator.history import History
from penstock.simulator.result import SimulationResult
from penstock.simulator.scenario import Scenario
from penstock.workload import constant

TD_S = 5.0
INTERVALS = 24
TRACE = constant(20.0, duration_s=INTERVALS * TD_S, name="steady")


def history(count=INTERVALS, *, td_s=TD_S, replicas=None, latency_s=None, backlog=None):
    """A history of two operators; the values are given for each interval, or made up."""
    made = History(("clean", "store"), SimpleNamespace(now_s=0.0, events=0, out=0, latency_total_s=0.0))
    made.times_s = [td_s * (number + 1) for number in range(count)]
    made.lengths_s = [td_s] * count
    made.entered = made.left = [round(20 * td_s)] * count
    made.replicas = [(one, 1) for one in (replicas or [1 + number % 3 for number in range(count)])]
    made.latency_s = latency_s or [0.05 * (1 + number % 5) for number in range(count)]
    made.backlog = backlog or [number % 7 for number in range(count)]
    return made


def result(policy, late=0.0, cost=300.0, **more):
    given = {
        "saved_resources": 0.56,
        "throughput_degradation": 0.18,
        "processed_ratio": 0.9987,
        "latency_ms": {"mean": 250.0, "p50": 70.0, "p99": 2100.0},
        "oracle_ratio": cost / 200.0,
        "hindsight_ratio": cost / 160.0,
        "reconfigurations": 12,
        "max_backlog": 345,
        "dropped": {},
        "events": 2400,
        "wall_s": 0.1,
        "r_over": 26,
        "backlog": 0,
        "target_ms": 2000.0,
        "history": history(),
    }
    return SimulationResult(policy=policy, late_ratio=late, replica_seconds=cost, **{**given, **more})


ORACLE = result("oracle", late=0.001, cost=200.0)
PEAK = result("static:peak", cost=600.0, reconfigurations=0)
PSPS = result("psps", late=0.005, cost=210.0)
KEDA = result("keda", late=0.2, cost=250.0)
UNKNOWN = result("lost", late=math.nan, cost=math.nan)
ALL = [KEDA, PEAK, UNKNOWN, ORACLE, PSPS]


def report(results=tuple(ALL), **changes):
    scenario = Scenario("twitter", TRACE).changed(td_s=TD_S)
    return ArenaReport(scenario=scenario.changed(**changes), results=results)


def nothing_known(one):
    gone = dict.fromkeys(
        ("saved_resources", "throughput_degradation", "processed_ratio", "late_ratio", "oracle_ratio", "max_backlog"),
        math.nan,
    )
    return dataclasses.replace(one, **gone, latency_ms={"mean": None}, replica_seconds=math.inf, dropped=None)


CONTESTS = {
    "whole": ALL,
    "empty": [],
    "one": [PSPS],
    "oracle alone": [ORACLE],
    "nothing known": [nothing_known(PSPS), nothing_known(ORACLE)],
    "the same policy twice": [PSPS, PSPS, dataclasses.replace(PSPS, late_ratio=0.9)],
    "no intervals": [dataclasses.replace(PSPS, history=history(0)), ORACLE],
    "one interval": [dataclasses.replace(PSPS, history=history(1))],
    "nothing ever left": [dataclasses.replace(PSPS, history=history(latency_s=[math.nan] * INTERVALS))],
    "extreme costs": [PSPS, result("static:64", cost=1e6), result("tiny", cost=0.0)],
    "many": [result(f"static:{number}", late=0.5 / number, cost=100.0 * number) for number in range(1, 40)],
}
