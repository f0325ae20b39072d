"""A Python worker that says nothing any more: its attempt ends, the next one begins, and nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

COUNT, RATE = 4000, 200.0


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return event | {"count": state["count"]}


def test_a_process_that_has_stopped_for_good_is_replaced(collected_in: Path) -> None:
    """Spark saw nothing of it, and every checkpoint waited for it in vain."""
    topology = Topology("silent", pool=2)
    counts = topology.operator("count", count, inputs=topology.source("numbers"), key="k", key_groups=8)
    topology.operator("end", CollectSink(collected_in), inputs=counts, pool=1)
    numbers = TraceSource(constant(RATE, COUNT / RATE), [{"n": n, "k": n % 5} for n in range(COUNT)])
    options = RunOptions(checkpoint_every_s=1.0, silent_s=5.0, report_every_s=0.25)
    with Run(topology, numbers, replicas={"count": 2}, options=options) as run:
        until(lambda: run.checkpoint_status().committed > 1)
        victim = run.places()["count", 1].pid
        os.kill(victim, signal.SIGSTOP)
        until(lambda: run.faults())
        assert run.wait(LONG_S)
        causes = {fault.cause for fault in run.faults()}
        final = run.counters()
    assert "count/1 has said nothing for 5 s" in causes
    assert final.operators["end"].total.processed == COUNT
    last = {}
    for _, event in collected(collected_in):
        last[event["n"]] = event["count"]
    assert sorted(last) == list(range(COUNT))
    assert max(last.values()) == COUNT // 5
    until(lambda: not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE)
