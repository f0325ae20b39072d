"""Penstock's elastic workers beside Spark's own dynamic allocation: the word count under a ramp, on the same workers.

    python benchmarks/dynamic_allocation.py --json dynamic_allocation.json

All run live on a Spark Standalone cluster of this machine, one after another, each in a process of its own:

- `spark`: a plain Structured Streaming query of the same functions, in micro-batches; its executors are started and
  stopped by spark.dynamicAllocation, with shuffle tracking and a short idle timeout,
- `e2df`, `psps`: `penstock run --cluster local` under these policies.

An executor runs as many tasks at once as a worker hosts active replicas. Prints the worker-seconds from when the first
event is due until all are processed, the latency of words, and how many were late, with ratios to `spark`.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from penstock import Elastic, ElasticWorkers, Run, RunOptions, Trace
from penstock.apps.deployment import Deployment
from penstock.metrics.latency import FLOOR_MS, GROWTH, LatencyHistogram
from penstock.workload import ramp, save_trace

SPARK = "spark"
SYSTEMS = (SPARK, "e2df", "psps")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--high", type=float, default=60.0, help="sentences a second at the peak")
    arguments.add_argument("--low", type=float, default=5.0)
    arguments.add_argument("--duration", type=float, default=180.0, help="of the ramp up and down, seconds")
    arguments.add_argument("--workers", default="1..4")
    arguments.add_argument("--td", type=float, default=5.0)
    arguments.add_argument("--target-ms", type=float, default=2000.0)
    arguments.add_argument("--systems", default=",".join(SYSTEMS))
    arguments.add_argument("--json", type=Path, help="also write the result here")
    arguments.add_argument("--one", help=argparse.SUPPRESS)  # the system that this process plays
    options = arguments.parse_args()
    if options.one:
        print(json.dumps(played(options.one, options)))
        return
    results = {name: alone(name) for name in options.systems.split(",")}
    report = {"duration_s": options.duration, "peak": options.high, "systems": with_ratios(results)}
    text = json.dumps(report, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def alone(system: str) -> dict[str, Any]:
    """One system in a process of its own, so that none finds Java warm."""
    command = [sys.executable, __file__, *sys.argv[1:], "--one", system]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def played(system: str, options: argparse.Namespace) -> dict[str, Any]:
    """The ramp under one system."""
    from dynamic_allocation_scenarios import TIMES_MS

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = ramp(low=options.low, high=options.high, duration_s=options.duration)
        deployment = Deployment(app="wordcount", service_ms=TIMES_MS)
        topology = deployment.topology(folder)
        workers = ElasticWorkers(topology, options.workers, expected=trace, folder=folder)  # says how large they are
        if system == SPARK:
            return by_spark(trace, folder, workers, options.target_ms)
        run = Run(topology, deployment.source(trace), options=workers.options(RunOptions(folder=folder)))
        return by_penstock(Elastic(run, system, td_s=options.td, workers=workers), options.target_ms)


def by_spark(trace: Trace, folder: Path, workers: ElasticWorkers, target_ms: float) -> dict[str, Any]:
    """Structured Streaming under dynamic allocation."""
    from dynamic_allocation_scenarios import Sizes, play

    bounds, file = workers.bounds, save_trace(trace, folder / "ramp.csv")
    found = play(file, folder, Sizes(bounds.least, bounds.most, bounds.capacity))
    latencies_ms = found.pop("latencies_ms")
    histogram = LatencyHistogram()
    histogram.add_many(latencies_ms)
    late = sum(one > target_ms for one in latencies_ms) + found["unfinished"]
    return found | shown(histogram) | {"late": late}


def by_penstock(live: Elastic, target_ms: float) -> dict[str, Any]:
    """A run on workers of this machine that come and go."""
    seconds: list[float] = []
    most = 0
    with live:
        assert live.workers is not None
        assert live.workers.cluster is not None
        while not live.wait(0.25):
            seconds.append(live.workers.cluster.seconds)
            most = max(most, len(live.workers.cluster.list()))
    counters = live.counters()
    left = sum(one.backlog for one in counters.operators.values())
    late = left + sum(count for bucket, count in counters.latency.buckets.items() if _middle_ms(bucket) > target_ms)
    return {
        "events": sum(counters.sources.values()),
        "worker_seconds": seconds[-1] - seconds[0],
        "most_workers": most,
        "unfinished": left,
        **shown(counters.latency),
        "late": late,
    }


def _middle_ms(bucket: int) -> float:
    return FLOOR_MS * math.pow(GROWTH, bucket + 0.5)


def shown(latency: LatencyHistogram) -> dict[str, Any]:
    """Words, and their latencies."""
    percentiles = {name: round(latency.percentile_ms(q), 1) for name, q in (("p90", 0.9), ("p99", 0.99))}
    return {"words": latency.count, "latency_ms": {"mean": round(latency.mean_ms, 1)} | percentiles}


def with_ratios(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every system's figures, and beside them how many times those of Spark they are."""
    base = results.get(SPARK)
    for result in results.values():
        result["late_ratio"] = round(result["late"] / max(result["words"] + result["unfinished"], 1), 4)
        result["worker_seconds"] = round(result["worker_seconds"], 1)
        if base:
            latency = {name: round(value / base["latency_ms"][name], 3) for name, value in result["latency_ms"].items()}
            workers = round(result["worker_seconds"] / base["worker_seconds"], 3)
            result["over_spark"] = {"worker_seconds": workers, "latency_ms": latency}
    return results


if __name__ == "__main__":
    main()
