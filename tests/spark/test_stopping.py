"""A run that is stopped just when a replica dies: what was in flight is done again before it is finished."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


@pytest.mark.parametrize("when", ["after the stop", "before the stop"])
def test_a_replica_dies_while_the_run_is_stopped(collected_in: Path, when: str) -> None:
    """The query that was started again sent nothing, had counters of zero, and was taken to be finished."""
    topology = Topology("words", pool=2)
    counts = topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=8)
    topology.operator("end", CollectSink(collected_in), inputs=counts)
    words = [{"word": f"w{n % 7}"} for n in range(20_000)]
    run = Run(topology, TraceSource(constant(100.0, 900.0), words)).start()
    try:
        time.sleep(4)
        if when == "after the stop":
            run.stop_sources()
            time.sleep(1)
        before = run.fresh_counters().sources["words"]
        os.kill(run.places()["count", 0].pid, signal.SIGKILL)
        until(lambda: run.counters().restarts)
    finally:
        finished = run.stop(LONG_S)
    counters = run.counters()
    sent = counters.sources["words"]
    assert (finished, counters.restarts) == (True, 1)
    assert sent >= before > 0
    assert {one.total.processed for one in counters.operators.values()} == {sent}
    assert {str(n) for n in range(sent)} <= dict(collected(collected_in)).keys()
