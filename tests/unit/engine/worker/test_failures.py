"""Events that fail: whatever fails, `on_error` says what becomes of them, and every one is counted once."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.plan.program import MicroBatch
from penstock.engine.protocol.bundle import HASH, Events, Keys
from penstock.engine.worker import failures
from penstock.engine.worker.failures import keep_rows, line_of, plain
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.replica import OperatorReplica
from penstock.errors import EngineError
from penstock.grouping.online_shuffle import Request
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import Topology

from ..made import POOL, InBulk, app, by_id, parts, sink, with_letters

Driver = Any
Tools = SimpleNamespace
Work = Any


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_PAUSE_S", 0.001)


def reciprocal(event: int) -> float:
    return 1 / event


# ── the operator itself ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dead_letter_says_what_failed_where_and_with_which_event(work: Work, tools: Tools) -> None:
    topology = with_letters(app(reciprocal, on_error="dead_letter"))
    done = work(topology, tools.bundle([1, 0, 2], first=40), replica=3)
    good, letters = parts(done.left)
    assert good == {"40": 1.0, "42": 0.5}
    line = reciprocal.__code__.co_firstlineno + 1
    assert letters == {
        "41.op": {
            "operator": "op",
            "replica": 3,
            "id": "41",
            "event": 0,
            "error": "ZeroDivisionError: division by zero",
            "line": f"{__file__}:{line}, in reciprocal: return 1 / event",
        }
    }
    assert (done.counters.processed, done.counters.dropped) == (2, {"dead_letter": 1})
    assert done.counters.emitted == {"out": 2, "dead_letters": 1}
    assert done.counters.sent == {"end": 2, "rejects": 1}


def test_a_dead_letter_is_born_when_its_event_was(work: Work, tools: Tools) -> None:
    done = work(with_letters(app(reciprocal, on_error="dead_letter")), tools.bundle([0], born=17.5))
    assert [row.born for row in done.left.bundles] == [[17.5]]


class Flaky:
    """Fails so many times for each event; keeps when it was called."""

    calls: list[tuple[str, ...]] = []  # noqa: RUF012 - shared with the copy that is shipped

    def __init__(self, times: int) -> None:
        self.times = times

    def open(self, context: Any) -> None:
        self.context = context
        Flaky.calls = []

    def process(self, event: int) -> int:
        Flaky.calls.append(self.context.event_ids)
        if Flaky.calls.count(self.context.event_ids) <= self.times:
            raise TimeoutError("not now")
        return event


class FlakyMany(Flaky):
    def process_many(self, events: list[int]) -> list[int]:
        return [self.process(event) for event in events]


@pytest.mark.parametrize("kind", [Flaky, FlakyMany])
def test_an_event_is_tried_again_as_often_as_the_operator_says(work: Work, tools: Tools, kind: Any) -> None:
    done = work(app(kind(3), on_error="retry:3"), tools.bundle([7, 8]))
    assert done.left.events == [7, 8]
    assert (done.counters.processed, done.counters.dropped) == (2, {})
    assert Flaky.calls == [("0",)] * 4 + [("1",)] * 4


@pytest.mark.parametrize("kind", [Flaky, FlakyMany])
def test_then_it_fails_the_run(work: Work, tools: Tools, kind: Any) -> None:
    topology = app(kind(3), on_error="retry:2")
    with pytest.raises(EngineError) as caught:
        work(topology, tools.bundle([7]))
    assert str(caught.value) == f"{topology['op']}: TimeoutError: not now; on event 0: 7"
    assert len(Flaky.calls) == 3


@pytest.mark.parametrize(("then", "dropped"), [("drop", {"error": 2}), ("dead_letter", {"dead_letter": 2})])
def test_or_what_else_is_said(work: Work, tools: Tools, then: str, dropped: dict[str, int]) -> None:
    topology = app(Flaky(3), on_error=f"retry:2,{then}")
    done = work(with_letters(topology) if then == "dead_letter" else topology, tools.bundle([7, 8]))
    assert (done.counters.processed, done.counters.dropped) == (0, dropped)
    assert len(Flaky.calls) == 6


def test_pauses_grow_and_have_an_end(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_PAUSE_S", 0.05)
    program = tools.program_of(app(reciprocal, on_error="retry:9"))
    pauses = list(Outbox(program, 1, "op", 0, ReplicaCounters()).failures.pauses_s())
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_many_at_once_only_the_ones_to_blame_become_dead_letters(driver: Driver, tools: Tools) -> None:
    program = driver.program(with_letters(app(InBulk(), on_error="dead_letter")))
    replica = OperatorReplica(program, 1, "op", 0, 1)
    replica._processing.at_once = 8
    good, letters = parts(tools.left(*replica.run([tools.Batch([tools.bundle([2, -1, 4, -1, 1])])])))
    assert good == {"0": 4, "2": 8, "4.0": 1, "4.1": 1}
    assert letters.keys() == {"1.op", "3.op"}
    assert (replica._counters.processed, replica._counters.dropped) == (3, {"dead_letter": 2})


class Lazily(InBulk):
    """Gives generators, which fail only when they are asked."""

    def process_many(self, events: list[int]) -> list[Any]:
        return [map((60).__floordiv__, (event, event - 1)) for event in events]


def test_a_generator_that_fails_after_a_call_for_many_fails_alone(work: Work, tools: Tools) -> None:
    """It used to end the run, whatever `on_error` said, with an error that named nothing."""
    done = work(app(Lazily(), on_error="drop"), tools.bundle([5, 1, 3]))
    assert done.left.ids == ["0.0", "0.1", "2.0", "2.1"]
    assert (done.counters.processed, done.counters.dropped) == (2, {"error": 1})


def test_a_sink_whose_dead_letters_are_read_is_still_a_sink(work: Work, tools: Tools) -> None:
    done = work(with_letters(sink(reciprocal, on_error="dead_letter")), tools.bundle([1, 0, 2]))
    assert done.counters.latency.count == 2
    assert list(by_id(done.left)) == ["1.op"]


# ── on arrival ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Point(msgspec.Struct):
    x: int


def double(event: Point) -> int:
    return 2 * event.x


class DoubleMany:
    def process(self, event: Point) -> int: ...

    def process_many(self, events: list[Point]) -> list[int]:
        return [2 * event.x for event in events]


@pytest.mark.parametrize("run", [double, DoubleMany()], ids=["one", "many"])
def test_of_a_bundle_only_the_events_of_another_type_fail(work: Work, tools: Tools, run: Any) -> None:
    """One event of another type used to end the run, and not to be named."""
    events = [{"x": 1}, {"x": "one"}, {"y": 2}, {"x": 3}, None]
    done = work(with_letters(app(run, on_error="dead_letter")), tools.bundle(events), tools.bundle([{"x": 9}], first=5))
    good, letters = parts(done.left)
    assert good == {"0": 2, "3": 6, "5": 18}
    assert [letters[f"{n}.op"]["event"] for n in (1, 2, 4)] == [{"x": "one"}, {"y": 2}, None]
    assert letters["1.op"]["error"] == "it is not Point: Expected `int`, got `str` - at `$.x`"
    assert (done.counters.processed, done.counters.dropped) == (3, {"dead_letter": 3})


def test_what_was_not_kept_of_a_bundle_does_not_fail(driver: Driver, tools: Tools) -> None:
    """It was dropped on arrival, and counted there."""
    replica = OperatorReplica(driver.program(app(double, on_error="drop")), 1, "op", 0, 1)
    replica._inbox = SimpleNamespace(finish=finished.append)  # type: ignore[assignment]
    arrival = SimpleNamespace(bundle=tools.bundle([{"x": 1}, {"y": 1}, {"x": 2}, {"y": 2}]), count=3)
    events = replica._decode(arrival)  # type: ignore[arg-type]
    assert (events.ids, events.events) == (["0", "2"], [Point(1), Point(2)])
    assert (replica._counters.dropped, finished) == ({"error": 1}, [1])


finished: list[int] = []


def test_a_bundle_that_is_broken_ends_the_run(work: Work, tools: Tools) -> None:
    """It is not the fault of an event: `on_error` has no say in it."""
    with pytest.raises(EngineError, match=r"a bundle of \d+ bytes is not as it was sent"):
        work(app(double, on_error="drop"), tools.bundle([{"x": 1}])[:-2])


@pytest.mark.parametrize(
    ("rows", "asked"), [([0, 1, 2, 3], [1, 3]), ([0, 2, 3], [1, 2]), ([0, 1], [1, 1]), ([3], [0, 0]), ([], [])]
)
def test_what_came_along_with_an_event_goes_with_the_next(rows: list[int], asked: list[int]) -> None:
    """A sender of the online shuffle waits for the answer to its request."""
    keys = Keys(0, np.arange(4, dtype=HASH).tobytes(), [Request(1, 0, 7, 0.5), Request(3, 0, 7, 0.5)])
    events = Events([str(n) for n in range(4)], [0.0] * 4, list(range(4)), keys)
    keep_rows(events, rows)
    assert (events.ids, events.events, len(events.born)) == ([str(n) for n in rows], rows, len(rows))
    assert events.keys is not None
    assert np.frombuffer(events.keys.hashes, HASH).tolist() == rows
    assert [one.event for one in events.keys.requests] == asked


# ── what is told ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_drops_are_logged_once_a_second_at_most(
    tools: Tools, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(failures, "time", SimpleNamespace(monotonic=lambda: now_s))
    topology = app(reciprocal, on_error="drop")
    mine = Outbox(tools.program_of(topology), 1, "op", 0, ReplicaCounters()).failures
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            mine.reject((str(number), 0.0, number), ValueError("no"))
        now_s = 100.9
        mine.tell()
        now_s = 101.0
        mine.tell()
        now_s = 105.0
        mine.tell()
    assert caplog.messages == [
        f"{topology['op']}: 1 dropped, the last one: ValueError: no; on event 0",
        f"{topology['op']}: 4 dropped, the last one: ValueError: no; on event 4",
    ]


def test_an_error_of_several_lines_is_told_in_one(tools: Tools) -> None:
    """What the driver reads of a trace ends with the line, and the event would have been lost."""
    topology = app(reciprocal)
    mine = Outbox(tools.program_of(topology), 1, "op", 0, ReplicaCounters()).failures
    with pytest.raises(EngineError) as caught:
        mine.reject(("7", 0.0, 0), ValueError("no\n[SQL: …]"))
    assert str(caught.value) == f"{topology['op']}: ValueError: no [SQL: …]; on event 7: 0"


class Hidden:
    def __repr__(self) -> str:
        return "hidden\ud800"


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ({"a": [1, 2.5, None, True]}, {"a": [1, 2.5, None, True]}),
        (Point(3), {"x": 3}),
        (b"caf\xc3\xa9", "café"),
        ({"png": b"\x89PNG"}, {"png": "iVBORw=="}),
        ({1: "one"}, {"1": "one"}),
        (2**70, str(2**70)),
        ({"a": Hidden()}, "{'a': hidden\\ud800}"),
    ],
)
def test_any_event_can_be_shown(event: Any, shown: Any) -> None:
    assert plain(event) == shown
    msgspec.msgpack.encode(plain(event))


def test_the_line_is_the_users_where_a_library_raised() -> None:
    def parse() -> Any:
        return json.loads("{")

    with pytest.raises(ValueError, match="Expecting") as caught:
        parse()
    line = parse.__code__.co_firstlineno + 1
    assert line_of(caught.value.__traceback__) == f'{__file__}:{line}, in parse: return json.loads("{{")'
    assert line_of(None) == ""


# ── all together ────────────────────────────────────────────────────────────────────────────────────────────────────


class Order(msgspec.Struct):
    n: int
    fate: str


FATES = ("good", "two", "none", "type", "raises", "lazy", "encode", "second of two", "key")


def fated(event: Order) -> Any:
    n, fate = event.n, event.fate
    if fate == "raises":
        raise ValueError("no")
    if fate == "lazy":
        return (1 // (1 - i) for i in range(2))
    outputs = {"none": None, "two": [{"n": n}, {"n": -n}], "encode": {"n": n, "x": object()}, "key": {"m": n}}
    return {**outputs, "second of two": [{"n": n}, {"n": object()}]}.get(fate, {"n": n})


class FatedMany:
    def process(self, event: Order) -> Any: ...

    def process_many(self, events: list[Order]) -> list[Any]:
        return [fated(event) for event in events]


generations = itertools.count(1)
RULES = ("drop", "dead_letter", "retry:1,drop", "retry:1,dead_letter")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fates=st.lists(st.sampled_from(FATES), max_size=30),
    sizes=st.lists(st.integers(1, 7), min_size=30, max_size=30),
    rule=st.sampled_from(RULES),
    many=st.booleans(),
)
def test_every_event_is_processed_or_dropped_or_a_dead_letter(
    driver: Driver, tools: Tools, fates: list[str], sizes: list[int], rule: str, many: bool
) -> None:
    topology = Topology("app", pool=POOL)
    run = FatedMany() if many else fated
    op = topology.operator("op", run, inputs=topology.source("events"), on_error=rule)
    topology.operator("end", len, inputs=op, key="n")
    topology = with_letters(topology) if "dead_letter" in rule else topology
    alone: Any = {"microbatch": MicroBatch(0, "events"), "generation": next(generations)}  # nothing of the last example
    replica = OperatorReplica(driver.program(topology, **alone), 1, "op", 0, 1)
    assert (replica._operator.many is not None) == many
    replica._processing.at_once = 4
    events: list[Any] = [{"n": n, "fate": fate} if fate != "type" else {"n": "x"} for n, fate in enumerate(fates)]
    good, letters = parts(tools.left(*replica.run(bundles_of(tools, events, sizes))))
    expected: dict[str, Any] = {}
    for n, fate in enumerate(fates):
        expected |= {"good": {f"{n}": {"n": n}}, "two": {f"{n}.0": {"n": n}, f"{n}.1": {"n": -n}}}.get(fate, {})
    assert good == expected
    bad = [n for n, fate in enumerate(fates) if fate not in ("good", "two", "none")]
    assert letters.keys() == ({f"{n}.op" for n in bad} if "dead_letter" in rule else set())
    assert all(letter["event"] == events[int(letter["id"])] for letter in letters.values())
    counters = replica._counters
    assert counters.processed == len(fates) - len(bad)
    assert sum(counters.dropped.values()) == len(bad)
    assert counters.sent.get("end", 0) == counters.emitted.get("out", 0) == len(expected)
    assert counters.sent.get("rejects", 0) == counters.emitted.get("dead_letters", 0) == len(letters)
    assert replica._inbox.waiting == 0


def bundles_of(tools: Tools, events: list[Any], sizes: list[int]) -> Iterator[Any]:
    first = 0
    for size in sizes:
        if first < len(events):
            yield tools.Batch([tools.bundle(events[first : first + size], first=first)])
        first += size
