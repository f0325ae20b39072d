"""What `sizing.py` plays: pieces of real traces, what came before them, and what workers cost where all is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from penstock.policy.workload import Workload
from penstock.simulator import Scenario
from penstock.simulator.prepare import prepare
from penstock.workload import Trace, data_file, load_trace

TRACES = {  # how many times faster each is played: coarse ones so that a step lasts 5 s
    "azure_llm_code_2023_1s": 1.0,
    "bgelasor_fluctuate_600s": 120.0,
    "bgelasor_periodic_300s": 60.0,
    "demeter_cars_1s": 1.0,
    "dns_wrccdc_2018_1s": 1.0,
    "nyc_taxi_passengers_1800s": 360.0,
    "twitter_stream_sample_2021_burst_1s": 1.0,
}
BEFORE_S = 1800.0  # of a trace that those who learn have seen, or half of a shorter one: a day of the coarse ones
STEP_S = 5.0  # at which workers are planned by who knows all


def pieces(name: str, seconds: float, rate: float) -> tuple[Trace, Trace]:
    """What came before, and what is played after it, at a mean of so many events per second in the latter."""
    whole = load_trace(data_file("traces", f"{name}.csv")).compressed(TRACES[name])
    start_s = math.floor(min(BEFORE_S, whole.duration_s / 2) / whole.step_s) * whole.step_s
    played = whole.window(start_s, min(start_s + seconds, whole.duration_s))
    before = whole.window(0.0, start_s)
    return before.scaled(before.mean * rate / played.mean), played.scaled(rate)


def need(workload: Workload, rate: float) -> dict[str, int]:
    """Replicas for a rate: ⌈rate · θ_i · et_i⌉.

    >>> need(Workload(400, 100, {"clean": 1.0, "store": 0.5}, {"clean": 0.01, "store": 0.016}), 250.0)
    {'clean': 3, 'store': 2}
    """
    times_s = workload.execution_times_s
    return {name: max(1, math.ceil(rate * part * times_s[name] - 1e-9)) for name, part in workload.shares.items()}


def first_replicas(scenario: Scenario, before: Trace, lately_s: float) -> dict[str, int]:
    """What the largest rate needs that came in the last so many seconds before."""
    lately = before.window(max(0.0, before.duration_s - lately_s), before.duration_s)
    return _within(need(prepare(scenario).workload, lately.peak), scenario.pool)


def workers_s(wanted: Sequence[int], step_s: float, joining_s: float) -> float:
    """The fewest worker-seconds with which so many workers are there in each step, by who knows all of them before.

    A worker that is started is paid for while it joins. As many as one likes are there when it begins.

    >>> workers_s([2, 1, 1, 2], 5.0, joining_s=4.0), workers_s([2, 1, 1, 2], 5.0, joining_s=12.0)
    (34.0, 40.0)
    """
    counts = np.arange(max(wanted) + 1)
    start_s = joining_s * np.maximum(0, counts[:, np.newaxis] - counts)
    cost_s = np.zeros(len(counts))
    for least in wanted:
        cost_s = (cost_s + start_s).min(axis=1) + step_s * counts
        cost_s[:least] = math.inf
    return float(cost_s.min())


def planned(scenario: Scenario, slots: int, joining_s: float) -> float:
    """Slot-seconds of whole workers for the rate of every step, where all are known: a reference, and no bound."""
    prepared = prepare(scenario)
    steps = scenario.input if scenario.input.step_s >= STEP_S else scenario.input.resampled(STEP_S)
    seats = len(prepared.topology.sources)
    replicas = [sum(_within(need(prepared.workload, rate), scenario.pool).values()) for rate in steps.rates]
    wanted = [math.ceil((count + seats) / slots) for count in replicas]
    return slots * workers_s(wanted, steps.step_s, joining_s)


def _within(replicas: Mapping[str, int], pool: object) -> dict[str, int]:
    most = pool if isinstance(pool, int) else math.inf
    return {name: int(min(count, most)) for name, count in replicas.items()}
