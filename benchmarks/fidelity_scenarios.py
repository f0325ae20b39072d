"""The live run of `fidelity.py`: the Twitter application on Spark under a policy, as one line of JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from penstock import Elastic, Run, RunOptions, load_trace
from penstock.apps.deployment import Deployment
from penstock.workload import data_file, played

TRACE = "twitter_stream_sample_2021_burst_1s.csv"
SERVICE_MS = {"clean": 30.0, "classify": 60.0, "author": 45.0, "store": 30.0}
WARM_UP_S = 2.0


def live(
    policy: str, grouping: str, td: str, rate: str, speedup: str, seconds: str, target: str, store: str
) -> dict[str, float]:
    """The figures of one run, whose intervals are in the store."""
    trace = played(load_trace(data_file("traces", TRACE)), float(rate), float(speedup), float(seconds))
    deployment = Deployment(app="twitter", service_ms=SERVICE_MS, grouping=grouping)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(deployment.topology(Path(folder)), deployment.source(trace), options=RunOptions(folder=Path(folder)))
        with Elastic(run, policy, td_s=float(td), expected=trace, store=store, warm_up_s=WARM_UP_S) as elastic:
            elastic.wait(trace.duration_s + 120)
        summary, late = elastic.summary(), elastic.counters().latency.share_above(1000 * float(target))
    kept = ("saved_resources", "throughput_degradation", "processed_ratio")
    found = {name: float(summary[name]) for name in kept}
    return found | {"latency_mean_ms": summary["latency_ms"]["mean"], "late_ratio": late}


if __name__ == "__main__":
    print(json.dumps(live(*sys.argv[1:])))
