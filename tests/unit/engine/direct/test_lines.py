"""Bundles straight from replica to replica, over loopback, plain and under TLS: order, secrets, who is slow or gone."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.direct import receiver, sender
from penstock.engine.direct.greeting import Addressee, Greeting
from penstock.engine.direct.receiver import Listener
from penstock.engine.direct.sender import Lines
from penstock.engine.driver.credential import make_credential
from penstock.engine.plan.layout import full_layout
from penstock.engine.plan.program import DriverAddress, Program
from penstock.engine.protocol.messages import LENGTH, Address
from penstock.engine.protocol.ports import Ports
from penstock.engine.protocol.tls import Credential, client_side
from penstock.errors import EngineError
from penstock.topology import ReplicaId, Topology

from ..made import CREDENTIAL

Tools = SimpleNamespace
SECRET = b"s" * 32
GENERATION = 3
PLAIN = DriverAddress("127.0.0.1", 1, SECRET, 60.0)
TLS = replace(PLAIN, credential=CREDENTIAL)


class Receiver:
    """A replica that listens: what has come, and what went wrong."""

    def __init__(self, replica: int = 0, driver: DriverAddress = PLAIN) -> None:
        self.listener = Listener("127.0.0.1", driver, Addressee("run", GENERATION, "op", replica))
        self.came: list[bytes] = []
        self.faults: list[BaseException] = []
        self.open = threading.Event()  # it takes what comes
        self.open.set()
        self.listener.start(self._arrive, self.faults.append)

    def _arrive(self, bundle: bytes) -> None:
        assert self.open.wait(30)
        self.came.append(bundle)


class World:
    """Two replicas of `op`, and whoever sends to them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.receivers = [Receiver(0, program.driver), Receiver(1, program.driver)]
        self.places: dict[ReplicaId, Address] = {
            ("op", number): one.listener.address for number, one in enumerate(self.receivers)
        }
        self.over = False
        self._made: list[Lines] = []

    @property
    def encrypted(self) -> bool:
        return self.program.driver.credential is not None

    def lines(self, **changed: object) -> Lines:
        program = replace(self.program, **changed)  # type: ignore[arg-type]
        made = Lines(program, lambda: self.places, lambda: self.over)
        self._made.append(made)
        return made

    def close(self) -> None:
        for lines in self._made:
            lines.close()
        for one in self.receivers:
            one.open.set()
            one.listener.close()


def program(tools: Tools, driver: DriverAddress = PLAIN) -> Program:
    topology = Topology("app", pool=2)
    topology.operator("op", len, inputs=topology.source("events"))
    made: Program = tools.program_of(topology, generation=GENERATION, layout=full_layout(topology))
    return replace(made, driver=driver)


