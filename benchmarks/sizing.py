"""The right size at both levels: policies as curves on the real traces, each with one setting chosen on other traces.

    python benchmarks/sizing.py --resume sizing/ --json sizing.json --html sizing/
    python benchmarks/sizing.py --quick
    python benchmarks/sizing.py --rates 20,200,2000 --arrivals poisson,even --resume sizing/    # many hours

Its default form was not yet run as a whole. With one seed and four policies at three headrooms, replicas at td 1 s take
127 s of CPU time.

Replicas, and workers of four slots that join after 12, 60 and 180 s, both at td 1 and 5 s. A piece of a trace is played
that lasts eight times as long as a worker takes to join, and 480 s at least. It begins half an hour after the trace
does: a run that has been going on for a while. Policies that learn (`penstock`, and forecasters) know the rates before
it, and all begin with the replicas that the largest of them needed in the last interval or joining time. Policies that
plan over forecasts are played at td 1 s with `--slow` only, as one takes as long there as all others together.

The traces make two halves. Every policy, ours as well, gets the one headroom with which it keeps the promise on most
traces of one half, the cheapest of these, and is judged with it on the other half. `best` is its cheapest headroom of
each trace in hindsight, and `within` what is paid over that, on the traces on which the promise is kept.
Cost is replica-seconds, or slot-seconds of workers (used or not), over the replica-seconds that no run can do without
that keeps the promise (`×bound`), and over the oracle's (`×oracle`); of workers over those of a plan that knows all
rates and has whole workers for them, started in time (`sizing_stage.planned`).

The rules and constants of `penstock` were chosen in trials, before this benchmark was there. `seen` says how many of a
row's traces are named in the notes of these trials, of replicas or of workers: on them it had an advantage.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sizing_stage import TRACES, first_replicas, pieces, planned

from penstock.common.names import one_of
from penstock.infra.simulated import Region
from penstock.infra.worker import WorkerSize
from penstock.policy.registry import POLICIES as POLICY_NAMES
from penstock.report.page import write_page
from penstock.report.sweep_page import sweep_page
from penstock.simulator import Scenario, Sweep
from penstock.simulator.curves import Point, Setting, SweepResult, geometric_mean
from penstock.simulator.parallel import cores
from penstock.simulator.run import ORACLE
from penstock.simulator.scenario import ARRIVALS
from penstock.workload import DAY_S, data_folder

POLICIES = "penstock,psps,ds2,flink:short,keda,e2df,incremental,cba,static:peak"
ON_WORKERS = "penstock,psps,e2df,dynamic_allocation,cba,static:peak"
SLOW = ("cba", "spea", "optimal")  # they plan over forecasts
UNHURRIED_S = 5.0  # the interval from which on they are played anyway
SEEN = {  # traces that are named in the notes of the trials of `penstock`
    False: frozenset(TRACES),
    True: frozenset(TRACES) - {"demeter_cars_1s"},  # in that of workers
}
OURS, WIDTH = "penstock", 140
SLOTS = 4  # of a worker
JOINING_S = (12.0, 60.0, 180.0)
LEAST_S, JOININGS = 480.0, 8.0  # a trace is played for at least so long, and so many times as a worker takes to join
USUAL_RATE = 200.0  # for which the pools are meant


@dataclass(frozen=True)
class Part:
    """One table: replicas at an interval, or workers that join after a while."""

    name: str
    td_s: float
    policies: str
    joining_s: float | None = None
    rate: float = USUAL_RATE
    arrivals: str = "poisson"

    @property
    def file(self) -> str:
        """Its name, as that of a file."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name)

    def seconds(self, given: argparse.Namespace) -> float:
        """How much of each trace is played: what was asked for, or so much that workers can join some times."""
        return float(given.seconds or max(LEAST_S, JOININGS * (self.joining_s or 0.0)))

    def scenario(self, trace: str, given: argparse.Namespace) -> Scenario:
        """The Twitter application under a trace, with pools that carry many times the mean."""
        pool = math.ceil((given.pool if self.joining_s is None else given.worker_pool) * max(1, self.rate / USUAL_RATE))
        before, played = pieces(trace, self.seconds(given), self.rate)
        scenario = Scenario(
            "twitter", played, before=before, events=data_folder("events"), pool=pool, arrivals=self.arrivals
        ).changed(grouping=given.grouping, td_s=self.td_s, late=given.late, day_s=DAY_S / TRACES[trace])
        first = first_replicas(scenario, before, max(self.td_s, self.joining_s or 0.0))
        if self.joining_s is None:
            return scenario.changed(replicas=first)
        region = Region(name="here", sizes=(WorkerSize(name="four", capacity=SLOTS),), start_s=self.joining_s)
        most = math.ceil(len(first) * pool / SLOTS) + 1
        return scenario.changed(levels="both", regions=(region,), replicas=first, workers=most)


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
    oracle: float  # the same over the oracle's; of workers over a plan's that knows all rates
    late: float  # the mean share
    missed: tuple[str, ...]  # traces on which the promise is not kept
    best: float | None  # over the traces of the half on which some headroom keeps the promise
    within: float | None  # its cost over that, on the traces on which it keeps the promise
    seen: tuple[str, ...]  # traces of the half that the trials of `penstock` had seen


