"""Events that fail because they, or what came of them, cannot be read or sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.plan.program import MicroBatch, Program
from penstock.engine.protocol.messages import Routing
from penstock.engine.worker.microbatch import send_rows
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.source_slot import SourceSlot
from penstock.errors import EngineError
from penstock.metrics.counters import ReplicaCounters
from penstock.sources import TraceSource
from penstock.sources.base import Undecoded
from penstock.topology import Topology
from penstock.workload import constant

from ..made import POOL, SparkBatch, by_id, parts, progress, with_letters

Driver = Any
Tools = SimpleNamespace


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def fan_out(*, readers: dict[str, dict[str, Any]], on_error: str = "dead_letter") -> Topology:
    """`op` and those that read it."""
    topology = Topology("app", pool=POOL)
    op = topology.operator("op", lambda event: event, inputs=topology.source("events"), on_error=on_error)
    for name, declared in readers.items():
        topology.operator(name, len, inputs=op, **declared)
    return with_letters(topology) if "dead_letter" in on_error else topology


def emitted(tools: Tools, topology: Topology, outputs: dict[str, list[Any]]) -> SimpleNamespace:
    """What leaves an outbox in which these outputs of events, by their ids, were put, and its counters."""
    program: Program = tools.program_of(topology)
    counters = ReplicaCounters(processed=len(outputs))
    outbox = Outbox(program, 1, "op", 0, counters)
    outbox.declare(topology["op"].outputs)
    for event_id, events in outputs.items():
        outbox.add_many(event_id, 0.0, events, (event_id, 0.0, f"event {event_id}"))
    rows = outbox.rows(Routing(1, dict(program.routing)))
    assert outbox.rows(Routing(1, dict(program.routing))) == []
    return SimpleNamespace(left=tools.left(rows), counters=counters)


BAD = [object(), {"deep": [{1, 2}, object()]}, 2**70, "\ud800"]


@pytest.mark.parametrize("bad", BAD, ids=["object", "nested", "large", "surrogate"])
def test_of_an_event_either_all_outputs_leave_or_none(tools: Tools, bad: Any) -> None:
    done = emitted(tools, fan_out(readers={"end": {}}), {"1": ["a", "b"], "2": ["c", bad, "d"], "3": ["e"]})
    good, letters = parts(done.left)
    assert good == {"1.0": "a", "1.1": "b", "3": "e"}
    assert letters.keys() == {"2.op"}
    assert letters["2.op"]["event"] == "event 2"
    assert letters["2.op"]["error"].startswith("cannot send ")
    assert letters["2.op"]["line"] == ""  # it is not the user's code that cannot encode it
    assert (done.counters.processed, done.counters.dropped) == (2, {"dead_letter": 1})
    assert done.counters.emitted == {"out": 3, "dead_letters": 1}
    assert done.counters.sent == {"end": 3, "rejects": 1}


@pytest.mark.parametrize("reader", [{"key": "word"}, {"grouping": "online_shuffle", "cost_by": "word"}])
def test_an_event_that_one_of_its_readers_cannot_get_is_sent_to_none(tools: Tools, reader: dict[str, Any]) -> None:
    topology = fan_out(readers={"end": {}, "other": reader})
    done = emitted(tools, topology, {"1": [{"word": "a"}], "2": [{"text": "b"}], "3": [{"word": "c"}, {"word": "d"}]})
    assert done.counters.sent == {"end": 3, "other": 3, "rejects": 1}
    assert (done.counters.processed, done.counters.dropped) == (2, {"dead_letter": 1})
    letter = by_id(done.left)["2.op"]
    assert letter["error"].startswith("cannot send {'text': 'b'} to 'other': grouping ")
    assert letter["error"].endswith("the event has no field 'word': {'text': 'b'}")


def test_the_line_of_a_key_function_is_that_of_the_function(tools: Tools) -> None:
    key: Any = lambda event: event["word"]  # noqa: E731
    done = emitted(tools, fan_out(readers={"end": {"key": key}}), {"1": [{"text": "b"}]})
    letter = by_id(done.left)["1.op"]
    assert letter["error"] == "cannot send {'text': 'b'} to 'end': KeyError: 'word'"
    assert letter["line"].startswith(f"{__file__}:{key.__code__.co_firstlineno}, in <lambda>: key")


def test_a_key_that_is_none_has_no_state(tools: Tools) -> None:
    topology = fan_out(readers={}, on_error="drop")
    count: Any = lambda event, state: None  # noqa: E731
    topology.operator("count", count, inputs="op", key="word")
    done = emitted(tools, topology, {"1": [{"word": None}], "2": [{"word": "a"}], "3": [{}]})
    assert (done.left.ids, done.counters.sent) == (["2"], {"count": 1})
    assert (done.counters.processed, done.counters.dropped) == (1, {"error": 2})


def test_the_others_go_where_they_would_have_gone(tools: Tools) -> None:
    """Choosing again would count events twice in the scheduler of an online shuffle."""
    topology = fan_out(readers={"end": {"grouping": "online_shuffle", "cost_by": "n"}}, on_error="drop")
    program = tools.program_of(topology, active={"end": (0, 1, 2)})
    outbox = Outbox(program, 1, "op", 0, ReplicaCounters())
    for number in range(9):
        outbox.add_one(str(number), 0.0, {"n": number, "bad": object() if number == 4 else None})
    left = tools.left(outbox.rows(Routing(1, dict(program.routing))))
    assert [(row.partition, row.ids) for row in left.bundles] == [
        (0, ["0", "3", "6"]),
        (1, ["1", "7"]),
        (2, ["2", "5", "8"]),
    ]


def test_dead_letters_that_cannot_be_sent_end_the_run(tools: Tools) -> None:
    topology = fan_out(readers={"end": {}})
    topology.replaced("rejects", key="city", grouping="fields")
    with pytest.raises(EngineError, match=r"operator 'op' .*: its dead letters cannot be sent: .* no field 'city'"):
        emitted(tools, topology, {"1": [object()]})


# ── sources ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_of_a_data_frame_that_cannot_be_sent_are_counted_apart(driver: Driver, tools: Tools) -> None:
    topology = Topology("app", pool=POOL)
    topology.operator(
        "end", len, inputs=topology.source("events", on_error="dead_letter"), key=lambda row: {1: 1, 3: 3}[row["v"]]
    )
    program = driver.program(with_letters(topology), microbatch=MicroBatch(12, "events"))
    batches = [pa.RecordBatch.from_pylist([{"v": 1}, {"v": 0}]), pa.RecordBatch.from_pylist([{"v": 3}])]
    good, letters = parts(tools.left(*send_rows(program, 5, 12, batches)))
    assert good == {"12-5-0": {"v": 1}, "12-5-2": {"v": 3}}
    assert letters["12-5-1.events"]["event"] == {"v": 0}
    assert letters["12-5-1.events"]["error"] == "cannot send it to 'end': KeyError: 0"
    tools.until(lambda: (one := driver.latest("events", 5)) and (one.processed, one.dropped) == (2, {"dead_letter": 1}))


def half_read(n: int) -> Any:
    return Undecoded(b"no \xe9", "no number") if n % 3 == 0 else n


@pytest.mark.parametrize("rule", ["drop", "dead_letter"])
def test_what_a_source_could_not_decode_is_left_out_and_counted_apart(driver: Driver, tools: Tools, rule: str) -> None:
    topology = Topology("app", pool=POOL)
    topology.operator("end", len, inputs=topology.source("events", on_error=rule))
    source = TraceSource(constant(1e6, 7e-6), [half_read(n) for n in range(7)])
    program = driver.program(
        with_letters(topology) if rule == "dead_letter" else topology, sources={"events": source}, progress=progress(1)
    )
    slot, batch, rows = SourceSlot(program, "events", 0, 3), SparkBatch(), []
    for one in slot.run(batch):
        rows.append(one)
        batch.end()
    good, letters = parts(tools.left(*rows))
    assert good == {"1": 1, "2": 2, "4": 4, "5": 5}
    if rule == "dead_letter":
        letter = {"operator": "events", "replica": 0, "event": "bm8g6Q==", "error": "no number", "line": ""}
        assert letters == {f"{n}.events": letter | {"id": str(n)} for n in (0, 3, 6)}
    assert (slot._counters.processed, sum(slot._counters.dropped.values()), slot._sent) == (4, 3, 7)


def test_without_a_rule_it_ends_the_run(driver: Driver) -> None:
    topology = Topology("app")
    declared = topology.source("events")
    topology.operator("end", len, inputs=declared)
    source = TraceSource(constant(1e6, 1e-6), [half_read(0)])
    program = driver.program(topology, sources={"events": source}, progress=progress(1))
    batch = SparkBatch()
    with pytest.raises(EngineError) as caught:
        list(SourceSlot(program, "events", 0, 3).run(batch))
    batch.end()
    assert str(caught.value) == f"{declared}: no number; on event 0: b'no \\xe9'"
