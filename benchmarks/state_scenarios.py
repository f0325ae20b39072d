"""The scenarios of `state.py`; each runs in a process of its own: `python state_scenarios.py move 10`."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.grouping import stable_hash
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant

GROUPS = 64
KEYS = 1000
FILL_S = 15.0
RATE = 1000.0
CHANGES = (2, 1) * 4
APART_S = 2.5
LOOK_EVERY_S = 0.002
MOST_EVENTS = 60_000


class Keep:
    """State of a given size for each key; says when it was at each event."""

    def __init__(self, size: int) -> None:
        self.size = size

    def process(self, event: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Number and time of the event."""
        if "blob" not in state:
            state["blob"] = "x" * self.size
        state["count"] = state.get("count", 0) + 1
        return {"n": event["n"], "at": time.time()}


def cpu_s() -> float:
    """CPU seconds of this process and all below it."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def change(run: Run, replicas: int) -> tuple[float, float, set[int]]:
    """Change the replicas; when that began and was over, and the groups that moved."""
    began_s = time.time()
    run.set_replicas("keep", replicas)
    table = run._routing.current.operators["keep"].table
    assert table is not None
    while run._routing.coordinate(lambda all_: all_["keep"].moving):
        time.sleep(LOOK_EVERY_S)
    return began_s, time.time(), set(table.moved)


def move(megabytes: str) -> dict[str, float]:
    """Waits of events of moved groups, and of the others, while one replica becomes two and two become one."""
    count = int(RATE * (FILL_S + APART_S * (len(CHANGES) + 1)))
    events = [{"n": n, "key": f"key {n % KEYS}"} for n in range(count)]
    topology = Topology("moving", pool=2)
    keep = Keep(int(float(megabytes) * 1e6 / KEYS))
    kept = topology.operator("keep", keep, inputs=topology.source("events"), key="key", key_groups=GROUPS)
    folder = Path(tempfile.mkdtemp())
    topology.operator("end", CollectSink(folder), inputs=kept, pool=1)
    windows = []
    with Run(topology, TraceSource(constant(RATE, count / RATE), events)) as run:
        time.sleep(FILL_S)
        for replicas in CHANGES:
            windows.append(change(run, replicas))
            time.sleep(APART_S)
        assert run.wait(120)
        moving = run.fresh_counters().operators["keep"].total.moving
        epoch_s = run.epoch_s or 0.0
    return waits(folder, epoch_s, windows) | {"taken_p50_ms": moving.percentile_ms(0.5), "taken_max_ms": moving.max_ms}


def waits(folder: Path, epoch_s: float, windows: list[tuple[float, float, set[int]]]) -> dict[str, float]:
    """How long after they were due events were at the operator: those due during a change, and all that were not.

    A longer window would mostly hold events that came when all was over.
    """
    found: dict[str, list[float]] = {"moved": [], "others": [], "quiet": []}
    for _, event in collected(folder):
        due_s = epoch_s + event["n"] / RATE
        group = stable_hash(f"key {event['n'] % KEYS}") % GROUPS
        during = [moved for began_s, ended_s, moved in windows if began_s <= due_s < ended_s]
        kind = ("moved" if group in during[0] else "others") if during else "quiet"
        if during or due_s > windows[0][0]:
            found[kind].append(1000 * (event["at"] - due_s))
    figures = {f"{kind}_events": float(len(times)) for kind, times in found.items()}
    for kind, times in found.items():
        for q in (50, 99):
            figures[f"{kind}_p{q}_ms"] = float(np.percentile(times, q)) if times else float("nan")
    return figures


class InMemory:
    """The same count, kept in the operator itself: neither saved nor moved."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def process(self, event: dict[str, Any]) -> dict[str, Any]:
        """The key's running count."""
        self.counts[event["key"]] = self.counts.get(event["key"], 0) + 1
        return {"key": event["key"], "count": self.counts[event["key"]]}


def count_in_state(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"key": event["key"], "count": state["count"]}


def rate(kind: str) -> dict[str, float]:
    """Events per second through one keyed operator of two replicas, all due at once; CPU of all processes.

    A replica's own counter would not do: it leaves out what is done with keys before the operator is called.
    """
    topology = Topology("rate", pool=2)
    operator: Any = count_in_state if kind == "state" else InMemory()
    counts = topology.operator("count", operator, inputs=topology.source("events"), key="key")
    topology.operator("end", lambda _: None, inputs=counts)
    events = [{"key": f"key {n % KEYS}"} for n in range(KEYS)]
    source = TraceSource(constant(1e6, MOST_EVENTS / 1e6), events)
    with Run(topology, source, replicas={"count": 2, "end": 2}, options=RunOptions(report_every_s=0.1)) as run:
        before_s = cpu_s()
        assert run.wait(300)
        took_s, used_s = time.time() - (run.epoch_s or 0.0), cpu_s() - before_s
        total = run.fresh_counters().operators["count"].total
    if total.processed != MOST_EVENTS:
        raise SystemExit(f"{total.processed} of {MOST_EVENTS} events were processed")
    return {"rate": MOST_EVENTS / took_s, "cpu_us": 1e6 * used_s / MOST_EVENTS}


if __name__ == "__main__":
    print(json.dumps({"move": move, "rate": rate}[sys.argv[1]](sys.argv[2])))
