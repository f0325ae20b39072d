"""A replica at work on a batch: what it emits, what it counts, what it drops, and how it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.engine.bundle import NUDGE
from penstock.engine.lifecycle import close_all
from penstock.engine.messages import OperatorRouting, Routing
from penstock.engine.pass_by import pass_by
from penstock.engine.program import Limits
from penstock.engine.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.topology import Context, To, Topology

Driver = Any
Tools = SimpleNamespace
Work = Any

gate = threading.Event()


def app(run: Any, *, outputs: tuple[str, ...] = ("out",), **operator: Any) -> Topology:
    """The operator `op` in front of an end that reads all its streams."""
    topology = Topology("app", pool=4)
    op = topology.operator("op", run, inputs=topology.source("events"), outputs=outputs, **operator)
    topology.operator("end", len, inputs=[op[stream] for stream in outputs])
    return topology


def sink(run: Any, **operator: Any) -> Topology:
    topology = Topology("app", pool=4)
    topology.operator("op", run, inputs=topology.source("events"), **operator)
    return topology


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


# ── many at once ────────────────────────────────────────────────────────────────────────────────────────────────────


class InBulk:
    """Doubles numbers, many at a time; keeps the sizes of its calls."""

    calls: list[tuple[str, ...]] = []  # noqa: RUF012 - shared with the copy that is shipped

    def open(self, context: Context) -> None:
        self.context = context
        InBulk.calls = []

    def process(self, event: int) -> int:
        raise AssertionError("process_many goes before process")

    def process_many(self, events: list[int]) -> list[Any]:
        InBulk.calls.append(self.context.event_ids)
        if -1 in events:
            raise ValueError("minus one")
        return [None if event == 0 else [event, event] if event == 1 else 2 * event for event in events]


def test_process_many_gets_the_ids_and_gives_one_output_for_each_event(work: Work, tools: Tools) -> None:
    done = work(app(InBulk()), tools.bundle([0, 1, 5]), tools.bundle([7], first=3))
    assert done.left.ids == ["1.0", "1.1", "2", "3"]
    assert done.left.events == [1, 1, 10, 14]
    assert [one for call in InBulk.calls for one in call] == ["0", "1", "2", "3"]
    assert done.counters.processed == 4


def test_process_many_gets_more_and_more_events_while_it_is_quick(work: Work, tools: Tools) -> None:
    work(app(InBulk()), tools.bundle(list(range(2, 200))))
    assert [len(call) for call in InBulk.calls][:5] == [1, 2, 4, 8, 16]


class Patient(InBulk):
    def process_many(self, events: list[int]) -> list[Any]:
        gate.wait(5)
        return super().process_many(events)


def test_process_many_takes_bundles_together_that_wait(driver: Driver, tools: Tools) -> None:
    gate.clear()
    replica = OperatorReplica(driver.program(app(Patient())), 1, "op", 0, 1)
    replica._processing.at_once = 8

    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle([2, 3], first=2 * n) for n in range(12)])
        gate.set()  # all of them wait by now

    assert len(tools.left(*replica.run(batches())).ids) == 24
    assert max(len(call) for call in InBulk.calls) >= 8


def test_process_many_gets_fewer_events_when_they_take_long(driver: Driver, tools: Tools) -> None:
    class Slow:
        def process(self, event: int) -> None: ...

        def process_many(self, events: list[int]) -> None:
            time.sleep(0.03)

    replica = OperatorReplica(driver.program(sink(Slow())), 1, "op", 0, 1)
    replica._processing.at_once = 8
    list(replica.run([tools.Batch([tools.bundle(list(range(8)))])]))
    assert replica._processing.at_once == 4


def test_process_many_that_gives_too_few_outputs_is_an_error(work: Work, tools: Tools) -> None:
    class Forgetful(InBulk):
        def process_many(self, events: list[int]) -> list[Any]:
            return []

    topology = app(Forgetful())
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([1]))
    expected = f"{topology['op']}: process_many must give one output for each event; got 0 for 1"
    assert str(caught.value) == expected


def test_process_many_may_give_nothing_at_all(work: Work, tools: Tools) -> None:
    class Silent(InBulk):
        def process_many(self, events: list[int]) -> None: ...

    done = work(app(Silent()), tools.bundle([1, 2, 3]))
    assert (done.left.ids, done.counters.processed) == ([], 3)


def test_process_many_drops_only_the_event_that_is_to_blame(driver: Driver, tools: Tools) -> None:
    program = driver.program(app(InBulk(), on_error="drop"))
    replica = OperatorReplica(program, 1, "op", 0, 1)
    replica._processing.at_once = 4
    left = tools.left(*replica.run([tools.Batch([tools.bundle([2, -1, 4, 5])])]))
    assert left.ids == ["0", "2", "3"]
    assert (replica._counters.processed, replica._counters.dropped) == (3, {"error": 1})


def test_process_many_that_fails_says_that_the_event_is_one_of_several(driver: Driver, tools: Tools) -> None:
    """The first event of the call used to be named as if it alone had failed."""
    topology = app(InBulk())
    replica = OperatorReplica(driver.program(topology), 1, "op", 0, 1)
    replica._processing.at_once = 4
    with pytest.raises(EngineError) as caught:
        list(replica.run([tools.Batch([tools.bundle([2, 3, -1, 5])])]))
    assert str(caught.value) == f"{topology['op']}: ValueError: minus one; on event 0 or one of the 3 after it: 2"


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
    assert str(caught.value).startswith(f"{topology['op']}: an event is not Tweet: ")
    assert "missing required field `text`" in str(caught.value)


# ── errors and limits ───────────────────────────────────────────────────────────────────────────────────────────────


def reciprocal(event: int) -> float:
    return 1 / event


def test_on_error_fail_names_operator_error_and_event(work: Work, tools: Tools) -> None:
    topology = app(reciprocal)
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([1, 0, 2], first=40))
    assert str(caught.value) == f"{topology['op']}: ZeroDivisionError: division by zero; on event 41: 0"


def test_on_error_drop_counts_the_event_and_goes_on(work: Work, tools: Tools) -> None:
    done = work(app(reciprocal, on_error="drop"), tools.bundle([1, 0, 2, 0]))
    assert done.left.ids == ["0", "2"]
    assert (done.counters.processed, done.counters.dropped) == (2, {"error": 2})


def test_a_generator_that_fails_half_way_emits_nothing(work: Work, tools: Tools) -> None:
    def half(event: int) -> Iterator[int]:
        yield event
        yield 1 // event

    done = work(app(half, on_error="drop"), tools.bundle([0, 1]))
    assert done.left.ids == ["1.0", "1.1"]
    assert done.counters.emitted == {"out": 2}


def test_an_unknown_stream_fails_the_run_even_where_errors_are_dropped(work: Work, tools: Tools) -> None:
    with pytest.raises(EngineError, match="emits to 'nowhere'; its streams are out"):
        work(app(lambda event: To("nowhere", event), on_error="drop"), tools.bundle([1]))


@pytest.mark.parametrize("run", [lambda event: event, InBulk()], ids=["one", "many"])
def test_events_older_than_t_out_are_dropped(work: Work, tools: Tools, run: Any) -> None:
    bundles = tools.bundle([2, 3], born=time.time() - 60), tools.bundle([4], first=2)
    done = work(app(run), *bundles, limits=Limits(t_out_s=30.0))
    assert done.left.ids == ["2"]
    assert (done.counters.processed, done.counters.dropped) == (1, {"t_out": 2})


def test_what_finds_the_replicas_part_of_q_size_full_is_dropped(work: Work, tools: Tools) -> None:
    """Two active replicas share a q_size of 5: each queues 3. It counts from the very first bundle on."""
    limits, active = Limits(q_size=5), {"op": (0, 2)}
    done = work(app(lambda event: event), tools.bundle(list(range(10))), limits=limits, active=active)
    assert done.left.ids == ["0", "1", "2"]
    assert (done.counters.processed, done.counters.dropped) == (3, {"q_size": 7})


def test_what_breaks_the_stream_breaks_the_batch(driver: Driver, tools: Tools) -> None:
    def batches() -> Iterator[Any]:
        yield tools.Batch([tools.bundle([1])])
        raise EOFError("Spark is gone")

    replica = OperatorReplica(driver.program(app(lambda event: event)), 1, "op", 0, 1)
    with pytest.raises(EOFError, match="Spark is gone"):
        list(replica.run(batches()))


# ── measures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_20_ms(event: Any) -> None:
    time.sleep(0.02)


class WaitTogether:
    def process(self, event: Any) -> None: ...

    def process_many(self, events: list[Any]) -> None:
        time.sleep(0.02 * len(events))


@pytest.mark.parametrize("run", [wait_20_ms, WaitTogether()], ids=["one", "many"])
def test_latency_is_measured_at_sinks_and_busy_time_everywhere(work: Work, tools: Tools, run: Any) -> None:
    done = work(sink(run), tools.bundle([1, 2, 3], born=time.time() - 1.0))
    latency = done.counters.latency
    assert latency.count == 3
    assert 1000 + 20 <= latency.mean_ms < 1000 + 500
    assert 0.06 <= done.counters.busy_s < 0.5
    assert done.counters.cpu_s < 0.06  # it waited, it did not compute


def test_latency_is_not_measured_before_the_sinks(work: Work, tools: Tools) -> None:
    done = work(app(lambda event: event), tools.bundle([1, 2]))
    assert done.counters.latency.count == 0
    assert done.counters.busy_s > 0


def test_waiting_for_events_is_not_busy_time(driver: Driver, tools: Tools) -> None:
    def batches() -> Iterator[Any]:
        for number in range(3):
            time.sleep(0.03)
            yield tools.Batch([tools.bundle([1], first=number)])

    replica = OperatorReplica(driver.program(app(lambda event: event)), 1, "op", 0, 1)
    list(replica.run(batches()))
    assert replica._counters.processed == 3
    assert replica._counters.busy_s < 0.03


def test_a_slow_replica_sends_each_event_on_when_it_is_done(driver: Driver, tools: Tools) -> None:
    def slow(event: int) -> int:
        time.sleep(0.01)
        return event

    replica = OperatorReplica(driver.program(app(slow)), 1, "op", 0, 1)
    parts = [tools.left(rows).ids for rows in replica.run([tools.Batch([tools.bundle([1, 2, 3])])])]
    assert parts == [["0"], ["1"], ["2"]]


def test_what_waits_is_reported_as_queued(driver: Driver, tools: Tools) -> None:
    gate.clear()
    replica = OperatorReplica(driver.program(sink(pass_gate)), 1, "op", 0, 1)
    worker = threading.Thread(target=lambda: list(replica.run([tools.Batch([tools.bundle([1, 2, 3])])])))
    worker.start()
    tools.until(lambda: replica._counters.received)
    replica._agent.wake()
    tools.until(lambda: (counters := driver.latest("op")) and counters.queued == 3)
    gate.set()
    worker.join(5)
    tools.until(lambda: (driver.latest("op").queued, driver.latest("op").processed) == (0, 3))


def pass_gate(event: Any) -> None:
    gate.wait(5)


# ── routing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_real_time_follows_the_routing_in_force_and_micro_batch_that_of_its_program(
    driver: Driver, tools: Tools
) -> None:
    topology = app(lambda event: event)
    for realtime, partition in ((True, 2), (False, 0)):
        program = driver.program(topology, realtime=realtime)
        driver.server.publish(Routing(5, {"op": OperatorRouting((0,)), "end": OperatorRouting((2,))}))
        replica = OperatorReplica(program, 1, "op", 0, 1)
        tools.until(lambda: replica._agent.routing.version == 5)  # noqa: B023
        left = tools.left(*replica.run([tools.Batch([tools.bundle([1])])]))
        assert [row.partition for row in left.bundles] == [partition]
        assert left.nudged == [2] * realtime


def test_bundles_that_skip_a_stage_are_handed_on_untouched(tools: Tools) -> None:
    topology = Topology("skip", pool=2)
    first = topology.operator("first", len, inputs=topology.source("events"))
    second = topology.operator("second", len, inputs=first)
    third = topology.operator("third", len, inputs=second)
    topology.operator("end", len, inputs=[third, first])
    program = tools.program_of(topology)
    packed = tools.bundle(["a", "b"])
    packed = (2).to_bytes(2, "little") + (4).to_bytes(2, "little") + (1).to_bytes(4, "little") + packed[8:]
    batch = tools.Batch([packed, NUDGE])
    over_second = list(pass_by(program, 2, [batch, tools.Batch([NUDGE])]))
    assert len(over_second) == 1  # nudges alone are not handed on
    assert [row["partition"] for row in over_second[0].to_pylist()] == [2, 2]  # the way past stage 3, and a nudge
    over_third = list(pass_by(program, 3, over_second))
    rows = over_third[0].to_pylist()
    assert [(row["partition"], row["bundle"]) for row in rows] == [(1, packed), (1, NUDGE)]
