"""Bytes that were changed or cut on their way or on disk: an error of ours or nothing amiss, never a wrong result."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.engine.driver.records import Record, Records
from penstock.engine.options import RunOptions
from penstock.engine.protocol.bundle import Barrier, Events, Header, Unpacker, pack, pack_sign, read_checked
from penstock.engine.protocol.messages import (
    LENGTH,
    Done,
    Hello,
    Poll,
    Proof,
    Report,
    Reports,
    Routing,
    StartQuery,
    downward,
    frame,
    proof,
    upward,
)
from penstock.engine.run_file import FILE, run_file
from penstock.engine.worker.inbox import Inbox
from penstock.errors import EngineError, InputError
from penstock.metrics.counters import ReplicaCounters
from penstock.sinks import staging
from penstock.sinks.staging import Message, Staging
from penstock.state.files import StateFiles
from penstock.state.segments import Segment
from penstock.topology import Topology
from tests.waiting import LONG_S

from .made import role, routing

Driver = Any
Harm = Callable[[bytes], bytes]
Tools = SimpleNamespace


@st.composite
def harms(draw: st.DrawFn) -> Harm:
    """One byte is another, or all from one place on is cut off."""
    place, change = draw(st.floats(0, 1, exclude_max=True)), draw(st.integers(0, 255))

    def harm(data: bytes) -> bytes:
        at = int(place * len(data))
        return data[:at] if not change else data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]

    return harm


@pytest.fixture(scope="module", autouse=True)
def quick_disk() -> Iterator[None]:
    """Nothing here is to survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@contextmanager
def folder() -> Iterator[Path]:
    """A new one for every example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def harm_file(path: Path, harm: Harm) -> None:
    path.write_bytes(harm(path.read_bytes()))


# ── between workers ─────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = Events(["1", "2.0"], [1.5, 2.5], [{"word": "sea", "n": 3}, {"word": "dam", "n": 4}])
BUNDLES = [pack(Header(1, 0, 2, 3, 2), EVENTS), pack_sign(Header(1, 0, 2, 3, 0), Barrier(7))]


@given(st.sampled_from(BUNDLES), harms())
@settings(max_examples=400)
def test_a_bundle_that_was_harmed_is_not_taken(bundle: bytes, harm: Harm) -> None:
    """An amount with one bit changed would have been added up as if nothing was."""
    harmed = harm(bundle)
    assume(harmed != bundle)
    with pytest.raises(EngineError, match=r"a bundle of \d+ bytes is not as it was sent"):
        read_checked(harmed)


def test_a_replica_ends_when_a_bundle_was_harmed(tools: Tools) -> None:
    """Its query then starts again from the checkpoint."""
    good, bad = tools.bundle([1, 2]), tools.bundle([3])[:-1]
    inbox = Inbox([tools.Batch([good]), tools.Batch([bad])], ReplicaCounters(), ("events",), 1 << 20)
    inbox.start()
    taken = inbox.take()
    assert taken is not None
    assert Unpacker()(taken.bundle).events == [1, 2]
    with pytest.raises(EngineError, match="is not as it was sent"):
        inbox.take()


# ── between workers and driver ──────────────────────────────────────────────────────────────────────────────────────

REPORT = Report(0, 0, "clean", 0, ReplicaCounters(processed=5, received={"tweets": 7}))
UPWARD = [
    Hello("run", b"challenge"),
    Proof(b"answer"),
    Reports("host", 4711, 3, [REPORT], done=[Done(0, "clean", 0, 4, ReplicaCounters(), {"p": [1, "a"]}, part=[1])]),
    StartQuery(0, "tweets", 1),
]


@given(st.sampled_from([frame(one) for one in UPWARD]), harms())
def test_a_frame_that_was_harmed_is_a_message_or_a_value_error(data: bytes, harm: Harm) -> None:
    """That is what both ends of the channel expect."""
    for decoder in (upward, downward):
        try:
            decoder.decode(harm(data)[LENGTH.size :])
        except ValueError:
            continue


def received(connection: socket.socket) -> bytes:
    data = b""
    while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        data += connection.recv(1)
    return data[LENGTH.size :]


@pytest.mark.parametrize(
    "odd",
    [
        LENGTH.pack(3) + b"\xc1\xc1\xc1",
        LENGTH.pack(5000) + b"\x91" * 5000,
        frame(Poll(1)),
        frame(Reports("host", 1, 0, [Report(0, 0, "nobody", 9, ReplicaCounters())])),
    ],
    ids=["no message", "too deep", "not for a driver", "unheard of"],
)
def test_the_driver_hangs_up_on_one_who_says_what_cannot_be_and_hears_the_others(
    driver: Driver, tools: Tools, odd: bytes
) -> None:
    """Whatever its listener made of it: some ended in a traceback of asyncio's."""

    def hear(reports: Reports) -> list[Any]:
        if any(one.operator == "nobody" for one in reports.reports):
            raise KeyError("nobody")
        driver.heard.append(reports)
        return []

    driver.hear = hear
    with socket.create_connection(("127.0.0.1", driver.port), timeout=LONG_S) as connection:
        connection.sendall(frame(Hello(driver.run, b"c")))
        challenge = downward.decode(received(connection)).challenge
        connection.sendall(frame(Proof(proof(driver.secret, b"replica", challenge))))
        received(connection)
        connection.sendall(odd)
        while connection.recv(1 << 16):
            pass
    agent = driver.agent()
    agent.join(role(processed=3))
    tools.until(lambda: driver.latest("clean"))


