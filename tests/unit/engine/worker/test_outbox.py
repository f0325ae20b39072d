"""What a replica emits: who gets it, under which id, and how it is counted."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.plan.layout import lay_out
from penstock.engine.plan.program import MicroBatch, Program
from penstock.engine.protocol.bundle import read_header
from penstock.engine.protocol.messages import OperatorRouting, Routing, Used, Utilisations
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.wire import BUNDLE_EVENTS
from penstock.errors import EngineError
from penstock.grouping import Sender, stable_hash
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import To, Topology

from .outbox_world import chain, outbox_of, routing_of, same

Tools = SimpleNamespace


def replicas_of(tools: Tools, rows: Any) -> dict[str, int]:
    """The partition that each event goes to, by id; in a chain it is the replica."""
    return {one: row.partition for row in tools.left(rows).bundles for one in row.ids}


# ── who gets it ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shuffle_takes_the_active_replicas_in_turn(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    for number in range(6):
        outbox.add_one(str(number), 0.0, number)
    to = replicas_of(tools, outbox.rows(routing_of(program, second=(6, 1, 3))))
    assert [to[str(number)] for number in range(6)] == [6, 1, 3, 6, 1, 3]


def test_fields_sends_a_key_to_the_replica_that_owns_it(tools: Tools) -> None:
    program = tools.program_of(chain(key="word"))
    outbox = outbox_of(program)
    words = ["storm", "rain", "sun", "storm", "sun"]
    for number, word in enumerate(words):
        outbox.add_one(str(number), 0.0, {"word": word})
    to = replicas_of(tools, outbox.rows(routing_of(program, second=(7, 2, 5))))
    assert [to[str(n)] for n in range(5)] == [(2, 5, 7)[stable_hash(word) % 3] for word in words]


def test_load_balancing_follows_the_published_utilisation(tools: Tools) -> None:
    program = tools.program_of(chain(grouping="load_balancing"))
    outbox = outbox_of(program)
    for number in range(4):
        outbox.add_one(str(number), 0.0, number)
    routing = Routing(1, dict(program.routing) | {"second": OperatorRouting((0, 1))})
    rows = outbox.rows(routing, Utilisations(1, {"second": Used({0: 0.9, 1: 0.1}, 0.01, 1)}))
    assert set(replicas_of(tools, rows).values()) == {1}


def test_a_new_set_of_replicas_is_followed_at_once(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    seen = []
    for active in ((0,), (4, 5), (2,)):
        for number in range(4):
            outbox.add_one(str(number), 0.0, number)
        seen.append(set(replicas_of(tools, outbox.rows(routing_of(program, second=active))).values()))
    assert seen == [{0}, {4, 5}, {2}]


def test_events_for_one_replica_travel_in_one_bundle_and_long_ones_are_cut(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    count = BUNDLE_EVENTS + 10
    for number in range(count):
        outbox.add_one(str(number), float(number), number)
    left = tools.left(outbox.rows(routing_of(program)))
    assert [row.header.events for row in left.bundles] == [BUNDLE_EVENTS, 10]
    assert left.ids == [str(n) for n in range(count)]
    assert [born for row in left.bundles for born in row.born] == [float(n) for n in range(count)]


def test_a_bundle_names_its_sender_and_where_it_is_to_end(tools: Tools) -> None:
    topology = Topology("skip", pool=2)
    first = topology.operator("first", same, inputs=topology.source("events"))
    second = topology.operator("second", same, inputs=first)
    topology.operator("end", same, inputs=[second, first])
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.add_one("7", 1.5, "x")
    to_second, to_end = tools.left(outbox.rows(routing_of(program, second=(1,), end=(1,)))).bundles
    sender = program.senders.index("first")
    assert (to_second.partition, to_second.header) == (1, (sender, 0, 2, 1, 1))
    assert (to_end.partition, to_end.header) == (2, (sender, 0, 3, 1, 1))  # partition 2 is the way past stage 2


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ids_after(tools: Tools, topology: Topology, emit: Callable[[Outbox], None]) -> list[str]:
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.declare(topology["first"].outputs)
    emit(outbox)
    return tools.left(outbox.rows(routing_of(program))).ids


def test_one_event_of_one_keeps_its_id(tools: Tools) -> None:
    assert ids_after(tools, chain(), lambda outbox: outbox.add_one("7", 0.0, "x")) == ["7"]
    assert ids_after(tools, chain(), lambda outbox: outbox.add_many("7", 0.0, ["x"])) == ["7"]
    assert ids_after(tools, chain(), lambda outbox: outbox.add_many("7", 0.0, iter([]))) == []


def test_many_events_of_one_are_numbered(tools: Tools) -> None:
    assert ids_after(tools, chain(), lambda outbox: outbox.add_many("7", 0.0, iter("abc"))) == ["7.0", "7.1", "7.2"]


def test_every_reader_of_a_stream_gets_an_id_of_its_own(tools: Tools) -> None:
    topology = chain()
    topology.operator("other", same, inputs="first")
    assert ids_after(tools, topology, lambda outbox: outbox.add_one("7", 0.0, "x")) == ["7.0", "7.1"]
    many = ids_after(tools, topology, lambda outbox: outbox.add_many("7", 0.0, "ab"))
    assert sorted(many) == ["7.0.0", "7.0.1", "7.1.0", "7.1.1"]


def test_an_event_for_a_stream_that_nobody_reads_is_emitted_and_goes_nowhere(tools: Tools) -> None:
    topology = Topology("sink")
    topology.operator("first", same, inputs=topology.source("events"))
    program = tools.program_of(topology)
    counters = ReplicaCounters()
    outbox = Outbox(program, 1, "first", 0, counters)
    outbox.declare(("out",))
    outbox.add_one("7", 0.0, "x")
    assert outbox.rows(routing_of(program)) == []
    assert (counters.emitted, counters.sent) == ({"out": 1}, {})


STREAMS = ("out", "more", "rest")


@st.composite
def layered(draw: st.DrawFn) -> Topology:
    """Operators in a row of levels, each reading any streams of any that were declared before it."""
    topology = Topology("layered", pool=2)
    streams = ["events"]
    for number in range(draw(st.integers(1, 6))):
        inputs = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=3, unique=True))
        outputs = STREAMS[: draw(st.integers(1, 3))]
        topology.operator(f"o{number}", same, inputs=inputs, outputs=outputs)
        streams += [f"o{number}.{stream}" for stream in outputs]
    topology.source("events")
    return topology


def delivered(tools: Tools, topology: Topology, seed: int) -> dict[str, list[str]]:
    """The ids that each operator gets when each event makes none to three others, on streams that its id decides."""
    program = tools.program_of(topology, microbatch=MicroBatch(0, "events"))
    got: dict[str, list[str]] = {name: [] for name in topology.operators}
    source = outbox_of(program, "events", level=0)
    for number in range(4):
        source.add_one(str(number), 0.0, None)
    routing = routing_of(program, **dict.fromkeys(topology.operators, (0, 1)))
    rows = [source.rows(routing)]
    for name in topology.in_order():
        level = topology.level(name)
        for row in tools.left(*rows).bundles:
            slot = program.layout.stages[row.header.level][row.header.partition]
            if slot.operator == name:
                got[name] += row.ids
        outbox = outbox_of(program, name, level=level)
        outbox.declare(topology[name].outputs)
        for one in got[name]:
            made = stable_hash([seed, name, one])
            outputs = topology[name].outputs
            outbox.add_many(one, 0.0, [To(outputs[(made >> n) % len(outputs)], n) for n in range(made % 4)])
        rows.append(outbox.rows(routing))
    return got


@settings(max_examples=60)
@given(topology=layered(), seed=st.integers(0, 1000))
def test_ids_are_unique_in_every_operator_and_the_same_when_repeated(
    tools: Tools, topology: Topology, seed: int
) -> None:
    got = delivered(tools, topology, seed)
    for name, ids in got.items():
        assert len(set(ids)) == len(ids), name
    assert delivered(tools, topology, seed) == got


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_stream_is_an_error_that_names_the_known_ones(tools: Tools) -> None:
    topology = Topology("split")
    first = topology.operator("first", same, inputs=topology.source("events"), outputs=("news", "opinions"))
    topology.operator("end", same, inputs=[first["news"], first["opinions"]])
    outbox = outbox_of(tools.program_of(topology))
    outbox.declare(first.outputs)
    with pytest.raises(EngineError) as caught:
        outbox.add_one("7", 0.0, To("gossip", "x"))
    assert str(caught.value) == f"{first}: emits to 'gossip'; its streams are news, opinions"


@pytest.mark.parametrize("bad", [object(), {"when": {1, object()}}, 2**70], ids=["object", "nested", "large"])
def test_an_event_that_cannot_be_encoded_is_named(tools: Tools, bad: object) -> None:
    topology = chain()
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.add_one("1", 0.0, "good")
    outbox.add_one("2", 0.0, bad)
    with pytest.raises(EngineError) as caught:
        outbox.rows(routing_of(program))
    assert str(caught.value).startswith(f"{topology['first']}: cannot send it to 'second': ")
    assert str(caught.value).endswith(f"; on event 2: {bad!r}")


def test_an_event_without_the_key_is_named(tools: Tools) -> None:
    topology = chain(key="word")
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.add_one("1", 0.0, {"word": "storm"})
    outbox.add_one("2", 0.0, {"text": "rain"})
    with pytest.raises(EngineError, match="no field 'word'") as caught:
        outbox.rows(routing_of(program))
    assert str(caught.value).endswith("; on event 2: {'text': 'rain'}")


def test_a_key_function_that_raises_names_operator_error_and_event(tools: Tools) -> None:
    """What a user's key function raised, a KeyError say, used to come out bare, and named nothing."""
    topology = chain(key=lambda event: event["word"])
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.add_one("1", 0.0, {"word": "storm"})
    outbox.add_one("2", 0.0, {"text": "rain"})
    with pytest.raises(EngineError) as caught:
        outbox.rows(routing_of(program))
    expected = f"{topology['first']}: cannot send it to 'second': KeyError: 'word'; on event 2: {{'text': 'rain'}}"
    assert str(caught.value) == expected


