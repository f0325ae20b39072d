"""Pools laid out anew while events flow: the next shift takes over, every event once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.errors import InputError
from penstock.metrics.counters import RunCounters
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

RATE, TRACE_S = 120.0, 900.0  # far longer than any test, which ends when it has seen what it wants


def processed(run: Run, operator: str, replica: int) -> int:
    """Events that one replica has processed."""
    found = run.counters().operators[operator].replicas.get(replica)
    return found.processed if found is not None else 0


def end(run: Run) -> RunCounters:
    """Let no more events in and wait for those that are; what the run has done."""
    run.stop_sources()
    assert run.wait_drained(LONG_S)
    return run.fresh_counters()


def passed(event: dict[str, Any]) -> dict[str, Any]:
    return event


def test_pools_shrink_and_grow_while_events_flow(collected_in: Path) -> None:
    topology = Topology("generations", pool=4)
    first = topology.operator("first", passed, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first, grouping="load_balancing")
    source = TraceSource(constant(RATE, TRACE_S), [{}])
    with Run(topology, source, replicas={"end": 2}, options=RunOptions(source_slots=2)) as run:
        until(lambda: processed(run, "end", 1) > 50)
        with pytest.raises(InputError, match=r"operator 'end'.*: its pool must have the active replicas"):
            run.lay_out_anew({"first": [0, 1], "end": [0]})
        small = {"first": (0, 2), "end": (0, 1)}
        pauses = [run.lay_out_anew(small)]
        assert run.pools == small
        before = processed(run, "first", 2)
        run.set_replicas("first", [2])
        until(lambda: processed(run, "first", 2) > before + 100)
        pauses.append(run.lay_out_anew({"first": range(4), "end": range(4)}))
        run.set_replicas("end", 4)
        until(lambda: processed(run, "end", 3) > 50)
        counters = end(run)
    ids = sorted(int(event_id) for event_id, _ in collected(collected_in))
    even, odd = ([number for number in ids if number % 2 == slot] for slot in (0, 1))
    assert even == list(range(0, 2 * len(even), 2))
    assert odd == list(range(1, 2 * len(odd), 2))
    assert counters.sources == {"numbers": len(ids)}
    assert {name: one.total.processed for name, one in counters.operators.items()} == dict.fromkeys(
        ("first", "end"), len(ids)
    )
    assert counters.restarts == 0
    print(f"events stood still for {', '.join(f'{pause:.2f}' for pause in pauses)} s")


def count(event: dict[str, Any], state: dict[str, int]) -> dict[str, Any]:
    state["count"] = state.get("count", 0) + 1
    return {"word": event["word"], "count": state["count"]}


def test_state_goes_along_with_the_next_shift(collected_in: Path) -> None:
    """The order of events of one key counts here: the next shift processes them when the last has written its state.

    Batches are shorter than a shift takes to start: the last segment of a shift is not that of its first batch.
    """
    words = random.Random(7).choices([f"w{n}" for n in range(50)], [1 / (n + 1) for n in range(50)], k=3000)
    topology = Topology("words", pool=3)
    counts = topology.operator("count", count, inputs=topology.source("words"), key="word", key_groups=16)
    topology.operator("end", CollectSink(collected_in), inputs=counts)
    source = TraceSource(constant(RATE, TRACE_S), [{"word": word} for word in words])
    with Run(topology, source, replicas={"count": 2}, options=RunOptions(checkpoint_every_s=5)) as run:
        until(lambda: processed(run, "count", 1) > 50)
        run.set_replicas("count", 3)
        pauses = [run.lay_out_anew(run.pools)]
        run.set_replicas("count", [2])  # waits until the next shift has the state
        assert run.wait_settled(LONG_S)
        pauses.append(run.lay_out_anew({"count": [2, 0], "end": [0, 1]}))  # fewer, and in another order
        before = processed(run, "count", 2)
        until(lambda: processed(run, "count", 2) > before + 100)
        counters = end(run)
    sent = [words[n % len(words)] for n in range(counters.sources["words"])]
    stored = [(event["word"], event["count"]) for _, event in collected(collected_in)]
    assert sorted(stored) == sorted(
        (word, number) for word, total in Counter(sent).items() for number in range(1, total + 1)
    )
    assert counters.operators["count"].total.groups_moved > 0
    assert counters.restarts == 0
    print(f"sources stood still for {', '.join(f'{pause:.3f}' for pause in pauses)} s")
