"""A run whose workers are killed again and again: it goes on at once each time, and says how long it stood still."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from penstock.engine.driver.causes import Kind, kind_of
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, DatabaseSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.sequences import is_whole, sequences
from tests.waiting import LONG_S, until

KILLS = 3


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def test_a_run_outlives_any_number_of_killed_workers(collected_in: Path) -> None:
    """It ended for good after six deaths within ten minutes; here one without retries has three, and no checkpoint."""
    topology = Topology("killed", pool=2)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    numbers = [{"n": n} for n in range(10_000)]
    options = RunOptions(retries=0, checkpoint_every_s=1000.0)
    with Run(topology, TraceSource(constant(50.0, 900.0), numbers), options=options) as run:
        for kill in range(KILLS):
            until(lambda kill=kill: len(run.faults()) == kill and all(one.seconds for one in run.faults()))
            until(lambda: run.fresh_counters().operators["end"].total.processed > 0)
            os.kill(run.places()["first", 0].pid, signal.SIGKILL)
            until(lambda kill=kill: len(run.faults()) == kill + 1)
        until(lambda: run.faults()[-1].seconds)
        assert run.stop(LONG_S)
        sent = run.counters().sources["numbers"]
    faults = run.faults()
    assert [(one.number, one.deaths) for one in faults] == [(kill + 1, 1) for kill in range(KILLS)]
    assert all(kind_of(one.cause) in {Kind.ENVIRONMENT, Kind.CONSEQUENCE} for one in faults), faults
    print("stood still for", [one.seconds and round(one.seconds, 2) for one in faults], "s")
    assert {str(n) for n in range(sent)} <= dict(collected(collected_in)).keys()


# ── whole pools catch up ────────────────────────────────────────────────────────────────────────────────────────────


def counted(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    time.sleep(0.005)
    state["seen"] = state.get("seen", 0) + 1
    return {"key": event["n"] % 7, "seen": state["seen"]}


def come_back(run: Run) -> int:
    """Key groups that the only replica which is asked for has got from others."""
    return run.fresh_counters().operators["count"].replicas[0].groups_moved


def test_whole_pools_catch_up_and_counts_stay_exact(tmp_path: Path) -> None:
    """Key groups are spread over the whole pool as the attempt begins, and move back when it has caught up."""
    topology, url = Topology("killed", pool=3), f"sqlite:///{tmp_path}/counts.db"
    by_key = topology.operator("count", counted, inputs=topology.source("numbers"), key="key", key_groups=16)
    topology.operator("end", DatabaseSink(url, "counts", level="latest"), inputs=by_key)
    numbers = [{"n": n, "key": n % 7} for n in range(10_000)]
    options = RunOptions(folder=tmp_path / "run", checkpoint_every_s=2)
    with Run(topology, TraceSource(constant(50.0, 900.0), numbers), options=options) as run:
        for kill in range(2):
            committed = run.checkpoint_status().committed
            until(lambda committed=committed: run.checkpoint_status().committed > committed)  # with all that has moved
            before = come_back(run)
            os.kill(run.places()["count", 0].pid, signal.SIGKILL)
            until(lambda kill=kill: len(run.faults()) > kill)
            assert run.active["count"] == (0,)  # as asked for, whoever helps
            until(lambda: run.faults()[-1].seconds)
            until(lambda before=before: come_back(run) > before)  # so they had been spread
        assert run.stop(LONG_S)
        sent = run.counters().sources["numbers"]
    seen = sequences(tmp_path / "counts.db")
    assert sum(map(len, seen.values())) == sent
    assert all(map(is_whole, seen.values()))
