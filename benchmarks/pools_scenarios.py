"""The scenarios of `pools.py`; each runs in a process of its own: `python pools_scenarios.py hang pull`."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from engine_scenarios import chain, cpu_s, numbers, private_bytes

from penstock import Elastic, Run, RunOptions, Topology, TraceSource
from penstock.sinks import CollectSink, collected
from penstock.topology import Context
from penstock.workload import Trace, constant

SERVICE_S = 0.02  # of a replica at work: it does 50 events a second
WARM_UP_S = 20.0
HANG_S = 5.0
QUIET_RATE = 20.0
LATE_S = 1.0
Collected = list[dict[str, Any]]


class Work:
    """Takes its time, and notes when and by which replica each event was done."""

    def open(self, context: Context) -> None:
        """Note which replica this is."""
        self._replica = context.replica

    def process(self, event: dict[str, Any]) -> dict[str, Any]:
        """One event."""
        time.sleep(SERVICE_S)
        return event | {"done_s": time.time(), "by": self._replica}


def same(event: dict[str, Any]) -> dict[str, Any]:
    """Passes an event on."""
    return event


def worked(folder: Path, grouping: str, pool: int) -> Topology:
    """Somebody who sends, the replicas at work, and a sink."""
    topology = Topology("worked", pool=pool)
    first = topology.operator("first", same, inputs=topology.source("numbers"), grouping=grouping, pool=1)
    work = topology.operator("work", Work(), inputs=first, grouping=grouping)
    topology.operator("end", CollectSink(folder), inputs=work, grouping=grouping, pool=1)
    return topology


def numbered(trace: Trace) -> TraceSource:
    return TraceSource(trace, [{"n": n} for n in range(round(trace.events))])


def steps(*parts: tuple[float, float]) -> Trace:
    """A trace of (rate, seconds) one after another."""
    return Trace("steps", 1.0, np.concatenate([np.full(round(seconds), rate) for rate, seconds in parts]))


def total_of(source: TraceSource) -> int:
    """How many events it gives; a trace ends."""
    return source.total or 0


def delays(folder: Path, source: TraceSource, epoch_s: float | None) -> Collected:
    """What the sink has, with the time at which each was due and how long it took, in the order of being due."""
    due_s = source.due_times(range(total_of(source)))
    events = [event for _, event in collected(folder)]
    for event in events:
        event["due_s"] = (epoch_s or 0.0) + due_s[event["n"]]
        event["took_s"] = event["done_s"] - event["due_s"]
    return sorted(events, key=lambda event: int(event["n"]))


def p99_ms(events: Iterable[Mapping[str, Any]]) -> float:
    took = [event["took_s"] for event in events]
    return 1000 * float(np.percentile(took, 99)) if took else float("nan")


# ── a replica that hangs ────────────────────────────────────────────────────────────────────────────────────────────


def hang(grouping: str = "pull") -> dict[str, float]:
    """One of four replicas is stopped for 5 s, at half of what they can do together: who is late because of it?"""
    folder, source = Path(tempfile.mkdtemp()), numbered(constant(100.0, WARM_UP_S + 30.0))
    with Run(worked(folder, grouping, pool=4), source, replicas={"work": 4}) as run:
        time.sleep(WARM_UP_S + 10.0)
        victim, began_s = run.places()["work", 1].pid, time.time()
        os.kill(victim, signal.SIGSTOP)
        try:
            time.sleep(HANG_S)
        finally:
            os.kill(victim, signal.SIGCONT)
        run.wait(60)
        events = delays(folder, source, run.epoch_s)
    return hang_figures(events, began_s) | {"lost": total_of(source) - len(events)}


def hang_figures(events: Collected, began_s: float) -> dict[str, float]:
    """Of a hang of replica 1 that began then: how long other replicas' events took, and how many were late."""
    before = [one for one in events if began_s - 10.0 < one["due_s"] < began_s - LATE_S]
    others = [one for one in events if began_s < one["due_s"] < began_s + HANG_S and one["by"] != 1]
    late = [one for one in events if began_s - LATE_S < one["due_s"] < began_s + 10.0 and one["took_s"] > LATE_S]
    return {
        "p99_before_ms": p99_ms(before),
        "p99_others_ms": p99_ms(others),
        "late": len(late),
        "late_of_others": sum(one["by"] != 1 for one in late),
    }


# ── twice as much as can be done ────────────────────────────────────────────────────────────────────────────────────


