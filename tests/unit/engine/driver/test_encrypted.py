"""The control channel under TLS: who is let in, and strangers who knock; a real server and agents over loopback."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.driver import channel as channels
from penstock.engine.driver.channel import ControlServer
from penstock.engine.driver.credential import is_loopback, make_credential
from penstock.engine.protocol.messages import Hello, Restore, RestoreQuery, frame
from penstock.engine.protocol.ports import Ports
from penstock.engine.protocol.tls import client_side
from penstock.errors import EngineError
from penstock.state.segments import Segment
from tests.waiting import LONG_S

from ..made import CREDENTIAL, routing

Driver = Any
Tools = SimpleNamespace
encrypted = pytest.mark.parametrize("driver", [CREDENTIAL], ids=["tls"], indirect=True)


def knocking(driver: Driver) -> socket.socket:
    return socket.create_connection(("127.0.0.1", driver.port), timeout=LONG_S)


def hung_up_on(stranger: socket.socket) -> bool:
    """Whether the other end says no more, after whatever it has to say."""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while stranger.recv(4096):
            pass
    return True


@encrypted
def test_an_answer_of_many_megabytes_arrives_whole(driver: Driver) -> None:
    driver.restores["count"] = Restore(7, [Segment(7, number, 1, 12, 99) for number in range(400_000)])
    assert len(frame(driver.restores["count"])) > 2 << 20
    assert driver.agent().ask_restore(RestoreQuery(0, "count")) == driver.restores["count"]


@encrypted
def test_an_agent_with_another_runs_certificate_is_let_in_by_nobody(
    driver: Driver, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    driver.server.publish(routing(1))
    agent = driver.agent(credential=make_credential())
    tools.until(lambda: "no TLS with the run's certificate: TLSV1_ALERT_UNKNOWN_CA" in caplog.text)
    assert not agent._first_routing.is_set()
    assert driver.heard == []


@encrypted
def test_who_believes_anyone_is_still_not_let_in_without_the_runs_certificate(
    driver: Driver, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    gullible = client_side(make_credential())
    gullible.verify_mode = ssl.CERT_NONE
    with gullible.wrap_socket(knocking(driver)) as stranger, contextlib.suppress(OSError):
        stranger.sendall(frame(Hello(driver.run, b"challenge")))
        hung_up_on(stranger)
    tools.until(lambda: "no TLS with the run's certificate: CERTIFICATE_VERIFY_FAILED" in caplog.text)


@encrypted
def test_plain_agents_and_other_strangers_are_complained_of_once(
    driver: Driver, tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        with knocking(driver) as stranger:
            stranger.sendall(frame(Hello(driver.run, b"challenge")))
            assert hung_up_on(stranger)
    driver.agent()
    tools.until(lambda: driver.heard)
    assert [one.levelno for one in caplog.records if one.levelno >= logging.WARNING] == [logging.WARNING]
    assert "no TLS with the run's certificate: " in caplog.text


@encrypted
def test_one_who_is_slow_to_shake_hands_holds_nobody_up(
    driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(knocking(driver)) for _ in range(10)]
        for one in slow:
            one.sendall(b"\x16\x03\x01")  # how a handshake begins
        driver.agent()
        tools.until(lambda: driver.heard)
        assert all(hung_up_on(one) for one in slow)  # after 5 s


@encrypted
def test_a_server_ends_while_somebody_is_about_to_shake_hands(
    driver: Driver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "HANDSHAKE_TIMEOUT_S", 0.5)
    with knocking(driver) as slow:
        slow.sendall(b"\x16\x03\x01")
        driver.agent()
        tools.until(lambda: driver.heard)
        driver.stop()
        tools.until(lambda: not [one for one in threading.enumerate() if one.name == "penstock-control"])


@encrypted
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(data=st.binary(min_size=1, max_size=300), certified=st.booleans())
def test_whatever_strangers_say_nothing_is_heard(driver: Driver, data: bytes, certified: bool) -> None:
    """Also those who hold the certificate, but not the secret."""
    heard = len(driver.heard)
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        stranger: socket.socket = stack.enter_context(knocking(driver))
        if certified:
            stranger = stack.enter_context(client_side(CREDENTIAL).wrap_socket(stranger))
        stranger.sendall(data)
        if not certified:
            stranger.shutdown(socket.SHUT_WR)
            assert hung_up_on(stranger)
    assert len(driver.heard) == heard
    assert not driver.server._writers


# ── where it is wanted, and which port ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("192.0.2.1", False), ("", False)],
)
def test_what_counts_as_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host or "no such host") is loopback


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_key_is_shown_or_left_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    made = make_credential()
    assert client_side(made).cert_store_stats()["x509"] == 1
    assert "PRIVATE" not in repr(made)
    assert list(tmp_path.iterdir()) == []


def test_the_driver_listens_at_the_ports_that_it_is_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"cannot listen on 127.0.0.1: none of the ports {port}-{port} is free"):
            ControlServer("run").start("127.0.0.1", None, ports=Ports(port, port))  # type: ignore[arg-type]
    server = ControlServer("run")
    assert server.start("127.0.0.1", None, ports=Ports(port, port)) == port  # type: ignore[arg-type]
    server.stop()
