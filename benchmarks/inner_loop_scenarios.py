"""One live run of the inner loop: the twitter application on Spark, under a policy, as one line of JSON.

python benchmarks/inner_loop_scenarios.py psps 1.0 pull dns_wrccdc_2018_1s.csv 60 120 2.0 wake
"""

from __future__ import annotations

import contextlib
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
WAKE = "wake"


def live(policy: str, td: str, grouping: str, trace: str, *terms: str) -> dict[str, float]:
    """The figures of one run; terms are the mean rate, seconds, the target in seconds, and `wake` or nothing."""
    rate, seconds, target, wake = terms
    played = load_trace(data_file("traces", f"{trace}.gz")).scaled(float(rate)).limited(float(seconds))
    pools = dict.fromkeys(SERVICE_MS, POOL)
    deployment = Deployment(app="twitter", pools=pools, service_ms=SERVICE_MS, grouping=grouping, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(folder=Path(folder))
        run = Run(deployment.topology(Path(folder)), deployment.source(played), options=options)
        with Elastic(run, policy, td_s=float(td), expected=played, wake=wake == WAKE) as elastic:
            began, before = time.monotonic(), cpu_s()
            elastic.wait(float(seconds) + 120)
            lasted_s = time.monotonic() - began
            cores = {f"{kind}_cores": (now - before[kind]) / lasted_s for kind, now in cpu_s().items()}
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
        **cores,
    }


def cpu_s() -> dict[str, float]:
    """CPU seconds so far: of the Python driver, of its JVM, and of all other Python processes, also ended ones."""
    times = psutil.Process().cpu_times()
    found = {"driver": float(times.user + times.system), "jvm": 0.0, "worker": 0.0}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times, java = process.cpu_times(), process.name() == "java"
            found["jvm" if java else "worker"] += times.user + times.system
            if not java:  # the daemon has those of the workers that it forked and that have ended
                found["worker"] += times.children_user + times.children_system
    return found


if __name__ == "__main__":
    print(json.dumps(live(*sys.argv[1:])))
