"""Notes of room between two processes, over loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.protocol.ports import Ports
from penstock.engine.pull.post import Post, RoomNote
from penstock.errors import EngineError
from penstock.grouping import Room

Tools = SimpleNamespace
SECRET = b"s" * 32
NOTE = RoomNote(3, "count", 5, "clean", 1, 117, 4)


@pytest.fixture
def posts() -> Iterator[tuple[Post, Post]]:
    both = Post("127.0.0.1", SECRET), Post("127.0.0.1", SECRET)
    yield both
    for one in both:
        one.close()


def test_a_note_arrives_as_it_was_sent(posts: tuple[Post, Post], tools: Tools) -> None:
    here, there = posts
    assert there.received() == []
    here.send(NOTE, there.address)
    assert tools.until(there.received) == [NOTE]
    assert (NOTE.to, NOTE.room) == (("clean", 1), Room(117, 4))


def test_what_was_not_made_with_the_secret_is_passed_over(posts: tuple[Post, Post], tools: Tools) -> None:
    _, there = posts
    stranger = Post("127.0.0.1", b"t" * 32)
    stranger.send(NOTE, there.address)
    stranger.socket.sendto(b"", there.address)
    stranger.socket.sendto(msgspec.msgpack.encode(NOTE), there.address)
    posts[0].send(NOTE, there.address)
    assert tools.until(there.received) == [NOTE]
    stranger.close()


@given(st.binary(max_size=80))
def test_no_bytes_are_taken_for_a_note(data: bytes) -> None:
    here, there = Post("127.0.0.1", SECRET), Post("127.0.0.1", SECRET)
    here.socket.sendto(data, there.address)
    assert there.received() == []
    here.close()
    there.close()


def test_who_is_gone_is_no_trouble(posts: tuple[Post, Post]) -> None:
    here, there = posts
    there.close()
    for _ in range(3):
        here.send(NOTE, there.address)
    assert here.received() == []


def test_notes_come_to_one_of_the_ports_that_are_given(posts: tuple[Post, Post]) -> None:
    taken = posts[0].address[1]
    with pytest.raises(EngineError, match=rf"none of the ports {taken}-{taken} is free on 127\.0\.0\.1"):
        Post("127.0.0.1", SECRET, Ports(taken, taken))
    with contextlib.closing(Post("127.0.0.1", SECRET, Ports(taken, min(taken + 20, 65_535)))) as one:
        assert taken < one.address[1] <= taken + 20