# ── rows and counters ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_leaves_together_is_one_batch_of_rows_a_bundle_in_each(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    for number in range(2 * BUNDLE_EVENTS + 20):
        outbox.add_one(str(number), 0.0, number)
    (rows,) = outbox.rows(routing_of(program, second=(3, 5)))
    assert rows.column(0).to_pylist() == [3, 3, 5, 5]
    assert len(tools.left(rows).events) == 2 * BUNDLE_EVENTS + 20


def test_where_lines_lead_to_replicas_nothing_is_left_for_spark(tools: Tools) -> None:
    program, sent = tools.program_of(chain()), list[tuple[int, bytes]]()
    outbox = outbox_of(program)
    outbox.lines = SimpleNamespace(send=sent.extend)  # type: ignore[assignment]
    outbox.add_one("1", 0.0, "x")
    assert outbox.rows(routing_of(program, second=(3,))) == []
    assert [(partition, read_header(bundle).events) for partition, bundle in sent] == [(3, 1)]


def test_nothing_leaves_when_nothing_was_emitted_and_nothing_leaves_twice(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    assert outbox.rows(routing_of(program)) == []
    outbox.add_one("1", 0.0, "x")
    assert tools.left(outbox.rows(routing_of(program))).ids == ["1"]
    assert outbox.rows(routing_of(program)) == []


def test_emitted_counts_by_stream_and_sent_by_reader(tools: Tools) -> None:
    topology = Topology("split", pool=2)
    first = topology.operator("first", same, inputs=topology.source("events"), outputs=("news", "opinions"))
    topology.operator("one", same, inputs=[first["news"], first["opinions"]])
    topology.operator("other", same, inputs=first["news"])
    program = tools.program_of(topology)
    counters = ReplicaCounters()
    outbox = Outbox(program, 1, "first", 0, counters)
    outbox.declare(first.outputs)
    outbox.add_one("1", 0.0, "plain")  # to the first stream
    outbox.add_many("2", 0.0, [To("news", "a"), To("opinions", "b"), "c"])
    sent = {"one": 4, "other": 3}
    assert (counters.emitted, counters.sent) == ({"news": 3, "opinions": 1}, sent)  # what waits to leave counts, too
    outbox.rows(routing_of(program))
    assert counters.emitted == {"news": 3, "opinions": 1}
    assert counters.sent == {"one": 4, "other": 3}


@pytest.mark.parametrize(("active", "sent_to"), [((0, 3), {0}), ((3,), {0, 1})])
def test_replicas_that_only_another_shift_has_get_nothing(
    tools: Tools, active: tuple[int, ...], sent_to: set[int]
) -> None:
    """While a shift finishes what it has, the routing may name replicas of the next one's pools."""
    topology = Topology("t", pool=4)
    topology.operator("o", same, inputs=topology.source("events"))
    layout = lay_out(topology, {"o": [0, 1]})
    program = tools.program_of(topology, layout=layout)
    outbox = Outbox(program, 0, "events", 0, ReplicaCounters())
    for number in range(6):
        outbox.add_one(str(number), 0.0, number)
    left = tools.left(outbox.rows(Routing(2, {"o": OperatorRouting(active)})))
    assert {row.partition for row in left.bundles} <= sent_to
    assert sorted(left.events) == list(range(6))


# ── who is choosing ─────────────────────────────────────────────────────────────────────────────────────────────────


def numbers_of(program: Program, routing: Routing, receiver: str, level: int) -> list[Sender]:
    """What every replica that sends to the operator takes for its own number."""
    edges = {name: next(e for e in out if e.receiver == receiver) for name, out in program.edges.items() if out}
    senders = next(iter(edges.values())).senders
    found = []
    for name in senders:
        slots = [slot.replica for slot in program.layout.stages[0] if slot.operator == name]
        for replica in routing.operators[name].active if name in routing.operators else slots:
            outbox = outbox_of(program, name, replica, level)
            wire = next(wire for wire in outbox._all if wire.edge.receiver == receiver)
            found.append(wire._among(routing, name))
    return found


@settings(max_examples=40)
@given(
    left=st.permutations(range(8)).flatmap(lambda order: st.integers(1, 8).map(lambda n: tuple(order[:n]))),
    right=st.permutations(range(8)).flatmap(lambda order: st.integers(1, 8).map(lambda n: tuple(order[:n]))),
    slots=st.integers(1, 3),
)
def test_all_who_send_to_an_operator_have_different_numbers(
    tools: Tools, left: tuple[int, ...], right: tuple[int, ...], slots: int
) -> None:
    """A source's slots used to be left out of an operator's count when both sent to the same receiver."""
    topology = Topology("union", pool=8)
    events = topology.source("events")
    topology.operator("left", same, inputs=events)
    topology.operator("right", same, inputs=events)
    topology.operator("end", same, inputs=["left", "events", "right"])
    program = tools.program_of(topology, slots=slots)
    found = numbers_of(program, routing_of(program, left=left, right=right), "end", level=1)
    count = len(left) + len(right) + slots
    assert found == [Sender(number, count) for number in range(count)]


def test_two_sources_with_several_slots_have_different_numbers(tools: Tools) -> None:
    topology = Topology("two")
    topology.operator("end", same, inputs=[topology.source("one"), topology.source("other")])
    program = tools.program_of(topology, slots=3)
    found = numbers_of(program, routing_of(program), "end", level=0)
    assert found == [Sender(number, 6) for number in range(6)]


def test_a_replica_that_is_no_longer_active_still_sends_what_it_has(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program, replica=7)
    outbox.add_one("1", 0.0, "x")
    rows = outbox.rows(routing_of(program, first=(0, 1), second=(0, 3)))
    assert set(replicas_of(tools, rows).values()) <= {0, 3}
