"""The live runs of `counterfactuals.py`: changes of replicas are withheld now and then, and every exit is noted."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock import Elastic, Run, RunOptions, Topology, TraceSource, load_trace
from penstock.errors import EngineError
from penstock.metrics.store import Store
from penstock.simulator.what_if import Outcome
from penstock.workload import Trace, data_file, played

TARGET_S = 0.5
TD_S = 1.0
AHEAD_S = 10.0  # what explain plays on at that td
FREE_S = 7.0  # between two changes that are withheld the policy has its way
TIMES_S = {"parse": 0.02, "score": 0.04}
HOPS_S = 0.005


@dataclass(frozen=True)
class LiveCase:
    """A run on Spark: a trace and how it is played."""

    trace: str
    mean_rate: float
    speedup: float
    seconds: float = 100.0
    policy: str = "psps"

    @property
    def name(self) -> str:
        """What it is called in the results."""
        return f"live {self.trace} {self.policy}"

    @property
    def input(self) -> Trace:
        """The trace as it is played."""
        return played(load_trace(data_file("traces", f"{self.trace}.csv")), self.mean_rate, self.speedup, self.seconds)


LIVE = (
    LiveCase("azure_llm_code_2023_1s", 30.0, 5.0),
    LiveCase("dns_wrccdc_2018_1s", 40.0, 3.0),
    LiveCase("twitter_stream_sample_2021_burst_1s", 40.0, 40.0),
    LiveCase("nyc_taxi_passengers_1800s", 40.0, 6000.0),
    LiveCase("demeter_cars_1s", 40.0, 120.0),
    LiveCase("bgelasor_fluctuate_600s", 30.0, 3000.0),
)


class Withholding(Run):
    """A run that refuses a change now and then, and all others for as long as explain plays on."""

    def __init__(self, folder: Path, *values: Any, **more: Any) -> None:
        super().__init__(*values, **more)
        self._notes = folder / "withheld.jsonl"
        self._until_s = 0.0

    def set_replicas(self, operator: str, replicas: int | Sequence[int]) -> None:
        """Activate exactly these, unless it is withheld."""
        now_s = self.clock.now()
        if now_s > self._until_s + FREE_S:
            self._until_s = now_s + AHEAD_S - 0.2
            with self._notes.open("a") as notes:
                notes.write(json.dumps([now_s, time.time() - now_s]) + "\n")
        if now_s < self._until_s:
            raise EngineError(f"operator {operator!r}: its change is withheld, to see what comes of it")
        super().set_replicas(operator, replicas)


class Waits:
    """Takes its time, and notes when an event leaves if there is a folder for that."""

    def __init__(self, seconds: float, folder: Path | None = None) -> None:
        self._seconds = seconds
        self._folder = folder

    def process(self, event: Mapping[str, int]) -> Mapping[str, int]:
        """One event."""
        time.sleep(self._seconds)
        if self._folder is not None:
            with (self._folder / f"exits-{os.getpid()}").open("a") as exits:
                exits.write(f"{event['n']} {time.time()}\n")
        return event


def record(case: LiveCase, folder: Path) -> dict[str, int]:
    """Run it on Spark, with a store."""
    topology = Topology("withheld", pool=6)
    parsed = topology.operator("parse", Waits(TIMES_S["parse"]), inputs=topology.source("events"))
    topology.operator("score", Waits(TIMES_S["score"], folder), inputs=parsed)
    trace = case.input
    source = TraceSource(trace, [{"n": number} for number in range(round(trace.events))])
    run = Withholding(folder, topology, source, options=RunOptions(folder=folder / "run"))
    store, target_ms = folder / "run.db", 1000 * TARGET_S
    with Elastic(run, case.policy, td_s=TD_S, target_ms=target_ms, store=store, wake=False) as elastic:
        elastic.wait(case.seconds + 60)
        return {"events": elastic.counters().latency.count}


def replayed(case: LiveCase, store: Store, folder: Path) -> Iterator[tuple[int, Outcome]]:
    """The intervals after which a change was withheld, and what came of that."""
    exits = {
        int(line.split()[0]): float(line.split()[1])
        for file in folder.glob("exits-*")
        for line in file.read_text().splitlines()
    }
    numbers = np.array(sorted(exits))
    left_s, due_s = np.array([exits[one] for one in numbers]), case.input.time_of(numbers)
    born_s = due_s + np.min(left_s - due_s) - sum(TIMES_S.values()) - HOPS_S  # the quickest had not to wait
    intervals = store.intervals(store.run().run)
    for line in (folder / "withheld.jsonl").read_text().splitlines():
        now_s, offset_s = json.loads(line)
        row = next(one for one in reversed(intervals) if one.time_s <= now_s)
        begin_s = row.time_s + offset_s
        if row.time_s + AHEAD_S > intervals[-1].time_s:
            continue
        after = [one for one in intervals if 0 < one.time_s - row.time_s < AHEAD_S + TD_S / 2]
        paid = sum(one.replicas * one.interval_s for one in after)
        yield row.number, outcome(born_s, left_s, begin_s, paid)


def outcome(born_s: Any, left_s: Any, begin_s: float, paid: float) -> Outcome:
    """What left late from a time on, or was still there and late at the end, with the replica-seconds of that time."""
    end_s = begin_s + AHEAD_S
    here = (left_s > begin_s) & (born_s <= end_s)
    late = here & (np.minimum(left_s, end_s) - born_s > TARGET_S)
    return Outcome(int(here.sum()), int(late.sum()), paid, int((here & (left_s > end_s)).sum()))


if __name__ == "__main__":
    print(json.dumps(record(LiveCase(**json.loads(sys.argv[1])), Path(sys.argv[2]))))
