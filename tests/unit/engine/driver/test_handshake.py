"""Who is let in to the control channel: a real server and real agents over loopback, and strangers who knock."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.driver import channel as channels
from penstock.engine.driver.channel import ControlServer
from penstock.engine.plan.program import DriverAddress
from penstock.engine.protocol.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Hello,
    Proof,
    Reports,
    Routing,
    Start,
    downward,
    frame,
    proof,
    upward,
)
from penstock.engine.worker.agent import Agent
from penstock.errors import EngineError
from tests.waiting import LONG_S

from ..made import routing

Driver = Any
Tools = SimpleNamespace


# ── hands are shaken ────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_holds_the_secret_is_let_in(driver: Driver, tools: Tools) -> None:
    driver.server.publish(routing(1))
    agent = driver.agent()
    assert agent.wait_for_routing(5)
    assert agent.routing == routing(1)
    heard = tools.until(lambda: driver.heard)[0]
    assert (heard.host, heard.pid, heard.reports) == (socket.gethostname(), os.getpid(), [])


def test_a_replica_with_a_wrong_secret_is_refused(
    driver: Driver, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    driver.server.publish(routing(1))
    agent = driver.agent(secret=b"guessed")
    tools.until(lambda: "wrong secret" in caplog.text)
    assert not agent._first_routing.is_set()
    assert driver.heard == []
    assert not driver.server.answered(0)


class Listener:
    """Someone else's server on loopback, which says what it is told to whoever connects."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._server.settimeout(5)

    def accept(self) -> socket.socket:
        connection, _ = self._server.accept()
        connection.settimeout(5)
        return connection

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with contextlib.closing(Listener()) as listener:
        yield listener


@pytest.fixture
def stray(driver: Driver) -> Any:
    """`stray(listener, secret)`: an agent that is led to someone else's server."""

    def led(listener: Listener, secret: bytes = b"s") -> Agent:
        agent = Agent(driver.run, DriverAddress("127.0.0.1", listener.port, secret, 60.0), Routing(0, {}))
        driver.agents.append(agent)
        return agent

    return led


def received(connection: socket.socket, decoder: Any) -> Any:
    """The next message, or None when the other end has hung up."""
    data = b""
    while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        try:
            more = connection.recv(1)
        except ConnectionResetError:
            return None
        if not more:
            return None
        data += more
    return decoder.decode(data[LENGTH.size :])


@pytest.mark.parametrize("side", [b"driver", b"replica"], ids=["wrong-secret", "reflected"])
def test_a_driver_that_does_not_hold_the_secret_is_refused(
    driver: Driver, listener: Listener, stray: Any, side: bytes
) -> None:
    agent = stray(listener)
    with listener.accept() as connection:
        hello = received(connection, upward)
        connection.sendall(frame(Hello(driver.run, b"challenge")))
        assert received(connection, upward) == Proof(proof(b"s", b"replica", b"challenge"))
        guess = proof(b"guessed" if side == b"driver" else b"s", side, hello.challenge)
        connection.sendall(frame(Proof(guess)) + frame(routing(9)))
        assert received(connection, upward) is None  # hung up, nothing reported
    assert agent.routing.version == 0
    assert not agent._first_routing.is_set()


def test_routing_that_comes_along_with_the_proof_is_taken(driver: Driver, listener: Listener, stray: Any) -> None:
    """It used to lie in the agent's buffer until the driver said something else."""
    agent = stray(listener)
    with listener.accept() as connection:
        hello = received(connection, upward)
        connection.sendall(frame(Hello(driver.run, b"challenge")))
        received(connection, upward)
        connection.sendall(frame(Proof(proof(b"s", b"driver", hello.challenge))) + frame(routing(9)))
        assert agent.wait_for_routing(5)
        assert agent.routing == routing(9)


@pytest.mark.parametrize(
    "answer",
    [
        frame(Start()),
        LENGTH.pack(MAX_FRAME_BYTES + 1),
        LENGTH.pack(3) + b"\xc1\xff\xff",
        frame(Hello("\0", b""))[:-1],
    ],
    ids=["not-hello", "oversized", "garbage", "cut"],
)
def test_an_agent_survives_whatever_a_stranger_says(
    driver: Driver, tools: Tools, listener: Listener, stray: Any, answer: bytes
) -> None:
    stray(listener)
    for _ in range(2):  # it hangs up, and comes again
        with listener.accept() as connection:
            assert isinstance(received(connection, upward), Hello)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection, upward) is None


# ── strangers at the server ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stranger(driver: Driver) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", driver.port), timeout=LONG_S) as connection:
        yield connection


def hello(driver: Driver) -> bytes:
    return frame(Hello(driver.run, b"challenge"))


INVALID_TEXT = frame(Hello("xx", b"")).replace(b"xx", b"\xff\xff")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (LENGTH.pack(1 << 31), "a frame of 2147483648 bytes is too long"),
        (LENGTH.pack(4097), "a frame of 4097 bytes is too long"),
        (LENGTH.pack(5) + b"GET /", "hung up"),
        (LENGTH.pack(2) + b"\xc1\xc1", "hung up"),
        (INVALID_TEXT, "can't decode byte 0xff"),
        (frame(Proof(b"open")), "not a replica of this run"),
        (frame(Hello("another run", b"challenge")), "not a replica of this run"),
    ],
    ids=["huge", "oversized", "http", "garbage", "not-text", "no-hello", "other-run"],
)
def test_a_stranger_is_hung_up_on_and_the_log_says_why(
    driver: Driver, stranger: socket.socket, caplog: pytest.LogCaptureFixture, said: bytes, reason: str
) -> None:
    stranger.sendall(said)
    assert received(stranger, downward) is None
    assert reason in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.WARNING}  # a sentence, no stack trace


def test_one_who_hangs_up_half_way_is_no_news(
    driver: Driver, stranger: socket.socket, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    stranger.sendall(hello(driver))
    assert isinstance(received(stranger, downward), Hello)
    stranger.shutdown(socket.SHUT_RDWR)
    assert driver.agent().wait_for_routing(0.0) is False
    tools.until(lambda: driver.heard)  # the server goes on
    assert caplog.text == ""


def test_one_who_says_nothing_is_hung_up_on(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "HANDSHAKE_TIMEOUT_S", 0.05)
    with socket.create_connection(("127.0.0.1", driver.port), timeout=LONG_S) as connection:
        assert received(connection, downward) is None


def test_reports_count_only_after_the_handshake(driver: Driver, stranger: socket.socket) -> None:
    stranger.sendall(frame(Reports("host", 1, 0, [])))
    assert received(stranger, downward) is None
    assert driver.heard == []


def test_a_place_where_nobody_can_listen_is_an_error() -> None:
    with pytest.raises(EngineError, match=r"the control channel cannot listen on 192\.0\.2\.1: "):
        ControlServer("run").start("192.0.2.1", None)  # type: ignore[arg-type]


def test_strangers_do_not_fill_the_drivers_memory_or_log(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    """What was complained about was kept for ever, and a stranger can have any number of things complained about."""
    for number in range(300):
        with socket.create_connection(("127.0.0.1", driver.port)) as stranger:
            stranger.sendall(LENGTH.pack(5000 + number))
            assert received(stranger, upward) is None
    warned = [one for one in caplog.records if one.levelno == logging.WARNING and "too long" in one.message]
    assert 0 < len(warned) <= 100
    assert sum(len(kept) for kept in driver.server._complaints.values()) <= 100
