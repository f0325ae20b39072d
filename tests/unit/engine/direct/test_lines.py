"""Bundles straight from replica to replica, over loopback, plain and under TLS: order, secrets, who is slow or gone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.direct import receiver, sender
from penstock.engine.direct.greeting import Addressee, Greeting
from penstock.engine.direct.receiver import Listener
from penstock.engine.direct.sender import Lines
from penstock.engine.protocol.messages import LENGTH, Address
from penstock.engine.protocol.ports import Ports
from penstock.errors import EngineError
from tests.waiting import LONG_S

from .lines_world import GENERATION, PLAIN, Receiver, Tools, World, program, stranger


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
    thread.join(LONG_S)
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
    with contextlib.suppress(OSError), socket.create_connection(one.listener.address) as anybody:
        anybody.sendall(data)
    if world.encrypted:  # and also one who holds the certificate, but not the secret
        with contextlib.suppress(OSError), stranger(one.listener.address) as trusted:
            trusted.sendall(data)
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


def test_who_never_says_anything_is_hung_up_on_when_another_comes(
    world: World, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stayed for as long as the attempt did, each with an open file."""
    monkeypatch.setattr(receiver, "STRANGER_S", 0.05)
    ours = world.lines()
    ours.send([(0, b"first")])
    tools.until(lambda: world.receivers[0].came)
    with socket.create_connection(world.places["op", 0], timeout=LONG_S) as silent:
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
    late.join(LONG_S)
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
