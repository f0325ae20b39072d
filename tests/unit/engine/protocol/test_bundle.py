"""A bundle: its header alone, and its events in the type that the receiver wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.protocol.bundle import (
    Barrier,
    Events,
    Header,
    Switch,
    Unpacker,
    pack,
    pack_sign,
    read_header,
    read_sign,
)

small = st.integers(0, 2**16 - 1)
large = st.integers(0, 2**32 - 1)
values = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
payloads = st.recursive(values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


class Tweet(msgspec.Struct):
    text: str


@dataclass
class Query:
    name: str
    size: int = 0


headers = st.builds(Header, small, small, small, large, st.just(0))


@given(headers, st.lists(st.tuples(st.text(), st.floats(allow_nan=False), payloads)))
def test_what_is_packed_comes_back(header: Header, rows: list[tuple[str, float, Any]]) -> None:
    header = header._replace(events=len(rows))
    ids, born, events = ([row[column] for row in rows] for column in range(3))
    packed = pack(header, Events(ids, born, events))
    assert read_header(packed) == header
    assert Unpacker()(packed) == Events(ids, born, events)


@given(headers, st.sampled_from([Switch, Barrier]), st.integers(0, 2**63))
def test_switches_and_barriers_are_told_apart(header: Header, kind: type[Switch | Barrier], number: int) -> None:
    packed = pack_sign(header, kind(number))
    assert read_header(packed) == header
    assert read_sign(packed) == kind(number)
    assert type(read_sign(packed)) is kind


@pytest.mark.parametrize("sent", [Tweet("storm"), {"text": "storm"}, {"text": "storm", "language": "en"}])
def test_a_typed_receiver_gets_its_type_whatever_was_sent(sent: object) -> None:
    packed = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [sent]))
    assert Unpacker(Tweet)(packed).events == [Tweet("storm")]


def test_a_dataclass_travels_as_its_fields() -> None:
    packed = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [Query("a.example", 3)]))
    assert Unpacker()(packed).events == [{"name": "a.example", "size": 3}]
    assert Unpacker(Query)(packed).events == [Query("a.example", 3)]


def test_an_event_of_another_type_is_refused() -> None:
    packed = pack(Header(0, 0, 1, 0, 1), Events(["0"], [0.0], [{"words": 3}]))
    with pytest.raises(msgspec.ValidationError, match="missing required field `text`"):
        Unpacker(Tweet)(packed)


@pytest.mark.parametrize(
    "header", [Header(2**16, 0, 0, 0, 0), Header(0, 2**16, 0, 0, 0), Header(0, 0, 0, 2**32, 0), Header(-1, 0, 0, 0, 0)]
)
def test_a_header_out_of_bounds_is_never_sent_cut_short(header: Header) -> None:
    with pytest.raises(Exception, match=r"format requires|argument out of range"):
        pack(header, Events([], [], []))
