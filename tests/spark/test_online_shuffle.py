"""Online shuffle on a real Spark: replicas sketch, senders learn, and nothing is lost while things change."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

RATE = 250.0
LONGEST_MS = 12
GROUPING = "online_shuffle:window=100,mu=0.5"

States = dict[str, dict[str, int]]


def work(event: dict[str, Any]) -> dict[str, Any]:
    """The time depends on the value; who it was is told."""
    time.sleep(event["value"] / 1000)
    return event | {"by": os.getpid()}


def sensitive(folder: Path) -> Topology:
    """One that works on single events, and a sink that takes many at once."""
    topology = Topology("sensitive", pool=4)
    bolt = topology.operator("bolt", work, inputs=topology.source("values"), grouping=GROUPING, cost_by="value")
    topology.operator("end", CollectSink(folder), inputs=bolt, pool=2, grouping=GROUPING)
    return topology


def values() -> TraceSource:
    """Three quick ones, then a slow one; far longer than any test, which ends when it has seen what it wants."""
    return TraceSource(constant(RATE, 900.0), [{"value": LONGEST_MS if n % 4 == 3 else 1} for n in range(4000)])


def runs(states: States) -> bool:
    """Who sends to the bolt goes by its sketches, and so does someone who sends to the end."""
    return states.get("bolt") == {"RUN": 1} and states.get("end", {}).get("RUN", 0) > 0


def learnt(states: States) -> bool:
    """Nobody goes round any more; new sketches may be under way."""
    return all(states.get(name) and "ROUND_ROBIN" not in states[name] for name in ("bolt", "end"))


def entered(run: Run) -> int:
    return run.counters().sources["values"]


def processed(run: Run, replica: int) -> int:
    return run.counters().operators["bolt"].replicas[replica].processed


def end(run: Run) -> int:
    """Let no more events in and wait for those that are; how many there were."""
    run.stop_sources()
    assert run.wait_drained(LONG_S)
    return run.fresh_counters().sources["values"]


def evenly_spread(folder: Path) -> bool:
    """Whether two replicas have both had a good part of the last slow events; going round gives all of them to one."""
    slow = [(int(event_id), event["by"]) for event_id, event in collected(folder) if event["value"] == LONGEST_MS]
    times = Counter(by for _, by in sorted(slow)[-100:])
    return len(slow) >= 100 and len(times) == 2 and min(times.values()) >= 20


def test_senders_learn_while_replicas_change(collected_in: Path) -> None:
    """2 replicas, then 4, then 3 others, over several checkpoints and a cut: every event arrives once.

    The slow events do not pile up at one of two replicas, as round robin would have it.
    """
    options = RunOptions(checkpoint_every_s=2)
    with Run(sensitive(collected_in), values(), replicas={"bolt": 2, "end": 2}, options=options) as run:
        until(lambda: runs(run.online_states()), run.online_states)
        until(lambda: evenly_spread(collected_in), run.online_states, look_every_s=0.5)
        run.set_replicas("bolt", 4)
        until(lambda: all(processed(run, replica) > 50 for replica in range(4)))
        until(lambda: learnt(run.online_states()), run.online_states)
        run.cut_channel(True)
        wanted = len(collected(collected_in)) + 300
        until(lambda: len(collected(collected_in)) >= wanted, look_every_s=0.2)
        run.cut_channel(False)
        run.set_replicas("bolt", [1, 2, 3])
        until(lambda: run.checkpoint_status().committed >= 3, run.online_states)
        until(lambda: learnt(run.online_states()), run.online_states)
        count = end(run)
        counters = run.fresh_counters()
    assert sorted(int(event_id) for event_id, _ in collected(collected_in)) == list(range(count))
    assert counters.restarts == 0
    assert counters.operators["bolt"].total.processed == counters.operators["end"].total.processed == count


def test_senders_learn_again_after_a_worker_was_killed(collected_in: Path) -> None:
    """The query starts anew; senders begin with the sketches of before, and no event is lost."""
    with Run(sensitive(collected_in), values(), replicas={"bolt": 3, "end": 1}) as run:
        until(lambda: runs(run.online_states()), run.online_states)
        os.kill(run.places()["bolt", 1].pid, signal.SIGKILL)
        until(lambda: run.counters().restarts > 0, run.online_states)
        before = entered(run)
        until(lambda: entered(run) > before + 500 and learnt(run.online_states()), run.online_states)
        count = end(run)
        counters = run.fresh_counters()
    assert {int(event_id) for event_id, _ in collected(collected_in)} == set(range(count))
    assert counters.operators["end"].total.processed == count
