"""A replica at work on a batch: what it emits, in which type events come, and where they go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.bundle import Barrier, Events, Header, pack, pack_sign
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.engine.worker import lifecycle
from penstock.engine.worker.agent import agent_for
from penstock.engine.worker.lifecycle import close_all
from penstock.engine.worker.microbatch import pass_by
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.topology import Context, To, Topology

from ..made import app, sink

Driver = Any
Tools = SimpleNamespace
Work = Any


# ── outputs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def none_one_or_many(event: int) -> Any:
    return None if event == 0 else {"n": 1} if event == 1 else [{"n": n} for n in range(event)]


def test_a_function_gives_none_one_or_many(work: Work, tools: Tools) -> None:
    done = work(app(none_one_or_many), tools.bundle([0, 1, 3]), tools.bundle([2], first=3))
    assert done.left.ids == ["1", "2.0", "2.1", "2.2", "3.0", "3.1"]
    assert done.left.events == [{"n": 1}, {"n": 0}, {"n": 1}, {"n": 2}, {"n": 0}, {"n": 1}]
    counters = done.counters
    assert (counters.received, counters.processed) == ({"events": 4}, 4)
    assert (counters.emitted, counters.sent, counters.dropped) == ({"out": 6}, {"end": 6}, {})


def test_a_generator_gives_what_it_yields(work: Work, tools: Tools) -> None:
    def words(event: dict[str, str]) -> Iterator[str]:
        yield from event["text"].split()

    done = work(app(words), tools.bundle([{"text": "storm and rain"}, {"text": ""}, {"text": "sun"}]))
    assert list(zip(done.left.ids, done.left.events, strict=True)) == [
        ("0.0", "storm"),
        ("0.1", "and"),
        ("0.2", "rain"),
        ("2", "sun"),
    ]


def test_events_go_to_the_streams_they_name(work: Work, tools: Tools) -> None:
    def dispatch(event: int) -> Any:
        return event if event == 0 else [To("odd" if event % 2 else "even", event), To("even", -event)]

    done = work(app(dispatch, outputs=("even", "odd")), tools.bundle([0, 1, 2]))
    assert done.counters.emitted == {"even": 4, "odd": 1}
    assert sorted(done.left.events) == [-2, -1, 0, 1, 2]


def test_the_time_an_event_was_born_is_handed_on(work: Work, tools: Tools) -> None:
    done = work(app(lambda event: [event, event]), tools.bundle(["a"], born=123.5))
    assert [row.born for row in done.left.bundles] == [[123.5, 123.5]]


class Counting:
    """Opened once, closed at the end; says which replica it is and which event it is at."""

    closed = threading.Event()

    def open(self, context: Context) -> None:
        self.context = context
        self.seen = 0

    def process(self, event: Any) -> dict[str, Any]:
        self.seen += 1
        return {"replica": self.context.replica, "ids": list(self.context.event_ids), "seen": self.seen}

    def close(self) -> None:
        Counting.closed.set()


def test_a_class_is_opened_knows_its_place_and_is_closed(work: Work, tools: Tools) -> None:
    Counting.closed.clear()
    done = work(app(Counting()), tools.bundle(["a", "b"]), replica=3)
    assert done.left.events == [
        {"replica": 3, "ids": ["0"], "seen": 1},
        {"replica": 3, "ids": ["1"], "seen": 2},
    ]
    assert not Counting.closed.is_set()
    close_all()
    assert Counting.closed.is_set()


def test_an_operator_stays_open_from_batch_to_batch(driver: Driver, tools: Tools) -> None:
    program = driver.program(app(Counting()))
    seen = []
    for batch in range(1, 4):
        replica = OperatorReplica(program, 1, "op", 0, batch)
        left = tools.left(*replica.run([tools.Batch([tools.bundle(["a"])])]))
        seen += [event["seen"] for event in left.events]
    assert seen == [1, 2, 3]


def test_an_operator_that_cannot_be_opened_is_named(work: Work, tools: Tools) -> None:
    class Closed:
        def open(self, context: Context) -> None:
            raise ConnectionError("no database")

        def process(self, event: Any) -> None: ...

    topology = sink(Closed())
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([1]))
    assert str(caught.value) == f"{topology['op']}: open failed: ConnectionError: no database"


# ── typed events ────────────────────────────────────────────────────────────────────────────────────────────────────


class Tweet(msgspec.Struct):
    text: str
    words: int = 0


@dataclass
class Query:
    name: str


def count_words(tweet: Tweet) -> Tweet:
    return Tweet(tweet.text, len(tweet.text.split()))


def ask(query: Query) -> Query:
    return Query(query.name.upper())


@pytest.mark.parametrize(
    ("run", "sent", "made"),
    [
        (count_words, {"text": "storm and rain"}, {"text": "storm and rain", "words": 3}),
        (ask, {"name": "a.example"}, {"name": "A.EXAMPLE"}),
    ],
    ids=["struct", "dataclass"],
)
def test_typed_events_come_in_their_type_and_leave_as_mappings(
    work: Work, tools: Tools, run: Any, sent: Any, made: Any
) -> None:
    assert work(app(run), tools.bundle([sent])).left.events == [made]


def test_an_event_of_another_type_names_operator_and_type(work: Work, tools: Tools) -> None:
    topology = app(count_words)
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([{"text": "storm"}, {"name": "a.example"}]))
    assert str(caught.value) == (
        f"{topology['op']}: it is not Tweet: Object missing required field `text`; on event 1: {{'name': 'a.example'}}"
    )


def test_an_operator_that_is_long_unused_is_closed(
    driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may give a process another replica with the next batch, and the old one again with the one after it."""
    program = driver.program(app(Counting()))
    for batch, replica, closed in ((1, 0, False), (2, 1, False), (3, 1, False), (4, 1, True)):
        monkeypatch.setattr(lifecycle, "KEPT_S", 60.0 if batch < 4 else 0.0)
        Counting.closed.clear()
        lifecycle.opened(program, "op", replica, batch)
        assert Counting.closed.is_set() is closed


