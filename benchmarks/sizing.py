"""The right size at both levels: policies as curves on the real traces, each with one setting chosen on other traces.

    python benchmarks/sizing.py --resume sizing/ --json sizing.json --html sizing/    # up to an hour on two cores
    python benchmarks/sizing.py --quick                                               # about a minute

Replicas at td 1 and 5 s, and workers of four slots that join after 12, 60 and 180 s at td 5 s. The traces make two
halves. Every policy, ours as well, gets the one headroom with which it keeps the promise on most traces of one half,
the cheapest of these, and is judged with it on the other half. `best` is its cheapest headroom of each trace in
hindsight.
Cost is over the bound: replica-seconds, or slot-seconds of workers (used or not), over the replica-seconds that no run
can do without that keeps the promise.

Of `penstock` the rules and constants were chosen on traces that these are among: for it, no half is untouched.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from penstock.infra.simulated import Region
from penstock.infra.worker import WorkerSize
from penstock.report.page import write_page
from penstock.report.sweep_page import sweep_page
from penstock.simulator import Scenario, Sweep
from penstock.simulator.curves import Setting, SweepResult, geometric_mean
from penstock.simulator.parallel import cores
from penstock.simulator.prepare import topology_of
from penstock.workload import data_file, data_folder, load_trace

TRACES = {  # how many times faster each is played: coarse ones so that a step lasts 5 s
    "azure_llm_code_2023_1s": 1.0,
    "bgelasor_fluctuate_600s": 120.0,
    "bgelasor_periodic_300s": 60.0,
    "demeter_cars_1s": 1.0,
    "dns_wrccdc_2018_1s": 1.0,
    "nyc_taxi_passengers_1800s": 360.0,
    "twitter_stream_sample_2021_burst_1s": 1.0,
}
POLICIES = "penstock,psps,ds2,flink:short,keda,e2df,incremental,cba,static:peak"
ON_WORKERS = "penstock,psps,e2df,cba,static:peak"
SLOTS = 4  # of a worker
FIRST = 4  # replicas of each operator that all begin with, where there are workers: five of these host them
JOINING_S = (12.0, 60.0, 180.0)


@dataclass(frozen=True)
class Part:
    """One table: replicas at an interval, or workers that join after a while."""

    name: str
    td_s: float
    policies: str
    joining_s: float | None = None

    def scenario(self, trace: str, given: argparse.Namespace) -> Scenario:
        """The Twitter application under a trace, with pools that carry many times the mean."""
        scenario = Scenario(
            "twitter",
            load_trace(data_file("traces", f"{trace}.csv")),
            events=data_folder("events"),
            pool=given.pool if self.joining_s is None else given.worker_pool,
            arrivals=given.arrivals,
        ).played(speedup=TRACES[trace], duration_s=given.seconds, mean_rate=given.rate)
        scenario = scenario.changed(td_s=self.td_s, late=given.late)
        if self.joining_s is None:
            return scenario
        region = Region(name="here", sizes=(WorkerSize(name="four", capacity=SLOTS),), start_s=self.joining_s)
        replicas = dict.fromkeys(topology_of(scenario).operators, FIRST)
        most = math.ceil(len(replicas) * given.worker_pool / SLOTS) + 1
        return scenario.changed(levels="both", regions=(region,), replicas=replicas, workers=most)


@dataclass(frozen=True)
class Row:
    """A policy in one part: the headroom chosen on one half, judged on the other, and the best in hindsight."""

    part: str
    policy: str
    half: str  # on which it is judged
    factor: float
    kept: int
    traces: int
    cost: float
    late: float  # the mean share
    missed: tuple[str, ...]  # traces on which the promise is not kept
    best: float | None  # over the traces of the half on which some headroom keeps the promise


def parts(given: argparse.Namespace) -> list[Part]:
    """All tables."""
    replicas = [Part(f"replicas, td {td_s:g} s", td_s, given.policies) for td_s in given.td]
    slowest = max(given.td)
    return replicas + [
        Part(f"workers after {joining_s:g} s, td {slowest:g} s", slowest, given.on_workers, joining_s)
        for joining_s in given.joining
    ]


def in_slots(result: SweepResult) -> SweepResult:
    """The same with what workers cost in the place of what replicas cost."""
    points = [
        one if one.worker_seconds is None else replace(one, replica_seconds=SLOTS * one.worker_seconds)
        for one in result.points
    ]
    return replace(result, points=points)


def rows_of(part: str, result: SweepResult) -> list[Row]:
    """Every policy, judged on each half."""
    halves = {"A": result.traces[::2], "B": result.traces[1::2]}
    curves = {trace: result.curves(trace) for trace in result.traces}
    found = []
    for policy in result.settings["policies"]:
        own = {trace: {one.factor: one for one in several[policy]} for trace, several in curves.items()}
        for half, others in (("A", "B"), ("B", "A")):
            factor = chosen({trace: own[trace] for trace in halves[others]}, result.late)
            judged = {trace: own[trace][factor] for trace in halves[half]}
            kept = [one for one in judged.values() if one.late <= result.late]
            least = [[one.cost for one in own[trace].values() if one.late <= result.late] for trace in halves[half]]
            found.append(
                Row(
                    part,
                    policy,
                    half,
                    factor,
                    len(kept),
                    len(judged),
                    geometric_mean([one.cost for one in judged.values()]),
                    sum(one.late for one in judged.values()) / len(judged),
                    tuple(trace for trace, one in judged.items() if one.late > result.late),
                    geometric_mean([min(some) for some in least if some]) if any(least) else None,
                )
            )
    return found


def chosen(own: Mapping[str, Mapping[float, Setting]], late: float) -> float:
    """The headroom that keeps the promise on most of these traces; of several the cheapest."""

    def merit(factor: float) -> tuple[int, float]:
        settings = [curve[factor] for curve in own.values()]
        return -sum(one.late <= late for one in settings), geometric_mean([one.cost for one in settings])

    return min(next(iter(own.values())), key=merit)


def tell(console: Console, part: str, rows: Sequence[Row], result: SweepResult) -> None:
    table = Table(title=f"{part}; A is {', '.join(result.traces[::2])}", title_justify="left")
    for name in ("policy", "half", "factor", "kept", "×bound", "late", "best", "not on"):
        table.add_column(name, justify="left" if name in ("policy", "not on") else "right", no_wrap=name == "policy")
    for one in sorted(rows, key=lambda one: (one.half, -one.kept, one.cost)):
        best = "–" if one.best is None else f"{one.best:.2f}"
        shown = (f"{one.factor:g}", f"{one.kept} of {one.traces}", f"{one.cost:.2f}", f"{one.late:.2%}", best)
        table.add_row(one.policy, one.half, *shown, ", ".join(name.split("_")[0] for name in one.missed))
    console.print(table)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="three short traces, three policies, one seed")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--on-workers", default=ON_WORKERS, help="the policies that are played on workers")
    parser.add_argument("--traces", nargs="+", default=list(TRACES), choices=list(TRACES), metavar="TRACE")
    parser.add_argument("--factors", type=float, nargs="+", default=[1.0, 1.15, 1.35, 1.7, 2.2])
    parser.add_argument("--td", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--joining", type=float, nargs="*", default=list(JOINING_S))
    parser.add_argument("--rate", type=float, default=200.0, help="events per second, on average")
    parser.add_argument("--seconds", type=float, default=900.0, help="of each trace")
    parser.add_argument("--pool", type=int, default=64)
    parser.add_argument("--worker-pool", type=int, default=16, help="the pools where there are workers")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--late", type=float, default=0.01)
    parser.add_argument("--arrivals", choices=("even", "poisson"), default="poisson")
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--resume", type=Path, help="a folder from which a benchmark that was stopped goes on")
    parser.add_argument("--html", type=Path, help="a folder for a page of each table")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.quick:
        given.traces, given.seconds, given.seeds, given.joining = (
            given.traces[-3:-1] + given.traces[-1:],
            120.0,
            1,
            [12.0],
        )
        given.policies = given.on_workers = "penstock,psps,static:peak"
        given.td, given.factors, given.rate = [5.0], [1.0, 1.35, 2.2], 60.0
    return given


def played(sweep: Sweep, name: str, jobs: int, keep: Path | None, console: Console) -> SweepResult:
    """All of a sweep, with a bar meanwhile."""
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(name, total=None)

        def show(there: int, total: int) -> None:
            progress.update(bar, completed=there, total=total)

        return sweep.run(jobs=jobs, keep=keep, progress=show)


def main() -> None:
    given, console, written = options(), Console(), []
    for number, part in enumerate(parts(given)):
        sweep = Sweep(
            [part.scenario(trace, given) for trace in given.traces], part.policies, given.factors, given.seeds
        )
        keep = given.resume / f"{number}.jsonl" if given.resume else None
        result = in_slots(played(sweep, part.name, given.jobs, keep, console))
        rows = rows_of(part.name, result)
        tell(console, part.name, rows, result)
        written.append({"part": part.name, "rows": [asdict(one) for one in rows], "sweep": result.as_json()})
        if given.html:
            write_page(given.html / f"{number}.html", sweep_page(result))
    if given.json:
        given.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
