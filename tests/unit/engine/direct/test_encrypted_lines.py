"""Bundles from replica to replica under TLS: what others can read, who is let in, and who is not waited for."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.engine.driver.credential import make_credential
from penstock.engine.protocol.tls import client_side
from penstock.errors import EngineError
from tests.waiting import LONG_S

from ..made import CREDENTIAL
from .lines_world import TLS, Tools, World, program


@pytest.fixture
def encrypted(tools: Tools) -> Iterator[World]:
    world = World(program(tools, TLS))
    yield world
    world.close()


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
    plain = socket.create_connection(encrypted.places["op", 0], timeout=LONG_S)
    with gullible.wrap_socket(plain) as line, pytest.raises(ssl.SSLError, match="unknown ca"):
        line.recv(32)
    assert encrypted.receivers[0].came == []


def test_a_plain_stranger_is_hung_up_on_and_the_log_says_so_once(
    encrypted: World, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        with socket.create_connection(encrypted.places["op", 0], timeout=LONG_S) as stranger:
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
        slow = [stack.enter_context(socket.create_connection(to, timeout=LONG_S)) for _ in range(10)]
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
