"""How much leaves at once: bundles are bounded in bytes, and sources take in no more than fits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.protocol.bundle import Events, Header, pack
from penstock.engine.worker import wire

from ..conftest import left, program_of
from .outbox_world import chain, outbox_of, routing_of

Tools = SimpleNamespace
MB = 1 << 20


def bundles_of(rows: list[Any]) -> list[bytes]:
    return [row["bundle"] for batch in rows for row in batch.to_pylist()]


def test_bundles_of_large_events_are_bounded_in_bytes(tools: Tools) -> None:
    """2,000 events of 100 KB were one row of 200 MB, in executors that have 512 MB."""
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    for number in range(200):
        outbox.add_one(str(number), 0.0, b"x" * 100_000)
    rows = outbox.rows(routing_of(program))
    assert max(len(bundle) for bundle in bundles_of(rows)) <= MB
    assert max(batch.nbytes for batch in rows) <= 5 * MB
    assert tools.left(rows).ids == [str(n) for n in range(200)]


def test_an_event_larger_than_a_bundle_travels_alone(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    for number, size in enumerate((10, 3 * MB, 10, 6 * MB, 10)):
        outbox.add_one(str(number), 0.0, b"x" * size)
    rows = outbox.rows(routing_of(program))
    large = [len(bundle) for bundle in bundles_of(rows) if len(bundle) > MB]
    assert [size // MB for size in large] == [3, 6]
    assert tools.left(rows).ids == list("01234")


def test_large_events_are_encoded_about_once(tools: Tools) -> None:
    """How many fit is learnt from the bundle before: only the first is packed more than once."""
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    encoded: list[int] = []

    def encode(header: Header, events: Events[Any]) -> bytes:
        encoded.append(len(events.ids))
        return pack(header, events)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "pack", encode)
        for turn in range(20):
            for number in range(50):
                outbox.add_one(f"{turn}-{number}", 0.0, b"x" * 50_000)
            outbox.rows(routing_of(program))
    assert sum(encoded) <= 1100


@given(st.lists(st.sampled_from([0, 100, 5_000, 200_000, 2 * MB]), max_size=60), st.booleans())
@settings(max_examples=20, deadline=None)
def test_whatever_the_sizes_all_events_leave_once_in_order_and_bounded(sizes: list[int], keyed: bool) -> None:
    topology = chain(key="n") if keyed else chain()
    program = program_of(topology)
    outbox = outbox_of(program)
    for number, size in enumerate(sizes):
        outbox.add_one(str(number), 0.0, {"n": 1, "data": b"x" * size})
    rows = outbox.rows(routing_of(program))
    assert left(rows).ids == [str(n) for n in range(len(sizes))]
    for row, bundle in zip(left(rows).bundles, bundles_of(rows), strict=True):
        assert len(bundle) <= MB or len(row.ids) == 1


def test_a_source_takes_in_fewer_events_at_once_when_they_are_large(tools: Tools) -> None:
    program = tools.program_of(chain())
    outbox = outbox_of(program)
    rooms = [outbox.room()]
    for size in (100, 400_000, 64 * MB, 100):
        outbox.add_one("0", 0.0, b"x" * size)
        outbox.rows(routing_of(program))
        rooms.append(outbox.room())
    assert rooms[0] * 100_000 < 200 * MB
    assert rooms[1] > 4000
    assert 10 <= rooms[2] <= 50
    assert rooms[3] == 1
    assert rooms[4] > 4000