@pytest.fixture(params=[PLAIN, TLS], ids=["plain", "tls"])
def world(tools: Tools, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(program(tools, request.param))
    yield world
    world.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LOOK_S", 0.02)
    monkeypatch.setattr(sender, "BROKEN_S", 0.2)


def test_each_replica_gets_its_own_in_order(world: World, tools: Tools) -> None:
    rows = [(number % 2, b"%d" % number) for number in range(1000)]
    lines = world.lines()
    for start in range(0, len(rows), 7):
        lines.send(rows[start : start + 7])
    for partition, one in enumerate(world.receivers):
        mine = [bundle for to, bundle in rows if to == partition]
        tools.until(lambda one=one, mine=mine: len(one.came) == len(mine))
        assert one.came == mine


def test_a_bundle_may_be_empty_or_larger_than_what_is_read_at_once(world: World, tools: Tools) -> None:
    large = bytes(range(256)) * 12_000
    world.lines().send([(0, b""), (0, large), (0, b"last")])
    tools.until(lambda: len(world.receivers[0].came) == 3)
    assert world.receivers[0].came == [b"", large, b"last"]


def test_a_receiver_that_is_slow_lets_its_senders_wait(world: World, tools: Tools, impatient: None) -> None:
    """Nothing is lost, and what one sender has sent before others see it is bounded by what the system holds back."""
    slow, total = world.receivers[0], 64
    slow.open.clear()
    lines, sent = world.lines(), []

    def send() -> None:
        for number in range(total):
            lines.send([(0, bytes([number]) * (1 << 20))])
            sent.append(number)

    thread = threading.Thread(target=send)
    thread.start()
    tools.until(lambda: len(sent) > 0)
    assert len(sent) < total
    slow.open.set()
    thread.join(60)
    tools.until(lambda: len(slow.came) == total)
    assert [bundle[0] for bundle in slow.came] == list(range(total))


def test_who_waits_for_a_receiver_goes_when_the_attempt_is_over(world: World, impatient: None) -> None:
    world.receivers[0].open.clear()
    threading.Timer(0.2, lambda: setattr(world, "over", True)).start()
    world.lines().send([(0, bytes(1 << 20))] * 256)  # more than is ever held back
    assert world.over


def test_a_broken_connection_ends_the_attempt_and_names_the_receiver(
    world: World, tools: Tools, impatient: None
) -> None:
    lines = world.lines()
    lines.send([(1, b"arrives")])
    tools.until(lambda: world.receivers[1].came)
    world.receivers[1].listener.close()
    with pytest.raises(EngineError, match=r"the connection to op/1 broke: (\w*(Reset|Pipe)|SSLEOF)Error"):
        _send_for_ever(lines)


def _send_for_ever(lines: Lines) -> None:
    while True:
        lines.send([(1, b"lost")])


def test_a_connection_that_breaks_as_the_attempt_ends_is_no_fault(world: World, tools: Tools, impatient: None) -> None:
    lines = world.lines()
    lines.send([(1, b"arrives")])
    tools.until(lambda: world.receivers[1].came)
    world.receivers[1].listener.close()
    world.over = True
    for _ in range(10):
        lines.send([(1, b"to nobody")])


def test_a_receiver_that_has_not_said_where_it_is_is_waited_for(
    world: World, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = world.places.pop(("op", 0))
    threading.Timer(0.1, lambda: world.places.update({("op", 0): address})).start()
    world.lines().send([(0, b"found")])
    tools.until(lambda: world.receivers[0].came)
    monkeypatch.setattr(sender, "FOUND_WITHIN_S", 0.1)
    del world.places["op", 1]
    with pytest.raises(EngineError, match=r"where op/1 listens was not heard within 0\.1 s"):
        world.lines().send([(1, b"nowhere")])


@pytest.mark.parametrize("changed", [{"generation": GENERATION - 1}, {"run": "another"}])
def test_senders_of_another_attempt_are_not_listened_to(
    world: World, changed: dict[str, object], impatient: None
) -> None:
    """A worker of an attempt that was given up may still send when it comes back."""
    with pytest.raises(EngineError, match=r"op/0 cannot be reached: ConnectionError: it hung up; workers must be able"):
        world.lines(**changed).send([(0, b"late")])
    assert world.receivers[0].came == []


def test_neither_side_talks_to_who_does_not_know_the_secret(world: World, tools: Tools, impatient: None) -> None:
    stranger = world.lines(driver=replace(world.program.driver, secret=b"t" * 32))
    with pytest.raises(EngineError, match="op/0 cannot be reached: ConnectionError: it hung up"):
        stranger.send([(0, b"forged")])
    world.places["op", 0] = _impostor()
    refused = "SSLError: .*WRONG_VERSION" if world.encrypted else "ConnectionError: it does not hold the run's secret"
    with pytest.raises(EngineError, match=f"op/0 cannot be reached: {refused}"):
        world.lines().send([(0, b"secret")])
    assert world.receivers[0].came == []


def _impostor() -> Address:
    """Someone who listens where a replica should, and answers anything."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with server, connection, contextlib.suppress(OSError):
            connection.sendall(bytes(32))
            connection.recv(4096)
            connection.sendall(bytes(32))
            connection.recv(4096)

    threading.Thread(target=serve, daemon=True).start()
    address: Address = server.getsockname()
    return address


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.integers(0, 2**32 - 1).map(LENGTH.pack),
        st.binary(max_size=60).map(lambda body: LENGTH.pack(len(body)) + body),
        st.builds(
            Greeting, st.just(Addressee("run", GENERATION, "op", 0)), st.binary(max_size=40), st.binary(max_size=40)
        )
        .map(msgspec.msgpack.encode)
        .map(lambda body: LENGTH.pack(len(body)) + body + LENGTH.pack(3) + b"bad"),
    )
)
def test_no_bytes_are_taken_for_a_bundle(world: World, tools: Tools, data: bytes) -> None:
    """Whatever a stranger sends: nothing arrives, and those who know the secret are still heard."""
    one = world.receivers[0]
    before = len(one.came)
    with contextlib.suppress(OSError), socket.create_connection(one.listener.address) as stranger:
        stranger.sendall(data)
    if world.encrypted:  # and also one who holds the certificate, but not the secret
        with contextlib.suppress(OSError), _stranger(one.listener.address, CREDENTIAL) as stranger:
            stranger.sendall(data)
    lines = world.lines()
    lines.send([(0, b"ours")])
    tools.until(lambda: len(one.came) > before)
    assert one.came[before:] == [b"ours"]
    assert one.faults == []
    lines.close()


def test_what_goes_wrong_with_a_bundle_is_told(tools: Tools) -> None:
    def fail(bundle: bytes) -> None:
        raise ValueError(f"broken: {bundle!r}")

    faults: list[BaseException] = []
    listener = Listener("127.0.0.1", PLAIN, Addressee("run", GENERATION, "op", 0))
    listener.start(fail, faults.append)
    lines = Lines(program(tools), lambda: {("op", 0): listener.address}, lambda: False)
    lines.send([(0, b"x")])
    assert str(tools.until(lambda: faults)[0]) == "broken: b'x'"
    lines.close()


def test_a_listener_that_closes_leaves_no_thread(tools: Tools) -> None:
    def threads() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "penstock-listener"]

    before = len(threads())
    one = Receiver()
    assert len(threads()) == before + 1
    one.listener.close()
    tools.until(lambda: len(threads()) == before)


def test_a_listener_that_was_never_started_keeps_no_socket() -> None:
    """Where something went wrong between making and start, its port stayed open as long as the process."""
    listener = Listener("127.0.0.1", PLAIN, Addressee("run", GENERATION, "op", 0))
    listener.close()
    assert [one.fileno() for one in (listener._server, listener._wake, listener._woken)] == [-1, -1, -1]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.address)


def test_a_listener_that_cannot_be_made_keeps_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    create = socket.create_server

    def noted(*given: Any, **more: Any) -> socket.socket:
        made.append(create(*given, **more))
        return made[0]

    def refused() -> tuple[socket.socket, socket.socket]:
        raise OSError("too many open files")

    monkeypatch.setattr(socket, "create_server", noted)
    monkeypatch.setattr(socket, "socketpair", refused)
    with pytest.raises(OSError, match="too many open files"):
        Listener("127.0.0.1", PLAIN, Addressee("run", GENERATION, "op", 0))
    assert made[0].fileno() == -1


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def encrypted(tools: Tools) -> Iterator[World]:
    world = World(program(tools, TLS))
    yield world
    world.close()


def _stranger(address: Address, credential: Credential) -> socket.socket:
    return client_side(credential).wrap_socket(socket.create_connection(address, timeout=10))


def test_what_is_sent_cannot_be_read_on_its_way(encrypted: World, tools: Tools) -> None:
    tapped = _tap(encrypted, tools)
    encrypted.lines().send([(0, b"confidential" * 100)])
    tools.until(lambda: encrypted.receivers[0].came)
    assert len(tapped) > 1200
    assert b"confidential" not in tapped
    assert b"run" not in tapped


def _tap(world: World, tools: Tools) -> bytearray:
    """Someone on the way to the first replica, who passes on and keeps what both say."""
    server, heard = socket.create_server(("127.0.0.1", 0)), bytearray()
    real, world.places["op", 0] = world.places["op", 0], server.getsockname()

    def serve() -> None:
        here, _ = server.accept()
        there = socket.create_connection(real)
        with server, here, there:
            back = threading.Thread(target=pass_on, args=(there, here))
            back.start()
            pass_on(here, there)
            there.shutdown(socket.SHUT_RDWR)
            back.join()

    def pass_on(come: socket.socket, go: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := come.recv(1 << 16):
                heard.extend(data)
                go.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return heard


def test_another_runs_certificate_is_refused_by_both_ends(encrypted: World, impatient: None) -> None:
    other = replace(TLS, credential=make_credential())
    with pytest.raises(EngineError, match="op/0 cannot be reached: SSLCertVerificationError: "):
        encrypted.lines(driver=other).send([(0, b"forged")])
    gullible = client_side(other.credential)
    gullible.verify_mode = ssl.CERT_NONE
    plain = socket.create_connection(encrypted.places["op", 0], timeout=10)
    with gullible.wrap_socket(plain) as line, pytest.raises(ssl.SSLError, match="unknown ca"):
        line.recv(32)
    assert encrypted.receivers[0].came == []


def test_a_plain_stranger_is_hung_up_on_and_the_log_says_so_once(
    encrypted: World, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        with socket.create_connection(encrypted.places["op", 0], timeout=10) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(4096):
                    pass
    encrypted.lines().send([(0, b"ours")])
    tools.until(lambda: encrypted.receivers[0].came)
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "hung up on a stranger" in warned[0]


def test_one_who_is_slow_to_shake_hands_holds_nobody_up(encrypted: World, tools: Tools) -> None:
    """One thread reads for all: it never waits for one of them. Who is slow is let in all the same."""
    to, hello = encrypted.places["op", 0], _client_hello()
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(to, timeout=10)) for _ in range(10)]
        for number, one in enumerate(slow):
            one.sendall(hello[: 1 + number * 20])
        encrypted.lines().send([(0, b"ours")])
        tools.until(lambda: encrypted.receivers[0].came)
        for number, one in enumerate(slow):
            one.sendall(hello[1 + number * 20 :])
            assert one.recv(1) == b"\x16"  # the answer: a message of a handshake


def _client_hello() -> bytes:
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client_side(CREDENTIAL).wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    return out.read()


def test_who_never_says_anything_is_hung_up_on_when_another_comes(
    world: World, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stayed for as long as the attempt did, each with an open file."""
    monkeypatch.setattr(receiver, "STRANGER_S", 0.05)
    ours = world.lines()
    ours.send([(0, b"first")])
    tools.until(lambda: world.receivers[0].came)
    with socket.create_connection(world.places["op", 0], timeout=10) as silent:
        assert world.encrypted or len(silent.recv(32)) == 32
        time.sleep(0.2)
        with socket.create_connection(world.places["op", 0]):
            assert silent.recv(1) == b""
    ours.send([(0, b"second")])  # who has proven that it may send stays
    tools.until(lambda: world.receivers[0].came == [b"first", b"second"])


def test_a_receiver_that_is_busy_as_a_sender_calls_is_waited_for(world: World, tools: Tools, impatient: None) -> None:
    """Its inbox was full for longer than 5 s just then: nobody answered the call, and the attempt ended."""
    busy = world.receivers[0]
    busy.open.clear()
    world.lines().send([(0, b"first")])
    late = threading.Thread(target=world.lines().send, args=([(0, b"second")],))
    late.start()
    late.join(3 * sender.BROKEN_S)
    assert late.is_alive()
    busy.open.set()
    late.join(30)
    tools.until(lambda: busy.came == [b"first", b"second"])


# ── ports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_replicas_listen_at_the_ports_that_they_are_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        ports = Ports(first, min(first + 20, 65_535))
        made = [Receiver(number, replace(PLAIN, ports=ports)) for number in range(3)]
        found = {one.listener.address[1] for one in made}
        for one in made:
            one.listener.close()
    assert len(found) == 3
    assert all(ports.first < port <= ports.last for port in found)


def test_no_free_port_is_an_error_that_names_the_range() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=rf"none of the ports {port}-{port} is free on 127\.0\.0\.1: each"):
            Receiver(0, replace(PLAIN, ports=Ports(port, port)))
