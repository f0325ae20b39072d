"""Real-time mode on a real Spark: every event arrives, and the counters say so."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.engine.options import RunOptions
from penstock.engine.plan import layout
from penstock.engine.run import Run
from penstock.errors import EngineError
from penstock.sinks import CollectSink, collected
from penstock.sources import TraceSource
from penstock.topology import Context, To, Topology
from penstock.workload import Trace, constant
from tests.waiting import LONG_S, until


def numbers(count: int, rate: float) -> TraceSource:
    return TraceSource(constant(rate, count / rate), [{"n": n, "word": "ab"[n % 2]} for n in range(count)])


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


def test_a_topology_with_everything(collected_in: Path) -> None:
    """Split, replicate, filter, union, a stream that skips a level, a class, typed events, a key: 2,000 events."""
    topology = Topology("everything", pool=2)
    split = topology.operator("split", parity, inputs=topology.source("numbers"), outputs=("even", "odd"))
    squares = topology.operator("squares", Squarer(), inputs=split["even"])
    few = topology.operator("few", small, inputs=squares, grouping="load_balancing")
    topology.operator("end", CollectSink(collected_in), inputs=[few, split["odd"]], grouping="fields", key="n")
    count = 2000
    with Run(topology, numbers(count, 500), replicas={"squares": 2, "end": 2}) as run:
        assert run.wait(LONG_S)
        counters = run.fresh_counters()
        places = run.places()
    got = collected(collected_in)
    even = [n for n in range(count) if n % 2 == 0]
    odd = [n for n in range(count) if n % 2 or n % 10 == 0]
    assert len({event_id for event_id, _ in got}) == len(got)
    assert Counter(e["n"] for _, e in got if "square" in e) == Counter(n for n in even if n < 1500)
    assert Counter(e["n"] for _, e in got if "square" not in e) == Counter(odd)
    operators = counters.operators
    assert counters.sources == {"numbers": count}
    assert operators["split"].total.emitted == {"even": len(even), "odd": len(odd)}
    assert operators["squares"].total.received == {"split": len(even)}
    assert operators["end"].total.received == {"few": 750, "split": len(odd)}
    assert operators["end"].total.processed == len(got) == counters.latency.count
    assert all(one.backlog == 0 and one.total.busy_s > 0 for one in operators.values())
    assert set(places) == {(name, replica) for name in topology.operators for replica in (0, 1)}
    assert {key: place.executor for key, place in places.items()} == dict.fromkeys(places, "driver")


def test_checkpoints_go_by_without_loss(collected_in: Path) -> None:
    """Events flow while checkpoints are made: none lost, none repeated, and the numbers add up."""
    topology = Topology("boundaries", pool=2)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    options = RunOptions(checkpoint_every_s=1)
    with Run(topology, numbers(24_000, 200), replicas={"first": 2}, options=options) as run:
        until(lambda: run.checkpoint_status().committed >= 5, run.checkpoint_status)
        run.stop_sources()
        assert run.wait_drained(LONG_S)
        counters = run.fresh_counters()
    count = counters.sources["numbers"]
    ids = [event_id for event_id, _ in collected(collected_in)]
    assert sorted(map(int, ids)) == list(range(count))
    assert counters.operators["end"].total.processed == count > 800


def same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def slow(event: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    return event


def test_between_large_stages_rows_go_by_way_of_relays_and_stay_in_order(
    collected_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools of 64 had more connections than a process may have files."""
    monkeypatch.setattr(layout, "MOST_LINKS", 30)
    topology = Topology("relayed", pool=6)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first, grouping="fields", key="n")
    options = RunOptions(checkpoint_every_s=1)
    with Run(topology, numbers(1000, 250), replicas={"end": 6}, options=options) as run:
        assert run.wait(LONG_S)
        places = run.places()
        assert run.checkpoint_status().committed > 1
    assert len(places) == 12
    assert {place.executor for place in places.values()} == {"driver"}
    lines = [path.read_bytes().splitlines() for path in collected_in.glob("*.jsonl")]
    files = [[msgspec.json.decode(line)[1]["n"] for line in one] for one in lines]
    assert len(files) == 6
    assert all(numbers == sorted(numbers) for numbers in files)  # from their only sender
    assert sorted(n for numbers in files for n in numbers) == list(range(1000))


@pytest.mark.parametrize(
    ("limits", "cause"), [({"t_out_s": 0.5}, "t_out"), ({"q_size": 20}, "q_size")], ids=["t_out", "q_size"]
)
def test_bounds_drop_and_count(limits: dict[str, Any], cause: str, collected_in: Path) -> None:
    """One replica of 50 events/s gets 200/s for 2 s, then 10/s: with a bound it drops the rest, and counts every one.

    It keeps up with the last events, so that some are in time however late the first were.
    """
    topology = Topology("bounded", pool=1)
    first = topology.operator("slow", slow, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    source = TraceSource(Trace("jump", 1.0, [200.0, 200.0, 10.0, 10.0]), [{"n": n} for n in range(420)])
    with Run(topology, source, options=RunOptions(**limits)) as run:
        assert run.wait(LONG_S)
        counters = run.fresh_counters()
    stored, dropped = len(collected(collected_in)), counters.dropped
    assert set(dropped) == {cause}
    assert stored + dropped[cause] == 420
    assert 0 < stored < 300


def picky(event: dict[str, Any]) -> dict[str, Any]:
    if event["n"] == 70:
        raise ValueError("seventy is not for me")
    return event


def test_an_event_that_raises_ends_the_run_with_a_clear_error(collected_in: Path) -> None:
    topology = Topology("picky", pool=1)
    topology.operator("picky", picky, inputs=topology.source("numbers"))
    with (
        pytest.raises(
            EngineError, match=r"operator 'picky' \(test_realtime.py:\d+\): ValueError: seventy is not for me"
        ),
        Run(topology, numbers(200, 100), options=RunOptions(retries=1)) as run,
    ):
        run.wait(LONG_S)


def test_an_event_that_raises_can_be_dropped(collected_in: Path) -> None:
    topology = Topology("picky", pool=1)
    first = topology.operator("picky", picky, inputs=topology.source("numbers"), on_error="drop")
    topology.operator("end", CollectSink(collected_in), inputs=first)
    with Run(topology, numbers(200, 100)) as run:
        assert run.wait(LONG_S)
        assert run.fresh_counters().dropped == {"error": 1}
    assert len(collected(collected_in)) == 199


def test_replicas_go_on_while_the_channel_is_cut(collected_in: Path) -> None:
    """For some seconds nobody hears the driver: events flow with the last routing, and all is counted afterwards."""
    topology = Topology("cut", pool=2)
    first = topology.operator("first", same, inputs=topology.source("numbers"))
    topology.operator("end", CollectSink(collected_in), inputs=first)
    with Run(topology, numbers(1200, 200)) as run:
        time.sleep(1)
        run.cut_channel(True)
        wanted = len(collected(collected_in)) + 600
        until(lambda: len(collected(collected_in)) >= wanted)
        run.cut_channel(False)
        assert run.wait(LONG_S)
        assert run.fresh_counters().operators["end"].total.processed == 1200
    assert len({event_id for event_id, _ in collected(collected_in)}) == 1200
