"""Late binding on a real Spark: what waits goes to whoever has room, and back-pressure reaches the source."""

from __future__ import annotations

import os
import signal
import time
from bisect import bisect
from pathlib import Path
from typing import Any

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

BOOKED = 4  # a replica that takes 20 ms is given 50 ms of work ahead, and one event more by its only sender
RATE, TRACE_S = 200.0, 900.0  # as much as four replicas do; far longer than the test
MORE, MANY = 600, 200  # events that others do while one hangs; to be overtaken by so many is to be held up


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def slow(event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    return event


def app(folder: Path) -> Topology:
    topology = Topology("late", pool=4)
    first = topology.operator("first", same, inputs=topology.source("numbers"), grouping="pull", pool=1)
    work = topology.operator("work", slow, inputs=first, grouping="pull")
    topology.operator("end", CollectSink(folder), inputs=work, grouping="pull", pool=1)
    return topology


def done(run: Run) -> list[int]:
    """Events that each replica has processed."""
    replicas = run.counters().operators["work"].replicas
    return [replicas[number].processed for number in range(4)]


def test_what_waits_goes_to_who_has_room_and_one_that_hangs_delays_only_what_it_had(collected_in: Path) -> None:
    """Four times as much comes as one replica can do; then four are at work, then one of them hangs.

    Checkpoints are asked for: one that came by itself would wait for the one that hangs, and all others with it.
    """
    source = TraceSource(constant(RATE, TRACE_S), [{}])
    options = RunOptions(checkpoint_every_s=1000.0, silent_s=2 * LONG_S)  # who hangs is not taken for lost
    with Run(app(collected_in), source, options=options) as run:
        booked = await_held_back(run)
        run.set_replicas("work", 4)
        until(lambda: min(done(run)) > 50, lambda: done(run))  # what waits is also for those that are new
        for _ in range(2):
            assert run._at_work.work.checkpoint_now(LONG_S)  # behind what is held
        hang(run, 1)
        run.stop_sources()
        assert run.wait_drained(LONG_S)
        counters = run.fresh_counters()
    assert 0 < booked <= BOOKED
    assert counters.restarts == 0
    ids = [int(event_id) for event_id, _ in collected(collected_in)]  # in one file, as they came to the only sink
    assert sorted(ids) == list(range(counters.sources["numbers"]))
    assert 0 < len(held_up(ids)) <= 2 * BOOKED  # the hung one's, and those of one that had no CPU for some seconds


def await_held_back(run: Run) -> int:
    """Wait until much waits where it comes from, not in memory; the most that the only replica was given ahead."""
    booked = [0]

    def held_back() -> bool:
        counters = run.fresh_counters()
        booked.append(counters.operators["work"].booked)
        return counters.lag["numbers"] > 100 and counters.operators["work"].held > 10 and max(booked) > 0

    until(held_back, lambda: f"{run.counters().lag} wait outside, the replica has had {max(booked)}")
    return max(booked)


def hang(run: Run, replica: int) -> None:
    """Have a replica stand still until the others have done many more."""
    victim, before = run.places()["work", replica].pid, sum(done(run))
    os.kill(victim, signal.SIGSTOP)
    try:
        until(lambda: sum(done(run)) > before + MORE, lambda: f"{done(run)}, {before} before")
    finally:
        os.kill(victim, signal.SIGCONT)


def held_up(numbers: list[int]) -> list[int]:
    """Those that many later ones have overtaken: while a whole machine stands still, nobody overtakes anybody."""
    found: list[int] = []
    before: list[int] = []  # those that came before, sorted
    for number in numbers:
        place = bisect(before, number)
        if len(before) - place >= MANY:
            found.append(number)
        before.insert(place, number)
    return found
