"""Penstock attached to two running queries, beside Spark's dynamic allocation and constant numbers of executors.

    python benchmarks/attach.py --json attach.json
    python benchmarks/attach.py --short

All run live on a Spark Standalone cluster of this machine, one after another, each in a process of its own, on real
traces that are played to two queries at once: `score`, a Python function that waits for each row, and `counts`, a count
by window that keeps state. Rows wait there, too, so that more executors than there are cores mean something.

- `attached`: `penstock.attach`, between one executor and the most,
- `dynamic`: spark.dynamicAllocation with shuffle tracking, between the same numbers, and its own defaults,
- `peak`, `mean`: as many executors as the peak, or the mean, of the trace needs, all the time.

Prints executor-seconds from when the first row is due until all are processed, the delay of rows from when they were
due to the end of their batch, the share of rows over the target, changes, and ratios to `dynamic`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SYSTEMS = ("attached", "dynamic", "peak", "mean")
TRACES = ("dns_wrccdc_2018_1s.csv", "twitter_stream_sample_2021_burst_1s.csv", "nyc_taxi_passengers_1800s.csv")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--traces", default=",".join(TRACES))
    arguments.add_argument("--systems", default=",".join(SYSTEMS))
    arguments.add_argument("--rate", type=float, default=8.0, help="mean rows a second of each query")
    arguments.add_argument("--duration", type=float, default=600.0, help="of each trace as it is played, seconds")
    arguments.add_argument("--most", type=int, default=4, help="executors, of two slots each")
    arguments.add_argument("--target-ms", type=float, default=15_000.0)
    arguments.add_argument("--policy", help="of the keeper; its own default if none is named")
    arguments.add_argument("--short", action="store_true", help="one trace, two minutes")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    arguments.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # the trace and the system of this process
    options = arguments.parse_args()
    if options.short:
        options.traces, options.duration = options.traces.split(",")[0], 120.0
    if options.one:
        trace, system = options.one
        print(json.dumps(played(trace, system, options)))
        return
    results = {
        trace: with_ratios({system: alone(trace, system) for system in options.systems.split(",")})
        for trace in options.traces.split(",")
    }
    text = json.dumps({"duration_s": options.duration, "target_ms": options.target_ms, "traces": results}, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def alone(trace: str, system: str) -> dict[str, Any]:
    """One system in a process of its own, so that none finds Java warm."""
    command = [sys.executable, __file__, *sys.argv[1:], "--one", trace, system]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(trace, system, json.dumps(found), file=sys.stderr)
    return found


def played(trace: str, system: str, options: argparse.Namespace) -> dict[str, Any]:
    """A trace under one system."""
    from attach_scenarios import Scene, Stage, load_of

    scene = Scene(
        trace=load_of(trace, options.rate, options.duration),
        most=options.most,
        target_s=options.target_ms / 1000,
        kept={} if options.policy is None else {"policy": options.policy},
    )
    with tempfile.TemporaryDirectory() as folder:
        return Stage(Path(folder), scene).play(system)


def with_ratios(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every system's figures, and beside them how many times those of dynamic allocation they are."""
    base = results.get("dynamic")
    for one in results.values():
        if base and base["executor_seconds"]:
            one["over_dynamic"] = round(one["executor_seconds"] / base["executor_seconds"], 3)
    return results


if __name__ == "__main__":
    main()
