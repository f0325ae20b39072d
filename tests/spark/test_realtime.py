"""Real-time mode on a real Spark: every event arrives, and the counters say so."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from penstock.engine.driver.tally import ReplicaPlace
from penstock.engine.options import RunOptions
from penstock.engine.run import Run
from penstock.metrics.counters import RunCounters
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Context, ReplicaId, To, Topology
from penstock.workload import constant
from tests.waiting import LONG_S, until

T_OUT_S = 1.5


def numbers(count: int, rate: float, times: int = 1) -> TraceSource:
    """With many `times` it is longer than any test, which ends when it has seen what it wants."""
    trace = constant(rate, times * count / rate)
    return TraceSource(trace, [{"n": n, "word": "ab"[n % 2]} for n in range(count)])


class Number(msgspec.Struct):
    n: int
    word: str


@dataclasses.dataclass
class Square:
    n: int
    square: int


class Squarer:
    """A class with all the trimmings: opened once in its replica, many events at once, typed."""

    def open(self, context: Context) -> None:
        self.replica = context.replica

    def process(self, number: Number) -> Square:
        return Square(number.n, number.n**2)

    def process_many(self, numbers: list[Number]) -> list[Square]:
        assert self.replica >= 0
        return [self.process(number) for number in numbers]


def parity(event: dict[str, Any]) -> list[To] | To:
    """Even numbers to one stream, odd ones to another, every tenth to both."""
    if event["n"] % 10 == 0:
        return [To("even", event), To("odd", event)]
    return To("odd" if event["n"] % 2 else "even", event)


def small(square: Square) -> Square | None:
    return square if square.n < 1500 else None


def lines(folder: Path) -> int:
    """Events that sinks have written so far."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl"))


def end(run: Run) -> RunCounters:
    """Let no more events in and wait for those that are; what the run has done."""
    run.stop_sources()
    assert run.wait_drained(LONG_S)
    return run.fresh_counters()


def located(run: Run) -> dict[ReplicaId, ReplicaPlace] | None:
    """Where the replicas sit, once Spark says it of all."""
    places = run.places()
    return places if all(place.executor for place in places.values()) else None


def test_a_topology_with_everything(collected_in: Path) -> None:
    """Split, replicate, filter, union, a stream that skips a level, a class, typed events, a key, some thousand events.

    All of it under TLS. Checkpoints go by, and for a while nobody hears the driver: events flow with the last routing.
    None is lost, none comes twice, and all is counted.
    """
    topology = Topology("everything", pool=2)
    split = topology.operator("split", parity, inputs=topology.source("numbers"), outputs=("even", "odd"))
    squares = topology.operator("squares", Squarer(), inputs=split["even"])
    few = topology.operator("few", small, inputs=squares, grouping="load_balancing")
    topology.operator("end", CollectSink(collected_in), inputs=[few, split["odd"]], grouping="fields", key="n")
    options = RunOptions(checkpoint_every_s=1, encrypt=True, ports="20000-29999")
    with Run(topology, numbers(3000, 300, 90), replicas={"squares": 2, "end": 2}, options=options) as run:
        assert run._driver is not None
        driver = run._driver.attempts.address
        places = until(lambda: located(run))
        until(lambda: run.checkpoint_status().committed >= 4, run.checkpoint_status)
        until(lambda: run.counters().sources["numbers"] > 1600)  # some are not small
        run.cut_channel(True)
        wanted = lines(collected_in) + 300
        until(lambda: lines(collected_in) >= wanted)
        run.cut_channel(False)
        counters = end(run)
    sent = [number % 3000 for number in range(counters.sources["numbers"])]
    even = [n for n in sent if n % 2 == 0]
    odd = [n for n in sent if n % 2 or n % 10 == 0]
    kept = [n for n in even if n < 1500]
    got = collected(collected_in)
    assert len({event_id for event_id, _ in got}) == len(got)
    assert Counter(e["n"] for _, e in got if "square" in e) == Counter(kept)
    assert Counter(e["n"] for _, e in got if "square" not in e) == Counter(odd)
    operators = counters.operators
    assert operators["split"].total.emitted == {"even": len(even), "odd": len(odd)}
    assert operators["squares"].total.received == {"split": len(even)}
    assert operators["end"].total.received == {"few": len(kept), "split": len(odd)}
    assert operators["end"].total.processed == len(got) == counters.latency.count
    assert all(one.backlog == 0 and one.total.busy_s > 0 for one in operators.values())
    assert counters.restarts == 0
    assert driver.credential is not None
    assert 20_000 <= driver.port < 30_000
    assert set(places) == {(name, replica) for name in topology.operators for replica in (0, 1)}
    assert {key: place.executor for key, place in places.items()} == dict.fromkeys(places, "driver")


def now_and_then_stuck(event: dict[str, Any]) -> dict[str, Any]:
    if event["n"] % 500 == 5:
        time.sleep(2 * T_OUT_S)
    return event


def test_bounds_drop_and_count(collected_in: Path) -> None:
    """A replica is stuck for longer than events may take: every one that is dropped is counted.

    What waits for it is too old then, what finds too many waiting is dropped at once, what comes later is in time.
    """
    topology = Topology("bounded", pool=1)
    first = topology.operator("stuck", now_and_then_stuck, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    with Run(topology, numbers(1000, 50, 45), options=RunOptions(t_out_s=T_OUT_S, q_size=20)) as run:
        until(lambda: set(run.counters().dropped) == {"t_out", "q_size"}, lambda: run.counters().dropped)
        before = lines(collected_in)
        until(lambda: lines(collected_in) > before + 20, lambda: run.counters().dropped)
        counters = end(run)
    assert set(counters.dropped) == {"t_out", "q_size"}
    assert len(collected(collected_in)) + sum(counters.dropped.values()) == counters.sources["numbers"]
