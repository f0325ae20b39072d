"""Late binding on a real Spark: what waits goes to whoever has room, and back-pressure reaches the source."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S

BOOKED = 4  # a replica that takes 20 ms is given 50 ms of work ahead, and one event more by its only sender
COUNT, RATE = 1500, 100.0


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def slow(event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    return event | {"done_s": time.time()}


def app(folder: Path) -> Topology:
    topology = Topology("late", pool=4)
    first = topology.operator("first", same, inputs=topology.source("numbers"), grouping="pull", pool=1)
    work = topology.operator("work", slow, inputs=first, grouping="pull")
    topology.operator("end", CollectSink(folder), inputs=work, grouping="pull", pool=1)
    return topology


def numbers() -> TraceSource:
    return TraceSource(constant(RATE, COUNT / RATE), [{"n": n} for n in range(COUNT)])


def test_new_replicas_take_what_waits_and_nobody_has_more_than_its_credit(collected_in: Path) -> None:
    """Twice as much comes as one replica can do; checkpoints go by behind what is held."""
    booked, outside = 0, 0
    with Run(app(collected_in), numbers(), options=RunOptions(checkpoint_every_s=1.0)) as run:
        while (counters := run.counters()).sources["numbers"] + counters.lag["numbers"] < COUNT / 2:
            booked = max([booked, *(one.queued for one in counters.operators["work"].replicas.values())])
            outside = max(outside, counters.lag["numbers"])
            time.sleep(0.1)
        waiting = run.fresh_counters()
        run.set_replicas("work", 4)
        grown_s = time.monotonic()
        done = waiting.operators["work"].total.processed
        while run.fresh_counters().operators["work"].total.processed < done + 200:
            assert time.monotonic() < grown_s + 60
            time.sleep(0.05)
        assert run.wait(LONG_S)
        spread = [one.processed for one in run.counters().operators["work"].replicas.values()]
        assert run.checkpoint_status().committed > 2
    assert 0 < booked <= BOOKED
    assert outside > 100  # it waits where it comes from, not in memory
    assert waiting.operators["work"].held > 10
    assert min(spread) > 50
    assert sorted(event["n"] for _, event in collected(collected_in)) == list(range(COUNT))


def test_a_replica_that_hangs_delays_only_what_it_had(collected_in: Path) -> None:
    with Run(app(collected_in), numbers(), replicas={"work": 4}) as run:
        while run.counters().sources["numbers"] < COUNT / 3:
            time.sleep(0.1)
        victim = run.places()["work", 1].pid
        stopped_s = time.time()
        os.kill(victim, signal.SIGSTOP)
        try:
            time.sleep(5.0)
        finally:
            os.kill(victim, signal.SIGCONT)
        assert run.wait(LONG_S)
        assert run.counters().restarts == 0
        began_s = run.epoch_s
    assert began_s is not None
    events = [event for _, event in collected(collected_in)]
    assert sorted(event["n"] for event in events) == list(range(COUNT))
    meanwhile = [e for e in events if stopped_s < began_s + e["n"] / RATE < stopped_s + 4]
    late = [e for e in meanwhile if e["done_s"] - (began_s + e["n"] / RATE) > 1.0]
    assert len(meanwhile) > 300
    assert len(late) <= BOOKED
