"""Pools laid out anew while events flow: the next shift takes over, every event once."""

from __future__ import annotations

import random
import time
from collections import Counter
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

COUNT, RATE = 4800, 120.0


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


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def test_state_goes_along_with_the_next_shift(collected_in: Path) -> None:
    """The order of events of one key counts here: the next shift processes them when the last has written its state."""
    words = random.Random(7).choices([f"w{n}" for n in range(50)], [1 / (n + 1) for n in range(50)], k=3000)
    topology = Topology("words", pool=3)
    counts = topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=16)
    topology.operator("end", CollectSink(collected_in), inputs=counts)
    source = TraceSource(constant(100.0, 30.0), [{"word": word} for word in words])
    with Run(topology, source, replicas={"count": 2}) as run:
        time.sleep(3)
        run.set_replicas("count", 3)
        pauses = [run.lay_out_anew(run.pools)]
        run.set_replicas("count", [2])  # waits until the next shift has the state
        assert run.wait_settled(30)
        pauses.append(run.lay_out_anew(run.pools))
        assert run.wait(100)
        counters = run.fresh_counters()
    stored = [(event["word"], event["count"]) for _, event in collected(collected_in)]
    assert sorted(stored) == sorted(
        (word, number) for word, total in Counter(words).items() for number in range(1, total + 1)
    )
    assert counters.operators["count"].total.groups_moved > 0
    assert counters.restarts == 0
    print(f"sources stood still for {', '.join(f'{pause:.3f}' for pause in pauses)} s")