@pytest.mark.parametrize(
    "odd", [LENGTH.pack(3) + b"\xc1\xc1\xc1", LENGTH.pack(5000) + b"\x91" * 5000], ids=["no message", "too deep"]
)
def test_an_agent_that_hears_what_cannot_be_connects_anew(driver: Driver, tools: Tools, odd: bytes) -> None:
    agent = driver.agent(report_every_s=0.05)
    tools.until(lambda: driver.server.answered(0))

    def say() -> None:
        for writer in driver.server._writers:
            writer.write(odd)

    driver.server._loop.call_soon_threadsafe(say)
    driver.server.publish(routing(3))
    tools.until(lambda: agent.routing == routing(3))
    agent.join(role(processed=3))
    tools.until(lambda: driver.latest("clean"))


def test_an_agent_lives_on_when_what_it_hears_cannot_be_followed(
    driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread ended, and the replica was never heard again."""
    agent = driver.agent(report_every_s=0.05)
    tools.until(lambda: driver.server.answered(0))
    follow, failed = agent._follow, []

    def fail_once(message: Any) -> None:
        if isinstance(message, Routing) and not failed:
            failed.append(message)
            raise KeyError("nobody")
        follow(message)

    monkeypatch.setattr(agent, "_follow", fail_once)
    driver.server.publish(routing(3))
    tools.until(lambda: agent.routing == routing(3))
    assert failed


# ── on disk ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PARTS = [(3, True, b"three" * 5), (9, True, b"nine"), (4, False, b"")]


@given(harms())
@settings(max_examples=200, deadline=None)
def test_a_segment_that_was_harmed_is_not_loaded(harm: Harm) -> None:
    """Replicas read it after the driver has checked it, and had no check of their own."""
    with folder() as path:
        files = StateFiles(path / "count")
        segment = files.write(Segment(3, 1, 0), PARTS)
        harm_file(path / "count" / segment.name, harm)
        with pytest.raises(EngineError, match="is not as it was written"):
            files.check([segment])
        try:
            found = files.load([3, 9], [segment])
        except EngineError:
            return
        assert {group: one.parts for group, one in found.items()} == {3: [PARTS[0][2]], 9: [PARTS[1][2]]}


@given(harms())
@settings(max_examples=200, deadline=None)
def test_state_that_was_harmed_on_its_way_to_its_new_owner_is_not_taken(harm: Harm) -> None:
    """What replicas hand over had no checksum at all."""
    with folder() as path:
        files = StateFiles(path / "count")
        with files.hand_over(0, 2, 1) as add:
            for part in PARTS:
                add(*part)
        harm_file(path / "count" / "moves" / "0-2-1.state", harm)
        try:
            found = dict(files.take(0, 2, 1, {3, 9, 4}))
        except EngineError:
            return
        assert found == {group: data for group, _, data in PARTS}


RECORD = Record(
    number=7,
    generation=2,
    at_s=1.5,
    cursors={"tweets/0": {"tweets-0": 1234567, "ä": None}},
    sent={"tweets/0": 987654},
    state={"count": [Segment(7, 2, 0, 100, 4711)]},
    parts={"store": {0: [[7, 2, "a.staged", 12, 99]]}},
)


@given(harms())
@settings(max_examples=400, deadline=None)
def test_a_record_that_was_harmed_is_refused_or_says_the_same(harm: Harm) -> None:
    """One digit of an offset more or less, and events were left out or done twice."""
    with folder() as path:
        Records(path).write(RECORD)
        harm_file(path / "7.json", harm)
        try:
            found = Records(path).last
        except InputError:
            return
        assert found == RECORD


@given(harms())
@settings(max_examples=400, deadline=None)
def test_a_run_file_that_was_harmed_is_refused_or_says_the_same(harm: Harm) -> None:
    topology = Topology("t", pool=2)
    topology.operator("o", print, inputs=topology.source("s"))
    with folder() as path:
        written = run_file(path, topology, RunOptions(), "abc123")
        written.write(path)
        harm_file(path / FILE, harm)
        try:
            found = run_file(path, topology, RunOptions(), "other")
        except InputError:
            return
        assert found == written


@given(harms())
@settings(max_examples=200, deadline=None)
def test_output_that_was_harmed_while_it_waited_is_not_published(harm: Harm) -> None:
    """What waits for its checkpoint was read back without a checksum."""
    with folder() as path:
        waiting = Staging(path, "0")
        waiting.add(1, 7, [Message("17.0", b'{"n": 1}'), Message("17.1", b'{"n": 2}', b"key")])
        waiting.seal()
        (staged,) = waiting.up_to(7)
        harm_file(path / staged.name, harm)
        with pytest.raises(EngineError, match="must be whole"):
            list(staging.read(path, staged))
