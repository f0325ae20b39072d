"""One live run of the inner loop: the twitter application on Spark, under a policy, as one line of JSON.

python benchmarks/inner_loop_scenarios.py psps 1.0 pull dns_wrccdc_2018_1s.csv 60 120 2.0
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import psutil

from penstock import Elastic, Run, RunOptions, load_trace
from penstock.apps.deployment import Deployment
from penstock.workload import data_file

SERVICE_MS = {"clean": 10.0, "classify": 20.0, "author": 15.0, "store": 10.0}
POOL = 12


def live(policy: str, td: str, grouping: str, trace: str, rate: str, seconds: str, target: str) -> dict[str, float]:
    """The figures of one run."""
    played = load_trace(data_file("traces", f"{trace}.gz")).scaled(float(rate)).limited(float(seconds))
    pools = dict.fromkeys(SERVICE_MS, POOL)
    deployment = Deployment(app="twitter", pools=pools, service_ms=SERVICE_MS, grouping=grouping, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(folder=Path(folder))
        run = Run(deployment.topology(Path(folder)), deployment.source(played), options=options)
        with Elastic(run, policy, td_s=float(td), expected=played) as elastic:
            began, cpu = time.time(), driver_cpu_s()
            elastic.wait(float(seconds) + 120)
            cores = (driver_cpu_s() - cpu) / (time.time() - began)
        summary = elastic.summary()
        late = elastic.counters().latency.share_above(1000 * float(target))
    return {
        "mean_ms": summary["latency_ms"]["mean"],
        "p99_ms": summary["latency_ms"]["p99"],
        "late": late,
        "replica_seconds": summary["replica_seconds"],
        "changes_per_minute": max(summary["changes_per_minute"].values(), default=0.0),
        "events": summary["events"],
        "processed": summary["processed"],
        "driver_cores": cores,
    }


def driver_cpu_s() -> float:
    """CPU seconds of the Python driver: the loop, and its end of the control channel."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    print(json.dumps(live(*sys.argv[1:])))
