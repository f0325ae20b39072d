"""Does what `penstock explain` says of doing nothing hold? Recorded decisions, beside what really comes of it.

    python benchmarks/counterfactuals.py [--live 24] [--simulated 30] [--json counterfactuals.json] [--runs FOLDER]

Runs under a policy on real traces are recorded, and decisions drawn that changed something. Of each the product says,
from the store alone, what doing nothing costs over the next seconds: replica-seconds and late events. Then nothing is
done. Simulated: the same scenario and seed with the recorded changes, and none from that decision on; and once more
with what was decided. Live: on Spark the change is withheld, and what leaves is written down event by event.

A prediction holds when replica-seconds and late events are both within 20 % of the truth. Differences in late events of
less than 1 % of the events count for nothing: so much is promised to be late. As replica-seconds of doing nothing are
easy to know, decisions are told apart in which it is late with more than that, and the difference to what was decided
is judged, too. With `--json` cases that are in the file are not played again; with `--runs` what live runs recorded is
kept there, and judged anew instead of run again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from counterfactuals_scenarios import LIVE, TARGET_S, LiveCase, replayed
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rounds import measure

from penstock.metrics.rows import DecisionRow
from penstock.metrics.store import Store
from penstock.report.explain import DECIDED, NOTHING, explain
from penstock.simulator import Scenario, simulate
from penstock.simulator.plant.plant import SimulatedPlant
from penstock.simulator.prepare import prepare
from penstock.simulator.what_if import Outcome
from penstock.workload import data_file, data_folder, load_trace

WITHIN, FORGIVEN = 0.2, 0.01
LIVE_SCRIPT = Path(__file__).with_name("counterfactuals_scenarios.py")


@dataclass(frozen=True)
class Simulated:
    """A run in the simulator: application, trace and how it is played."""

    app: str
    trace: str
    mean_rate: float
    speedup: float
    td_s: float
    policy: str
    seed: int

    @property
    def name(self) -> str:
        """What it is called in the results."""
        return f"simulated {self.app} {self.trace} {self.policy} td {self.td_s:g} s seed {self.seed}"

    @property
    def scenario(self) -> Scenario:
        """Five minutes of it, with arrivals at random."""
        trace = load_trace(data_file("traces", f"{self.trace}.csv"))
        made = Scenario(self.app, trace, grouping="shuffle", arrivals="poisson", seed=self.seed)
        made = made.changed(events=data_folder("events"), td_s=self.td_s, target_ms=1000 * TARGET_S)
        return made.played(mean_rate=self.mean_rate, speedup=self.speedup, duration_s=300.0)


TRACES = (
    ("twitter", "twitter_stream_sample_2021_burst_1s", 100.0, 20.0),
    ("twitter", "azure_llm_code_2023_1s", 60.0, 5.0),
    ("dns", "dns_wrccdc_2018_1s", 60.0, 2.0),
    ("twitter", "demeter_cars_1s", 80.0, 60.0),
    ("dns", "nyc_taxi_passengers_1800s", 80.0, 3000.0),
)
SIMULATED = [
    Simulated(*trace, td_s=td_s, policy=policy, seed=seed)
    for seed, (policy, td_s) in enumerate((("psps", 1.0), ("penstock", 5.0), ("ds2", 2.0), ("psps", 5.0)))
    for trace in TRACES
]


@dataclass(frozen=True)
class Row:
    """One decision: what was said of doing nothing, and what came of it; `done_` is of what was decided."""

    case: str
    interval: int
    seconds: float
    events: int
    said_late: float
    true_late: float
    said_cost: float  # replica-seconds
    true_cost: float
    done_said_late: float | None = None
    done_true_late: float | None = None
    done_said_cost: float | None = None
    done_true_cost: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the cost of doing nothing is what was said."""
        return self._near(self.said_late, self.true_late) and _within(self.said_cost, self.true_cost)

    @property
    def matters(self) -> bool:
        """Whether doing nothing is late."""
        return max(self.said_late, self.true_late) > FORGIVEN * self.events

    @property
    def difference_holds(self) -> bool | None:
        """Whether the difference to what was decided is what was said; None where that was not played."""
        done = (self.done_said_late, self.done_true_late, self.done_said_cost, self.done_true_cost)
        said_late, true_late, said_cost, true_cost = done
        if said_late is None or true_late is None or said_cost is None or true_cost is None:
            return None
        late = self._near(self.said_late - said_late, self.true_late - true_late)
        return late and _within(self.said_cost - said_cost, self.true_cost - true_cost)

    def _near(self, said: float, true: float) -> bool:
        return _within(said, true) or abs(said - true) <= FORGIVEN * self.events


def _within(said: float, true: float) -> bool:
    return abs(said - true) <= WITHIN * abs(true) + 1e-6


