"""A run whose workers are killed again and again: it goes on at once each time, and says how long it stood still."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.driver.restarts import is_outside
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant

pytestmark = pytest.mark.timeout(240)

KILLS = 4


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def until(true: Callable[[], object], timeout_s: float = 100.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def test_a_run_outlives_any_number_of_killed_workers(collected_in: Path) -> None:
    """It ended for good after six deaths within ten minutes; here one without retries has four, and no checkpoint."""
    topology = Topology("killed", pool=2)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    numbers = [{"n": n} for n in range(10_000)]
    options = RunOptions(retries=0, checkpoint_every_s=1000.0)
    with Run(topology, TraceSource(constant(50.0, 200.0), numbers), options=options) as run:
        for kill in range(KILLS):
            until(lambda kill=kill: len(run.faults()) == kill and all(one.seconds for one in run.faults()))
            until(lambda: run.fresh_counters().operators["end"].total.processed > 0)
            os.kill(run.places()["first", 0].pid, signal.SIGKILL)
            until(lambda kill=kill: len(run.faults()) == kill + 1)
        until(lambda: run.faults()[-1].seconds)
        assert run.stop(60)
        sent = run.counters().sources["numbers"]
    faults = run.faults()
    assert [(one.number, one.deaths) for one in faults] == [(kill + 1, 1) for kill in range(KILLS)]
    assert all(is_outside(one.cause) for one in faults), faults
    print("stood still for", [one.seconds and round(one.seconds, 2) for one in faults], "s")
    assert {str(n) for n in range(sent)} == dict(collected(collected_in)).keys()