def overload(grouping: str = "pull", seconds: str = "60") -> dict[str, float]:
    """Twice the capacity for so long; then hardly anything, and twice the replicas: memory, lag, and the recovery."""
    length_s, folder, capacity = float(seconds), Path(tempfile.mkdtemp()), 2 / SERVICE_S
    trace = steps((QUIET_RATE, WARM_UP_S), (2 * capacity, length_s), (QUIET_RATE, 30.0 + 0.7 * length_s))
    source = numbered(trace)
    with Run(worked(folder, grouping, pool=4), source, replicas={"work": 2}) as run:
        memory = memory_until((run.epoch_s or 0.0) + WARM_UP_S + length_s, steps=30)
        waits, outside, began_s = backlog(run), run.counters().lag["numbers"], time.time()
        run.set_replicas("work", 4)
        while backlog(run) > capacity / 10:
            time.sleep(0.2)
        recovered_s = time.time() - began_s
        run.wait(trace.duration_s)
        events = collected(folder)
    settled = memory[len(memory) // 2 :]
    return {
        "waited": waits,
        "outside_share": outside / max(waits, 1),
        "memory_mb": settled[0],
        "memory_growth_mb": settled[-1] - settled[0],
        "recovered_s": recovered_s,
        "at_best_s": waits / (2 * capacity - QUIET_RATE),
        "lost": total_of(source) - len({event["n"] for _, event in events}),
    }


def memory_until(end_s: float, steps: int) -> list[float]:
    """The memory of the workers, so often until then."""
    found, pause_s = [], max(0.5, (end_s - time.time()) / steps)
    while time.time() < end_s:
        found.append(memory_mb())
        time.sleep(min(pause_s, max(0.0, end_s - time.time())))
    return found


def backlog(run: Run) -> int:
    """What waits anywhere: outside, and in the replicas."""
    counters = run.fresh_counters()
    entered = counters.sources["numbers"] + counters.lag["numbers"]
    return entered - counters.operators["end"].total.processed


def memory_mb() -> float:
    """Of the Python workers, all that they do not share."""
    return sum(map(private_bytes, psutil.Process().children(recursive=True))) / 1e6


# ── a jump ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Called:
    """Notes when the loop asks for more replicas."""

    def __init__(self, run: Run) -> None:
        self.times_s: list[float] = []
        self._run, self._set = run, run.set_replicas

    def __call__(self, operator: str, replicas: int | Sequence[int]) -> None:
        """In the place of `Run.set_replicas`."""
        if len(replicas if isinstance(replicas, Sequence) else range(replicas)) > len(self._run.active[operator]):
            self.times_s.append(time.time())
        self._set(operator, replicas)


def jump(grouping: str = "pull", td: str = "1") -> dict[str, float]:
    """What enters jumps from 60 to 300 a second, five times: when does the loop ask, and when are more at work?"""
    rounds, low_s, high_s = 5, 10.0, 5.0
    trace = steps((60.0, WARM_UP_S), *((60.0, low_s), (300.0, high_s)) * rounds, (60.0, 5.0))
    folder, source = Path(tempfile.mkdtemp()), numbered(trace)
    run = Run(worked(folder, grouping, pool=10), source)
    run.set_replicas = called = Called(run)  # type: ignore[method-assign]
    with Elastic(run, "psps", td_s=float(td)) as elastic:
        elastic.wait(trace.duration_s + 60)
        events, epoch_s = delays(folder, source, run.epoch_s), run.epoch_s or 0.0
    jumps_s = [epoch_s + WARM_UP_S + number * (low_s + high_s) + low_s for number in range(rounds)]
    return jump_figures(events, jumps_s, called.times_s) | {"p99_ms": p99_ms(events)}


def jump_figures(events: Collected, jumps_s: Sequence[float], asked_s: Sequence[float]) -> dict[str, float]:
    """From each jump to when the loop next asked for more, and to the first event at a replica that was idle."""
    found: dict[str, list[float]] = {"asked_ms": [], "at_work_ms": []}
    for jump_s in jumps_s:
        known = {one["by"] for one in events if jump_s - 2.0 < one["done_s"] < jump_s}
        new = [one["done_s"] - SERVICE_S for one in events if one["done_s"] > jump_s and one["by"] not in known]
        found["asked_ms"].append(1000 * (min(at_s for at_s in asked_s if at_s > jump_s) - jump_s))
        found["at_work_ms"].append(1000 * (min(new) - jump_s))
    medians = {name: float(np.median(times_ms)) for name, times_ms in found.items()}
    return medians | {f"longest_{name}": max(times_ms) for name, times_ms in found.items()}


# ── many replicas ───────────────────────────────────────────────────────────────────────────────────────────────────


def start(pool: str = "64") -> dict[str, float]:
    """Four pools of that size: how long until all are there, what they cost idle, and how it runs."""
    begun = time.monotonic()
    run = Run(chain(int(pool)), numbers(50.0, 1e4), options=RunOptions(start_timeout_s=300.0))
    with run:
        started_s = time.monotonic() - begun
        time.sleep(WARM_UP_S)
        before, cpu, began_s = run.fresh_counters(5.0).latency, cpu_s(), time.monotonic()
        time.sleep(20.0)
        latency, cores = run.fresh_counters(5.0).latency.since(before), (cpu_s() - cpu) / (time.monotonic() - began_s)
        private, java = memory_mb(), java_process()
        threads, files, java_mb = java.num_threads(), java.num_fds(), java.memory_info().rss / 1e6
        run.stop_sources()
    replicas = 4 * int(pool)
    return {
        "replicas": replicas,
        "java_threads": threads,
        "java_files": files,
        "java_mb": java_mb,
        "started_s": started_s,
        "p50_ms": latency.percentile_ms(0.5),
        "p99_ms": latency.percentile_ms(0.99),
        "cores": cores,
        "private_mb_each": private / replicas,
    }


def java_process() -> psutil.Process:
    return next(one for one in psutil.Process().children(recursive=True) if one.name() == "java")


if __name__ == "__main__":
    scenarios: dict[str, Callable[..., dict[str, float]]] = {
        "hang": hang,
        "overload": overload,
        "jump": jump,
        "start": start,
    }
    print(json.dumps(scenarios[sys.argv[1]](*sys.argv[2:])))
