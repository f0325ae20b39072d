"""The sender's side of the online shuffle: what goes along with events, and what it makes of what it hears."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.engine.plan.program import Program
from penstock.engine.protocol.bundle import HASH, Events, Header, Keys, Unpacker, pack
from penstock.engine.protocol.messages import OnlineNews, OperatorRouting, ReplyOf, Routing, SketchOf
from penstock.engine.worker.outbox import Outbox
from penstock.engine.worker.wire import BUNDLE_EVENTS
from penstock.errors import EngineError
from penstock.grouping import stable_hash
from penstock.grouping.online_shuffle import OnlineShuffleOptions, Request, Sketch, Sketching
from penstock.metrics.counters import ReplicaCounters
from penstock.topology import To, Topology

Tools = SimpleNamespace
WINDOW_1 = OnlineShuffleOptions(window=1)


def same(event: object) -> object:
    return event


def chain(**receiver: Any) -> Topology:
    topology = Topology("chain", pool=4)
    first = topology.operator("first", same, inputs=topology.source("events"))
    topology.operator("second", same, inputs=first, **{"grouping": "online_shuffle", "cost_by": "size"} | receiver)
    return topology


def routing_of(program: Program, **active: tuple[int, ...]) -> Routing:
    changed = {name: OperatorRouting(replicas) for name, replicas in active.items()}
    return Routing(1, dict(program.routing) | changed)


def outbox_of(program: Program, replica: int = 0) -> Outbox:
    return Outbox(program, 1, "first", replica, ReplicaCounters())


def sketch_of(times_s: dict[int, float]) -> Sketch:
    """A sketch of events of these sizes."""
    hashes = [stable_hash(size) for size in times_s] * 2
    sketch, _ = Sketching(1, WINDOW_1).executed(0, hashes, [*times_s.values()] * 2)
    assert sketch is not None
    return sketch


def news(number: int, *said: SketchOf | ReplyOf) -> OnlineNews:
    sketches = [one for one in said if isinstance(one, SketchOf)]
    replies = [one for one in said if isinstance(one, ReplyOf)]
    return OnlineNews(0, 0, "first", 0, number, sketches, replies)


class Sent:
    """A bundle as its receiver sees it."""

    def __init__(self, partition: int, bundle: bytes) -> None:
        events = Unpacker()(bundle)
        assert events.keys is not None
        self.partition, self.events, self.keys = partition, events.events, events.keys
        self.hashes = np.frombuffer(events.keys.hashes, HASH).tolist()


def sent(outbox: Outbox, routing: Routing, *sizes: int, stream: str | None = None) -> list[Sent]:
    """What leaves when events of these sizes have been emitted."""
    for number, size in enumerate(sizes):
        event = {"size": size, "n": number}
        outbox.add_one(str(number), 0.0, event if stream is None else To(stream, event))
    rows = [row for batch in outbox.rows(routing) for row in batch.to_pylist()]
    return [Sent(row["partition"], row["bundle"]) for row in rows]


def requests(bundles: list[Sent]) -> list[tuple[int, Request]]:
    return [(one.partition, request) for one in bundles for request in one.keys.requests]


# ── what goes along ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bundle_has_the_senders_replica_and_the_hash_of_every_key(tools: Tools) -> None:
    program = tools.program_of(chain())
    bundles = sent(outbox_of(program, replica=3), routing_of(program, second=(0, 1)), 5, 6, 7, 8, 9)
    assert sorted(one.partition for one in bundles) == [0, 1]
    assert {one.keys.replica for one in bundles} == {3}
    for one in bundles:
        assert one.hashes == [stable_hash(event["size"]) for event in one.events]
    assert requests(bundles) == []


def test_a_request_names_the_place_in_its_own_bundle(tools: Tools) -> None:
    """Of all events the first k carry one; each bundle counts from 0."""
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program), routing_of(program, second=(2, 0))
    sent(outbox, routing, 1)  # the round is now at replica 0
    outbox.mail.deliver(news(1, *(SketchOf("second", replica, sketch_of({1: 0.1})) for replica in (0, 2))))
    found = requests(sent(outbox, routing, 1, 1, 1, 1))
    assert sorted((partition, one.event, one.replica, one.epoch) for partition, one in found) == [
        (0, 0, 0, 1),
        (2, 0, 2, 1),
    ]
    assert requests(sent(outbox, routing, 1, 1, 1, 1)) == []


def test_in_a_long_bundle_that_is_cut_a_request_stays_with_its_event(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program), routing_of(program, second=(0,))
    outbox.mail.deliver(news(1, SketchOf("second", 0, sketch_of({1: 0.1}))))
    first, second = sent(outbox, routing, *[1] * (BUNDLE_EVENTS + 5))
    assert ([one.event for one in first.keys.requests], second.keys.requests) == ([0], [])
    assert (len(first.hashes), len(second.hashes)) == (BUNDLE_EVENTS, 5)


def test_other_groupings_send_one_byte_more_than_before_and_no_keys(tools: Tools) -> None:
    program = tools.program_of(chain(grouping="shuffle", cost_by=None))
    outbox = outbox_of(program)
    outbox.add_one("0", 0.0, 7)
    (batch,) = outbox.rows(routing_of(program))
    (row,) = batch.to_pylist()
    assert Unpacker()(row["bundle"]).keys is None
    bare = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [7]))
    keyed = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [7], Keys(0, b"1234")))
    assert len(row["bundle"]) == len(bare) == len(keyed) - 8
    assert bare.endswith(b"\xc0")  # nil


def test_an_event_without_the_field_is_named(tools: Tools) -> None:
    topology = chain()
    program = tools.program_of(topology)
    outbox = outbox_of(program)
    outbox.add_one("1", 0.0, {"size": 1})
    outbox.add_one("2", 0.0, {"weight": 2})
    with pytest.raises(EngineError, match="the event has no field 'size'") as caught:
        outbox.rows(routing_of(program))
    assert str(caught.value).startswith(f"{topology['first']}: cannot send it to 'second': ")
    assert str(caught.value).endswith("; on event 2: {'weight': 2}")


def test_without_cost_by_all_events_have_one_key(tools: Tools) -> None:
    program = tools.program_of(chain(cost_by=None))
    (bundle,) = sent(outbox_of(program), routing_of(program), 1, 2, 3)
    assert len(set(bundle.hashes)) == 1


# ── what is heard ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_events_go_by_the_sketches_that_were_heard(tools: Tools) -> None:
    """A slow event goes to one replica, and three quick ones of the same time together to the other."""
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program), routing_of(program, second=(0, 1))
    sketch = sketch_of({1: 0.1, 3: 0.3})
    outbox.mail.deliver(news(1, SketchOf("second", 0, sketch), SketchOf("second", 1, sketch)))
    sent(outbox, routing, 1, 1)  # those with the requests
    outbox.mail.deliver(news(2, *(ReplyOf("second", replica, 1, 0.0) for replica in (0, 1))))
    bundles = sent(outbox, routing, *[3, 1, 1, 1] * 3)
    assert outbox.mail.states == {"second": "RUN"}
    assert {one.partition: sum(event["size"] for event in one.events) for one in bundles} == {0: 9, 1: 9}
    assert sorted(len(one.events) for one in bundles) != [6, 6]


def test_replies_correct_what_the_sender_believes(tools: Tools) -> None:
    """Replica 0 was half a second slower than thought: the next five events go to the other."""
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program), routing_of(program, second=(0, 1))
    outbox.mail.deliver(news(1, *(SketchOf("second", replica, sketch_of({1: 0.1})) for replica in (0, 1))))
    sent(outbox, routing, 1, 1)
    outbox.mail.deliver(news(2, ReplyOf("second", 0, 1, 0.5), ReplyOf("second", 1, 1, 0.0)))
    bundles = sent(outbox, routing, 1, 1, 1, 1)
    assert [(one.partition, len(one.events)) for one in bundles] == [(1, 4)]


def test_another_number_among_the_senders_does_not_lose_what_was_learnt(tools: Tools) -> None:
    """A grouping used to be made anew when a sender joined or left."""
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program, replica=1), routing_of(program, first=(0, 1), second=(0, 1))
    outbox.mail.deliver(news(1, *(SketchOf("second", replica, sketch_of({1: 0.1})) for replica in (0, 1))))
    sent(outbox, routing, 1, 1)
    for active in ((1,), (3, 2, 1), (2, 0)):  # the last without this one
        sent(outbox, routing_of(program, first=active, second=(0, 1)), 1)
        assert outbox.mail.states == {"second": "WAIT_ALL"}


def test_a_sketch_of_a_replica_that_is_not_active_is_used_when_it_becomes_active(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox, sketch = outbox_of(program), sketch_of({1: 0.1})
    outbox.mail.deliver(news(1, SketchOf("second", 0, sketch), SketchOf("second", 2, sketch)))
    assert requests(sent(outbox, routing_of(program, second=(0,)), 1))
    outbox.mail.deliver(news(2, ReplyOf("second", 0, 1, 0.0)))
    sent(outbox, routing_of(program, second=(0,)), 1)
    assert outbox.mail.states == {"second": "RUN"}
    found = requests(sent(outbox, routing_of(program, second=(0, 2)), 1, 1))
    assert sorted((partition, request.epoch) for partition, request in found) == [(0, 2), (2, 2)]


def test_until_all_have_sketched_events_go_round(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox, routing = outbox_of(program), routing_of(program, second=(0, 1))
    outbox.mail.deliver(news(1, SketchOf("second", 0, sketch_of({1: 0.1, 9: 0.9}))))
    bundles = sent(outbox, routing, 9, 1, 9, 1)
    assert outbox.mail.states == {"second": "ROUND_ROBIN"}
    assert {one.partition: [event["size"] for event in one.events] for one in bundles} == {0: [9, 9], 1: [1, 1]}


def test_streams_to_the_same_operator_share_what_is_known(tools: Tools) -> None:
    """Its replicas count a sender's time over all streams; two schedulers would each be told the time of both."""
    topology = Topology("split", pool=2)
    first = topology.operator("first", same, inputs=topology.source("events"), outputs=("news", "opinions"))
    both = [first["news"], first["opinions"]]
    topology.operator("second", same, inputs=both, grouping="online_shuffle", cost_by="size")
    program = tools.program_of(topology)
    outbox, routing = outbox_of(program), routing_of(program, second=(0, 1))
    outbox.declare(first.outputs)
    outbox.mail.deliver(news(1, *(SketchOf("second", replica, sketch_of({1: 0.1})) for replica in (0, 1))))
    asked = requests(sent(outbox, routing, 1, stream="news")) + requests(sent(outbox, routing, 1, stream="opinions"))
    assert sorted((partition, request.epoch) for partition, request in asked) == [(0, 1), (1, 1)]
    estimates = [request.estimate_s for _, request in asked]
    assert estimates == [pytest.approx(0.1)] * 2
