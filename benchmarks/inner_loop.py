"""How often to decide, and when to bind: psps at td 5 to 0.2 s, pushed and pulled, side by side on real bursty traces.

    python benchmarks/inner_loop.py --json inner_loop.json
    python benchmarks/inner_loop.py --live --rate 60 --seconds 120      # on Spark, one run after another

The twitter application, simulated event by event, or on Spark with operators that wait. `late` is over the target,
`ratio` the replica-seconds over those of the first row of the same trace, `changes` those of the operator that changes
most, in a minute; `wake` lets a jump end an interval early, which on Spark is so at all intervals but the longest, with
one more row for that. There the last columns are cores: of the driver's Python process, which is the loop and its end
of the control channel, of its JVM, and of all Python workers with their agents.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rounds import measure

from penstock.simulator import Scenario, simulate
from penstock.workload import data_file, load_trace

TRACES = ("twitter_stream_sample_2021_burst_1s.csv", "dns_wrccdc_2018_1s.csv")
INTERVALS_S = (5.0, 2.0, 1.0, 0.5, 0.2)
PUSH, PULL = "load_balancing", "pull"
CORES_OF = ("driver_cores", "jvm_cores", "worker_cores")
LIVE = ("mean_ms", "p99_ms", "late", "replica_seconds", "changes_per_minute", *CORES_OF)
SCENARIOS = Path(__file__).with_name("inner_loop_scenarios.py")
LINE = "{:10} {:>4} {:15} {:5} {:>8} {:>8} {:>7} {:>10} {:>6} {:>8}"
CORES = " {:>7} {:>6} {:>8}"


@dataclass(frozen=True)
class Measured:
    """One way to decide, on one trace."""

    trace: str
    td_s: float
    grouping: str
    wake: bool
    mean_ms: float
    p99_ms: float
    late: float
    replica_seconds: float
    ratio: float  # of replica-seconds
    changes_per_minute: float  # of the operator with most
    wall_s: float
    driver_cores: float | None = None  # live: CPU of the driver's Python process
    jvm_cores: float | None = None  # of the driver's JVM
    worker_cores: float | None = None  # of all Python workers, in which replicas and agents are

    def __str__(self) -> str:
        shown = (self.trace[:10], f"{self.td_s:g}", self.grouping, "wake" if self.wake else "", f"{self.mean_ms:,.0f}")
        rest = (f"{self.p99_ms:,.0f}", f"{self.late:.2%}", f"{self.replica_seconds:,.0f}", f"{self.ratio:.3f}")
        line = LINE.format(*shown, *rest, f"{self.changes_per_minute:.1f}")
        cores = [one for name in CORES_OF if (one := getattr(self, name)) is not None]
        return line + CORES.format(*(f"{one:.3f}" for one in cores)) if cores else line


def ways(given: argparse.Namespace) -> Iterator[tuple[float, str, bool]]:
    """Intervals, groupings, and whether a jump wakes the loop: on Spark as a run has it, but not at the longest."""
    longest_s = max(given.td)
    for td_s in given.td:
        for grouping in (given.push, PULL):
            yield td_s, grouping, given.live and td_s < longest_s
    yield from ((td_s, PULL, True) for td_s in ((longest_s,) if given.live else (longest_s, 1.0)))


def measured(trace: str, given: argparse.Namespace) -> Iterator[Measured]:
    """Every way to decide, on one trace."""
    whole = Scenario("twitter", load_trace(data_file("traces", f"{trace}.gz")), arrivals="poisson", seed=1)
    scenario = whole.played(mean_rate=given.rate, duration_s=given.seconds).changed(target_ms=1000 * given.target)
    first = 0.0
    for td_s, grouping, wake in ways(given):
        result = simulate(scenario.changed(td_s=td_s, grouping=grouping, wake=wake), given.policy)
        first = first or result.replica_seconds
        yield Measured(
            trace=trace.removesuffix(".csv"),
            td_s=td_s,
            grouping=grouping,
            wake=wake,
            mean_ms=result.latency_ms["mean"],
            p99_ms=result.latency_ms["p99"],
            late=result.late_ratio,
            replica_seconds=result.replica_seconds,
            ratio=result.replica_seconds / first,
            changes_per_minute=max(result.changes_per_minute.values()),
            wall_s=round(result.wall_s, 3),
        )


def lived(trace: str, given: argparse.Namespace) -> Iterator[Measured]:
    """The same on Spark, each way in a process of its own."""
    first = 0.0
    for td_s, grouping, wake in ways(given):
        began = time.monotonic()
        terms = (f"{given.rate:g}", f"{given.seconds:g}", f"{given.target:g}", "wake" if wake else "")
        found = measure(SCENARIOS, given.policy, f"{td_s:g}", grouping, trace, *terms, timeout_s=None)
        first = first or found["replica_seconds"]
        yield Measured(
            trace=trace.removesuffix(".csv"),
            td_s=td_s,
            grouping=grouping,
            wake=wake,
            ratio=found["replica_seconds"] / first,
            wall_s=round(time.monotonic() - began, 3),
            **{name: found[name] for name in LIVE},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=float, default=200.0, help="mean, events per second")
    parser.add_argument("--seconds", type=float, default=600.0, help="of each trace")
    parser.add_argument("--target", type=float, default=2.0, help="seconds, beyond which an event is late")
    parser.add_argument("--td", type=float, nargs="+", default=INTERVALS_S, help="intervals, seconds")
    parser.add_argument("--traces", nargs="+", default=TRACES, help="files of data/traces")
    parser.add_argument("--policy", default="psps")
    parser.add_argument("--push", default=PUSH, help="the grouping beside pull")
    parser.add_argument("--live", action="store_true", help="on Spark")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    head = LINE.format("trace", "td", "grouping", "", "mean ms", "p99 ms", "late", "replica-s", "ratio", "changes")
    print(head + CORES.format("driver", "JVM", "workers") if given.live else head)
    results = []
    for trace in given.traces:
        for one in (lived if given.live else measured)(trace, given):
            results.append(one)
            print(one, flush=True)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