def parts(given: argparse.Namespace) -> list[Part]:
    """All tables."""
    found = []
    for rate, arrivals, joining_s, td_s in product(given.rates, given.arrivals, (None, *given.joining), given.td):
        level = "replicas" if joining_s is None else f"workers after {joining_s:g} s"
        policies = POLICY_NAMES.specs(given.policies if joining_s is None else given.on_workers)
        if td_s < UNHURRIED_S and not given.slow:
            policies = [one for one in policies if one.partition(":")[0] not in SLOW]
        name = f"{level}, td {td_s:g} s, {rate:g}/s, {arrivals}"
        found.append(Part(name, td_s, ",".join(policies), joining_s, rate, arrivals))
    return found


def in_slots(result: SweepResult, plans: Mapping[str, float]) -> SweepResult:
    """The same with what workers cost in the place of what replicas cost, and a plan by trace in that of the oracle."""

    def cost(one: Point) -> float:
        if one.policy == ORACLE:
            return plans[one.trace]
        return one.replica_seconds if one.worker_seconds is None else SLOTS * one.worker_seconds

    return replace(result, points=[replace(one, replica_seconds=cost(one)) for one in result.points])


def rows_of(part: str, result: SweepResult, seen: Collection[str] = ()) -> list[Row]:
    """Every policy, judged on each half."""
    halves = {"A": result.traces[::2], "B": result.traces[1::2]}
    curves = {trace: result.curves(trace) for trace in result.traces}
    found = []
    for policy in result.settings["policies"]:
        own = {trace: {one.factor: one for one in several[policy]} for trace, several in curves.items()}
        for half, others in (("A", "B"), ("B", "A")):
            factor = chosen({trace: own[trace] for trace in halves[others]}, result.late)
            judged = {trace: own[trace][factor] for trace in halves[half]}
            oracle = {trace: several[ORACLE][0].cost for trace, several in curves.items() if ORACLE in several}
            beside = _beside(judged, {trace: own[trace] for trace in judged}, oracle, result.late)
            missed = tuple(trace for trace, one in judged.items() if one.late > result.late)
            kept = len(judged) - len(missed), len(judged)
            found.append(Row(part, policy, half, factor, *kept, **beside, missed=missed, seen=_among(judged, seen)))
    return found


def _beside(
    judged: Mapping[str, Setting], own: Mapping[str, Mapping[float, Setting]], oracle: Mapping[str, float], late: float
) -> dict[str, Any]:
    """What a policy with one headroom costs, beside the oracle and the best of its headrooms for each trace."""
    kept = {trace: [one.cost for one in curve.values() if one.late <= late] for trace, curve in own.items()}
    best = {trace: min(costs) for trace, costs in kept.items() if costs}
    over = [judged[trace].cost / cost for trace, cost in best.items() if judged[trace].late <= late]
    return {
        "cost": geometric_mean([one.cost for one in judged.values()]),
        "oracle": geometric_mean([one.cost / oracle[trace] for trace, one in judged.items() if trace in oracle]),
        "late": sum(one.late for one in judged.values()) / len(judged),
        "best": geometric_mean(list(best.values())) if best else None,
        "within": geometric_mean(over) if over else None,
    }


def _among(judged: Mapping[str, Setting], seen: Collection[str]) -> tuple[str, ...]:
    return tuple(trace for trace in judged if trace in seen)