def simulated(case: Simulated, count: int) -> list[Row]:
    """Record a run, draw decisions, and play each with nothing done and as it was decided."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "run.db")
        simulate(case.scenario, case.policy, store=place)
        with closing(Store(place, must_exist=True)) as store:
            return [_judged(case, store, number) for number in drawn(store, count, case.seed)]


def drawn(store: Store, count: int, seed: int) -> list[int]:
    """Intervals at whose end something was changed, at random; every second of them had more replicas after it."""
    run = store.run()
    last_s = store.intervals(run.run)[-1].time_s
    known = {row.number for row in store.intervals(run.run) if row.time_s + max(3 * run.td_s, 10.0) <= last_s}
    grown: dict[int, int] = {}
    for row in store.decisions(run.run):
        if row.number in known and row.before != row.after:
            grown[row.number] = grown.get(row.number, 0) + row.after - row.before
    some = [[number for number, by in grown.items() if by > 0], [number for number, by in grown.items() if by <= 0]]
    for one in some:
        random.Random(seed).shuffle(one)
    paired = [number for place in range(count) for one in some for number in one[place : place + 1]]
    return sorted(paired[:count])


def _judged(case: Simulated, store: Store, number: int) -> Row:
    told = explain(store, interval=number)
    nothing, done = (Played(case, store, number, change).on(told.ahead_s) for change in (False, True))
    said, decided = told.outcomes[NOTHING], told.outcomes[DECIDED]
    return Row(
        case.name,
        number,
        told.ahead_s,
        nothing.events,
        said.late,
        nothing.late,
        said.replica_seconds,
        nothing.replica_seconds,
        decided.late,
        done.late,
        decided.replica_seconds,
        done.replica_seconds,
    )


class Played:
    """A recorded run played again up to a decision, with what was decided there or without."""

    def __init__(self, case: Simulated, store: Store, number: int, change: bool) -> None:
        prepared, run = prepare(case.scenario), store.run().run
        rows = [row for row in store.intervals(run) if row.number <= number]
        decisions: dict[int, list[DecisionRow]] = {}
        for row in store.decisions(run):
            decisions.setdefault(row.number, []).append(row)
        plant = SimulatedPlant(prepared.model, prepared.arrivals(), prepared.scenario.plant, target_s=TARGET_S)
        first = [row for row in store.operators(run) if row.number == rows[0].number]
        _set(plant, {row.operator: row.replicas for row in first})
        plant.begin()
        for interval in rows:
            plant.advance(interval.time_s)
            if interval.number < number or change:
                made = decisions.get(interval.number, ())
                _set(plant, {row.operator: row.after for row in made if row.before != row.after})
        assert plant.backlog == rows[-1].backlog, "what is played again is not what was recorded"
        self._plant = plant

    def on(self, seconds: float) -> Outcome:
        """What comes of it in so many seconds."""
        plant = self._plant
        gone, late, cost = plant.out + plant.failed, plant.late + plant.failed, plant.replica_seconds
        plant.advance(plant.now_s + seconds)
        late = plant.late + plant.failed + plant.unfinished_late() - late
        return Outcome(plant.events - gone, late, plant.replica_seconds - cost, plant.backlog)


def _set(plant: SimulatedPlant, replicas: dict[str, int]) -> None:
    for name, count in replicas.items():
        plant.set_replicas(name, tuple(range(count)))


def live(case: LiveCase, count: int, runs: Path | None = None) -> list[Row]:
    """A run on Spark in a process of its own, in which changes are withheld now and then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if runs is None else runs / case.trace
        if not (folder / "done").exists():
            folder.mkdir(parents=True, exist_ok=True)
            measure(LIVE_SCRIPT, json.dumps(asdict(case)), str(folder))
            (folder / "done").touch()
        with closing(Store(str(folder / "run.db"), must_exist=True)) as store:
            found = list(replayed(case, store, folder))[:count]
            return [_beside(case, store, number, true) for number, true in found]


def _beside(case: LiveCase, store: Store, number: int, true: Outcome) -> Row:
    told = explain(store, interval=number)
    said, cost = told.outcomes[NOTHING], (told.outcomes[NOTHING].replica_seconds, true.replica_seconds)
    return Row(case.name, number, told.ahead_s, true.events, said.late, true.late, *cost)


def table_of(rows: Sequence[Row]) -> Table:
    """How many hold, for people."""
    table = Table(title="what explain says of doing nothing", title_justify="left")
    for column in ("decisions", "", "within 20 %", "late, of these", "within 20 %", "difference within 20 %"):
        table.add_column(column, justify="right")
    for where in ("simulated", "live"):
        some = [row for row in rows if row.case.startswith(where)]
        late = [row for row in some if row.matters]
        other = [row.difference_holds for row in some if row.difference_holds is not None]
        told = f"{sum(other)} of {len(other)}" if other else "–"
        held = [sum(row.holds for row in part) for part in (some, late)]
        table.add_row(where, str(len(some)), str(held[0]), str(len(late)), str(held[1]), told)
    return table


def cases(given: argparse.Namespace) -> list[tuple[Any, int]]:
    """What is to be played, and how many decisions of each."""
    found: list[tuple[Any, int]] = []
    for some, wanted in ((SIMULATED, given.simulated), (LIVE, given.live)):
        left = wanted
        for place, case in enumerate(some):
            count = min(left, -(-left // (len(some) - place)))
            found += [(case, count)] if count else []
            left -= count
    return found


def kept(file: Path | None) -> list[Row]:
    """The rows of an earlier call."""
    return [Row(**one) for one in json.loads(file.read_text())] if file is not None and file.exists() else []


def main() -> None:
    """Play all cases that are not in the file, and say how many predictions hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", type=int, default=24, help="decisions on Spark, or as many as were withheld")
    parser.add_argument("--simulated", type=int, default=30, help="decisions in the simulator")
    parser.add_argument("--json", type=Path, help="keep the result here, and go on from there")
    parser.add_argument("--runs", type=Path, help="keep here what live runs recorded, and take it from here")
    given, console = parser.parse_args(), Console()
    rows = kept(given.json)
    known = {row.case for row in rows}
    for case, count in track(cases(given), description="playing", console=console):
        if case.name in known:
            continue
        new = live(case, count, given.runs) if isinstance(case, LiveCase) else simulated(case, count)
        rows += new
        for row in new:
            wrong = "" if row.holds else "  off"
            told = f"late {row.said_late:,.0f}, really {row.true_late:,.0f} of {row.events:,d}{wrong}"
            console.print(f"{row.case}, interval {row.interval}: {told}")
        if given.json:
            given.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    console.print(table_of(rows))


if __name__ == "__main__":
    main()
