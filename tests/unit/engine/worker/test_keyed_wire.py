"""Sending to an operator with state: by owner, with hashes, and switches before the first event under a new table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.engine.protocol.bundle import HASH, Barrier, Header, Switch, Unpacker, read_header, read_sign
from penstock.engine.protocol.messages import OperatorRouting, Routing
from penstock.engine.worker.outbox import Outbox
from penstock.errors import EngineError
from penstock.grouping import stable_hash
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.topology import Topology

Tools = SimpleNamespace
WORDS = ["storm", "rain", "sun", "dam", "sea", "fog"]
BEFORE, AFTER = (0, 0, 0, 0), (0, 0, 2, 2)


def same(event: Any) -> Any:
    return event


def count(event: Any, state: dict[str, int]) -> None: ...


def words() -> Topology:
    """Two streams of one operator lead to the same one with state."""
    topology = Topology("words", pool=3)
    split = topology.operator("split", same, inputs=topology.source("lines"), outputs=("long", "short"))
    topology.operator("count", count, inputs=[split["long"], split["short"]], key="word", key_groups=4)
    return topology


def outbox_of(tools: Tools) -> Outbox:
    outbox = Outbox(tools.program_of(words()), 1, "split", 1, ReplicaCounters())
    outbox.declare(("long", "short"))
    outbox.begin({"count": Table(1, BEFORE)})
    return outbox


def routing(table: Table) -> Routing:
    return Routing(5, {"split": OperatorRouting((0,)), "count": OperatorRouting((0, 2), table=table)})


def bundles(rows: Any) -> list[tuple[int, bytes]]:
    return [(row["partition"], row["bundle"]) for batch in rows for row in batch.to_pylist()]


def emit(outbox: Outbox) -> None:
    for number, word in enumerate(WORDS):
        outbox.add_one(str(number), 0.0, {"word": word})


def test_events_go_to_the_owners_with_the_hashes_of_their_keys(tools: Tools) -> None:
    outbox = outbox_of(tools)
    outbox.begin({"count": Table(1, AFTER)})
    emit(outbox)
    found = {}
    for partition, bundle in bundles(outbox.rows(routing(Table(1, AFTER)))):
        events = Unpacker()(bundle)
        assert events.keys is not None
        assert events.keys.replica == 1
        hashes = np.frombuffer(events.keys.hashes, HASH).tolist()
        assert hashes == [stable_hash(event["word"]) for event in events.events]
        found |= {event["word"]: partition for event in events.events}
    assert found == {word: AFTER[stable_hash(word) % 4] for word in WORDS}


def test_switches_go_before_the_first_events_of_all_wires(tools: Tools) -> None:
    outbox = outbox_of(tools)
    table = Table(2, AFTER, before=BEFORE)
    emit(outbox)
    first, *others = bundles(outbox.rows(routing(table)))
    assert first[0] == 0  # the replica that loses groups
    assert read_header(first[1]) == Header(1, 1, 2, 0, 0)
    assert read_sign(first[1]) == Switch(2)
    assert all(read_header(bundle).events for _, bundle in others)
    emit(outbox)
    again = bundles(outbox.rows(routing(table)))
    assert all(read_header(bundle).events for _, bundle in again)  # once


def test_switches_leave_without_events(tools: Tools) -> None:
    outbox = outbox_of(tools)
    assert outbox.rows(routing(Table(1, BEFORE))) == []
    ((partition, bundle),) = bundles(outbox.rows(routing(Table(2, AFTER, before=BEFORE))))
    assert (partition, read_sign(bundle)) == (0, Switch(2))


def test_a_barrier_goes_behind_switches_and_events_to_every_replica_active_or_not(tools: Tools) -> None:
    """Two streams lead to the operator: each of its replicas gets one barrier."""
    outbox = outbox_of(tools)
    emit(outbox)
    all_ = bundles(outbox.rows(routing(Table(2, AFTER, before=BEFORE)), barrier=Barrier(7)))
    behind = [bundle for _, bundle in all_[-3:]]
    assert [read_header(bundle) for bundle in behind] == [Header(1, 1, 2, replica, 0) for replica in range(3)]
    assert [read_sign(bundle) for bundle in behind] == [Barrier(7)] * 3
    assert [bool(read_header(bundle).events) for _, bundle in all_[:-3]] == [False, True, True]


def test_news_older_than_the_table_of_the_batch_are_not_followed(tools: Tools) -> None:
    outbox = outbox_of(tools)
    outbox.begin({"count": Table(7, AFTER)})
    assert outbox.rows(routing(Table(6, BEFORE))) == []


def test_an_event_without_its_key_is_named(tools: Tools) -> None:
    outbox = outbox_of(tools)
    outbox.add_one("0", 0.0, {"text": "storm"})
    with pytest.raises(EngineError) as caught:
        outbox.rows(routing(Table(1, BEFORE)))
    said = str(caught.value)
    assert said.startswith("operator 'split' (test_keyed_wire.py:")
    assert "cannot send it to 'count': grouping 'key_groups': the event has no field 'word'" in said
    assert said.endswith("; on event 0: {'text': 'storm'}")
