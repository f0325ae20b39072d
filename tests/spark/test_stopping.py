"""A run that is stopped just when a replica dies: what was in flight is done again before it is finished."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from penstock.engine.run import Run
from penstock.metrics.counters import RunCounters
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def check(counters: RunCounters, folder: Path, least: int) -> None:
    """All that was sent has been counted once, and is there."""
    sent = counters.sources["words"]
    assert sent >= least > 0
    assert {one.total.processed for one in counters.operators.values()} == {sent}
    assert {str(n) for n in range(sent)} <= dict(collected(folder)).keys()


def kill(run: Run, restarts: int) -> int:
    """Have a replica die; how many events had been sent."""
    before = run.fresh_counters().sources["words"]
    os.kill(run.places()["count", 0].pid, signal.SIGKILL)
    until(lambda: run.counters().restarts >= restarts)
    return before


def test_a_replica_dies_while_the_run_is_stopped(collected_in: Path) -> None:
    """The query that was started again sent nothing, had counters of zero, and was taken to be finished.

    One dies just before the sources are stopped, and one when they are.
    """
    topology = Topology("words", pool=2)
    counts = topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=8)
    topology.operator("end", CollectSink(collected_in), inputs=counts)
    words = [{"word": f"w{n % 7}"} for n in range(20_000)]
    run = Run(topology, TraceSource(constant(100.0, 900.0), words)).start()
    try:
        until(lambda: run.counters().operators["end"].total.processed > 100)
        before = kill(run, restarts=1)
        run.stop_sources()
        assert run.wait_drained(LONG_S)
        check(run.fresh_counters(), collected_in, before)
        before = kill(run, restarts=2)
    finally:
        finished = run.stop(LONG_S)
    assert (finished, run.counters().restarts) == (True, 2)
    check(run.counters(), collected_in, before)