def chosen(own: Mapping[str, Mapping[float, Setting]], late: float) -> float:
    """The headroom that keeps the promise on most of these traces; of several the cheapest."""

    def merit(factor: float) -> tuple[int, float]:
        settings = [curve[factor] for curve in own.values()]
        return -sum(one.late <= late for one in settings), geometric_mean([one.cost for one in settings])

    return min(next(iter(own.values())), key=merit)


def tell(console: Console, part: str, rows: Sequence[Row], result: SweepResult) -> None:
    table = Table(title=f"{part}; A is {', '.join(result.traces[::2])}", title_justify="left")
    for name in ("policy", "half", "factor", "kept", "×bound", "×oracle", "late", "best", "within", "seen", "not on"):
        table.add_column(name, justify="left" if name in ("policy", "not on") else "right", no_wrap=name == "policy")
    for one in sorted(rows, key=lambda one: (one.half, -one.kept, one.cost)):
        costs = f"{one.cost:.2f}", f"{one.oracle:.2f}", f"{one.late:.2%}", _ratio(one.best), _ratio(one.within)
        shown = f"{one.factor:g}", f"{one.kept} of {one.traces}", *costs, f"{len(one.seen)} of {one.traces}"
        table.add_row(one.policy, one.half, *shown, ", ".join(name.split("_")[0] for name in one.missed))
    console.print(table)
    for one in rows:
        if one.policy == OURS and one.within is not None:
            where = f"judged on half {one.half}: ×{one.oracle:.2f} of the oracle"
            console.print(f"{OURS} {where}, within {one.within:.2f} of the best headroom in hindsight", highlight=False)


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="three short traces, three policies, one seed")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--on-workers", default=ON_WORKERS, help="the policies that are played on workers")
    parser.add_argument("--traces", nargs="+", default=list(TRACES), choices=list(TRACES), metavar="TRACE")
    parser.add_argument("--factors", type=float, nargs="+", default=[1.0, 1.15, 1.35, 1.7, 2.2])
    parser.add_argument("--td", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--joining", type=float, nargs="*", default=list(JOINING_S))
    parser.add_argument("--rates", type=numbers, default=[USUAL_RATE], help="events per second, on average: 20,200")
    parser.add_argument("--seconds", type=float, help="of each trace; by default eight joining times, and 480 at least")
    parser.add_argument("--slow", action="store_true", help="policies that plan over forecasts also at short intervals")
    parser.add_argument("--pool", type=int, default=64)
    parser.add_argument("--worker-pool", type=int, default=16, help="the pools where there are workers")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--late", type=float, default=0.01)
    parser.add_argument("--arrivals", type=kinds, default=["poisson"], help="poisson, even, or both: poisson,even")
    parser.add_argument("--grouping", help="shuffle, load_balancing or pull; by default the application's, shuffle")
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
        given.td, given.factors, given.rates = [5.0], [1.0, 1.35, 2.2], [60.0]
    return given


def numbers(text: str) -> list[float]:
    """Numbers with commas between them; argparse says what is wrong with others."""
    return [float(one) for one in text.split(",")]


def kinds(text: str) -> list[str]:
    """Kinds of arrivals with commas between them."""
    return [one_of("--arrivals", one.strip(), ARRIVALS) for one in text.split(",")]


def played(sweep: Sweep, name: str, jobs: int, keep: Path | None, console: Console) -> SweepResult:
    """All of a sweep, with a bar meanwhile."""
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(name, total=None)

        def show(there: int, total: int) -> None:
            progress.update(bar, completed=there, total=total)

        return sweep.run(jobs=jobs, keep=keep, progress=show)


def main() -> None:
    given, console, written = options(), Console(), []
    console.width = max(console.width, WIDTH)
    for part in parts(given):
        scenarios = [part.scenario(trace, given) for trace in given.traces]
        sweep = Sweep(scenarios, part.policies, given.factors, given.seeds)
        keep = given.resume / f"{part.file}.jsonl" if given.resume else None
        result = played(sweep, part.name, given.jobs, keep, console)
        if part.joining_s is not None:
            plans = {one.input.name: planned(one, SLOTS, part.joining_s) for one in scenarios}
            result = in_slots(result, plans)
        rows = rows_of(part.name, result, SEEN[part.joining_s is not None])
        tell(console, part.name, rows, result)
        written.append({"part": part.name, "rows": [asdict(one) for one in rows], "sweep": result.as_json()})
        if given.html:
            write_page(given.html / f"{part.file}.html", sweep_page(result))
    if given.json:
        given.json.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