# ── routing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_real_time_follows_the_routing_in_force_and_micro_batch_that_of_its_program(
    driver: Driver, tools: Tools
) -> None:
    topology = app(lambda event: event)
    for realtime, partition in ((True, 2), (False, 0)):
        program = driver.program(topology, microbatch=None if realtime else MicroBatch(1, "events"))
        driver.server.publish(Routing(5, {"op": OperatorRouting((0,)), "end": OperatorRouting((2,))}))
        replica = OperatorReplica(program, 1, "op", 0, 1)
        tools.until(lambda: agent_for(program).routing.version == 5)  # noqa: B023
        left = tools.left(*replica.run([tools.Batch([tools.bundle([1])])]))
        assert [row.partition for row in left.bundles] == [partition]


def test_bundles_that_skip_a_stage_are_handed_on_untouched(tools: Tools) -> None:
    topology = Topology("skip", pool=2)
    first = topology.operator("first", len, inputs=topology.source("events"))
    second = topology.operator("second", len, inputs=first)
    third = topology.operator("third", len, inputs=second)
    topology.operator("end", len, inputs=[third, first])
    program = tools.program_of(topology)
    packed = pack(Header(2, 0, 4, 1, 2), Events(["0", "1"], [0.0, 0.0], ["a", "b"]))
    over_second = list(pass_by(program, 2, [tools.Batch([packed]), tools.Batch([])]))
    assert len(over_second) == 1
    assert [row["partition"] for row in over_second[0].to_pylist()] == [2]  # the way past stage 3
    (over_third,) = pass_by(program, 3, over_second)
    assert [(row["partition"], row["bundle"]) for row in over_third.to_pylist()] == [(1, packed)]


def test_barriers_that_skip_a_stage_keep_their_place(tools: Tools) -> None:
    topology = Topology("skip", pool=2)
    first = topology.operator("first", len, inputs=topology.source("events"))
    second = topology.operator("second", len, inputs=first)
    topology.operator("end", len, inputs=[second, first])
    header = Header(1, 0, 3, 1, 0)
    sent = [pack(Header(1, 0, 3, 1, 1), Events(["0"], [0.0], ["a"])), pack_sign(header, Barrier(4))]
    (passed,) = pass_by(tools.program_of(topology), 2, [tools.Batch(sent)])
    assert [(row["partition"], row["bundle"]) for row in passed.to_pylist()] == [(1, sent[0]), (1, sent[1])]
