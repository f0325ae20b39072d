"""psps live on Spark against static sizing: the Twitter application under a real burst, one policy after another.

    python benchmarks/live_psps.py --json live_psps.json

Each policy is a run of `penstock run` of its own. Prints what each saved, processed, delayed; the saving as a share
of what an oracle (which knows every interval beforehand) would save; and load-balancing grouping beside shuffle.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from penstock.metrics.paper import overestimated_replicas, saved_resources, static_replicas
from penstock.metrics.store import Store
from penstock.workload import Trace, data_file, load_trace

TRACE = "twitter_stream_sample_2021_burst_1s.csv"
SERVICE_MS = {"clean": 10, "classify": 20, "author": 15, "store": 10}
POLICIES = ("psps", "static:1", "static:4", "static:peak")
AFTER_SCALE_OUT = 2  # intervals


def run(policy: str, grouping: str, trace: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One run from the command line; its summary."""
    name = f"{policy.replace(':', '-')}-{grouping}"
    summary, store = folder / f"{name}.json", folder / f"{name}.db"
    times = ",".join(f"{operator}={ms}" for operator, ms in SERVICE_MS.items())
    pools = ",".join(f"{operator}=8" for operator in SERVICE_MS)
    start = [] if policy == "psps" else ["--replicas", _start(policy, options)]
    command = [sys.executable, "-m", "penstock.cli", "run", "twitter", "--trace", str(trace)]
    command += ["--speedup", str(options.speedup), "--td", str(options.td), "--policy", policy, "--grouping", grouping]
    command += ["--service-ms", times, "--pool", pools, "--store", str(store), "--json", str(summary), *start]
    if options.duration:
        command += ["--duration", str(options.duration)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    result: dict[str, Any] = json.loads(summary.read_text())
    return result | {"grouping": grouping, "after_scale_out_ms": after_scale_outs(store)}


def _start(policy: str, options: argparse.Namespace) -> str:
    """A static run starts as it goes on."""
    kind = policy.partition(":")[2]
    counts = static_replicas(
        options.played.peak, dict.fromkeys(SERVICE_MS, 1.0), {name: ms / 1000 for name, ms in SERVICE_MS.items()}
    )
    return ",".join(f"{name}={counts[name] if kind == 'peak' else kind}" for name in SERVICE_MS)


def after_scale_outs(store: Path) -> float | None:
    """Mean latency in the intervals right after a scale-out."""
    reader = Store(str(store), must_exist=True)
    (found,) = reader.runs()
    grown = {row.number for row in reader.decisions(found.run) if row.after > row.before}
    after = {number + step for number in grown for step in range(1, AFTER_SCALE_OUT + 1)}
    rows = [row for row in reader.intervals(found.run) if row.number in after and row.latency_mean_ms is not None]
    reader.close()
    return fmean(row.latency_mean_ms or 0.0 for row in rows) if rows else None


def oracle_saving(played: Trace, td_s: float) -> float:
    """What knowing every interval's mean rate beforehand would save."""
    shares = dict.fromkeys(SERVICE_MS, 1.0)
    times = {name: ms / 1000 for name, ms in SERVICE_MS.items()}
    needed = [sum(static_replicas(float(rate), shares, times).values()) for rate in played.resampled(td_s).rates]
    return saved_resources(needed, overestimated_replicas(played.peak, shares, times))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--speedup", type=float, default=60.0)
    arguments.add_argument("--td", type=float, default=2.0)
    arguments.add_argument("--duration", type=float, help="cut the played trace, seconds")
    arguments.add_argument("--json", type=Path, help="also write the result here")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = data_file("traces", TRACE)
        played = load_trace(trace).compressed(options.speedup)
        options.played = played.limited(options.duration) if options.duration else played
        cases = [(policy, "load_balancing") for policy in POLICIES] + [("psps", "shuffle")]
        results = [run(policy, grouping, trace, folder, options) for policy, grouping in cases]
    oracle = oracle_saving(options.played, options.td)
    report = {"trace": trace.name, "oracle_saved": round(oracle, 4), "runs": [brief(one, oracle) for one in results]}
    text = json.dumps(report, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def brief(result: dict[str, Any], oracle: float) -> dict[str, Any]:
    """The figures that matter of one run."""
    kept = ("policy", "grouping", "events", "processed", "dropped", "saved_resources", "throughput_degradation")
    after = result["after_scale_out_ms"]
    return {name: result[name] for name in kept} | {
        "processed_ratio": result["processed_ratio"],
        "latency_ms": result["latency_ms"],
        "saved_of_oracle": round(result["saved_resources"] / oracle, 4) if oracle else None,
        "after_scale_out_ms": None if after is None else round(after, 1),
    }


if __name__ == "__main__":
    main()
