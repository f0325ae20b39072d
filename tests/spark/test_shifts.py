"""Pools laid out anew while events flow: the next shift takes over, every event once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import InputError
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant

pytestmark = pytest.mark.timeout(240)

COUNT, RATE = 6000, 120.0


def passed(event: dict[str, Any]) -> dict[str, Any]:
    return event


def test_pools_shrink_and_grow_while_events_flow(collected_in: Path) -> None:
    topology = Topology("generations", pool=4)
    first = topology.operator("first", passed, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first, grouping="load_balancing")
    source = TraceSource(constant(RATE, COUNT / RATE), [{"n": n} for n in range(COUNT)])
    options = RunOptions(source_slots=2)
    with Run(topology, source, replicas={"end": 2}, options=options) as run:
        time.sleep(3)
        with pytest.raises(InputError, match=r"operator 'end'.*: its pool must have the active replicas"):
            run.lay_out_anew({"first": [0, 1], "end": [0]})
        small = {"first": (0, 2), "end": (0, 1)}
        pauses = [run.lay_out_anew(small)]
        assert run.pools == small
        run.set_replicas("first", [2])
        time.sleep(2)
        pauses.append(run.lay_out_anew({"first": range(4), "end": range(4)}))
        run.set_replicas("end", 4)
        assert run.wait(100)
        counters = run.fresh_counters()
        restarts = counters.restarts
    got = collected(collected_in)
    assert sorted(event["n"] for _, event in got) == list(range(COUNT))
    assert counters.sources == {"numbers": COUNT}
    assert {name: one.total.processed for name, one in counters.operators.items()} == {"first": COUNT, "end": COUNT}
    assert counters.operators["end"].replicas[3].processed > 0
    assert restarts == 0
    assert max(pauses) < 5
    print(f"events stood still for {', '.join(f'{pause:.2f}' for pause in pauses)} s")
