"""A replica's end of the connections of all that send to it: one thread takes in what comes."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable

import msgspec

from penstock.engine.direct.greeting import CHALLENGE_BYTES, LONGEST_GREETING, Addressee, Greeting
from penstock.engine.plan.program import DriverAddress
from penstock.engine.protocol.messages import LENGTH, Address, proof
from penstock.engine.protocol.ports import bound
from penstock.engine.protocol.tls import RECORD_BYTES, server_side

log = logging.getLogger(__name__)
READ_BYTES = 1 << 18
STRANGER_S = 60.0  # who has come and then says nothing for so long is hung up on when the next one comes

Arrive = Callable[[bytes], None]


class _Line:
    """One sender's connection, and what has come of a bundle that is not all there."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.inbound = bytearray()
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self.encrypted = isinstance(connection, ssl.SSLSocket)
        self.challenged = False
        self.proven = False
        self.heard_s = time.monotonic()

    def take_in(self) -> bool:
        """Take in some of what has come; False if the sender has hung up."""
        taken, at_once = 0, RECORD_BYTES if self.encrypted else READ_BYTES
        while taken < READ_BYTES:
            try:
                data = self.connection.recv(at_once)
            except (BlockingIOError, ssl.SSLWantReadError):
                return True
            if not data:
                return False
            self.inbound += data
            taken += len(data)
            if not self.encrypted:  # else small records may be many, and each comes alone
                return True
        return True


class Listener:
    """Where a replica can be reached in one attempt; whoever cannot prove to know the run's secret is hung up on."""

    def __init__(self, host: str, driver: DriverAddress, me: Addressee) -> None:
        self._secret, self._me = driver.secret, me
        self._tls = None if driver.credential is None else server_side(driver.credential)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def listen_at(port: int) -> socket.socket:
            return socket.create_server((host, port), family=family, backlog=1024)

        self._server = bound(listen_at, host, driver.ports)
        with contextlib.ExitStack() as undone:
            undone.enter_context(self._server)
            self._server.setblocking(False)
            self.address: Address = (host, self._server.getsockname()[1])
            self._wake, self._woken = socket.socketpair()
            undone.pop_all()
        self._started = self._closing = self._complained = False

    def start(self, arrive: Arrive, fail: Callable[[BaseException], None]) -> None:
        """Hand each bundle over as it comes; while that takes long, senders wait. What goes wrong with it is told."""
        threading.Thread(target=self._serve, args=(arrive, fail), name="penstock-listener", daemon=True).start()
        self._started = True

    def close(self) -> None:
        """Take nothing more."""
        self._closing = True
        if not self._started:  # nobody else would
            for one in (self._server, self._wake, self._woken):
                one.close()
        with contextlib.suppress(OSError):
            self._wake.send(b"w")

    def _serve(self, arrive: Arrive, fail: Callable[[BaseException], None]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            try:
                while not self._closing:
                    came = selector.select()
                    for key, _ in came:
                        if isinstance(key.data, _Line):
                            self._read(key.data, selector, arrive)
                    if any(key.fileobj is self._server for key, _ in came):
                        self._accept(selector)
            except BaseException as error:  # it belongs to the replica's own thread
                fail(error)
            finally:
                for key in list(selector.get_map().values()):
                    if isinstance(key.fileobj, socket.socket):
                        key.fileobj.close()
                self._wake.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        """Let one in, after what has come from the others has been read: who is then silent for long has to go."""
        for line in [one.data for one in selector.get_map().values() if isinstance(one.data, _Line)]:
            if not line.proven and time.monotonic() - line.heard_s > STRANGER_S:
                self._hang_up(line, selector, "it has said nothing for long")
        with contextlib.suppress(OSError):  # whoever called has hung up
            connection, _ = self._server.accept()
            connection.setblocking(False)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            line = _Line(connection)
            selector.register(connection, selectors.EVENT_READ, line)
            if not line.encrypted:
                self._challenge(line)

    def _read(self, line: _Line, selector: selectors.BaseSelector, arrive: Arrive) -> None:
        """Take in what has come on a line; who hangs up is gone, and whether that is a fault Spark knows."""
        line.heard_s, problem = time.monotonic(), ""
        try:
            if not line.challenged and not self._shaken(line, selector):
                return
            there = line.take_in()
            if not line.proven and not self._greeted(line) and len(line.inbound) > LONGEST_GREETING:
                raise OSError("no greeting is so long")
        except OSError as error:
            there, problem = False, str(error)
        if line.proven:
            _take_all(line.inbound, arrive)
        if not there:
            self._hang_up(line, selector, problem)

    def _shaken(self, line: _Line, selector: selectors.BaseSelector) -> bool:
        """Whether the two have agreed how to encrypt; as far as that goes without waiting for the sender."""
        assert isinstance(line.connection, ssl.SSLSocket)
        try:
            line.connection.do_handshake()
        except ssl.SSLWantReadError:
            selector.modify(line.connection, selectors.EVENT_READ, line)
            return False
        except ssl.SSLWantWriteError:
            selector.modify(line.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, line)
            return False
        selector.modify(line.connection, selectors.EVENT_READ, line)
        self._challenge(line)
        return True

    def _challenge(self, line: _Line) -> None:
        line.connection.send(line.challenge)
        line.challenged = True

    def _hang_up(self, line: _Line, selector: selectors.BaseSelector, problem: str) -> None:
        selector.unregister(line.connection)
        line.connection.close()
        if problem and not line.proven:
            (log.debug if self._complained else log.warning)("hung up on a stranger at %s: %s", self.address, problem)
            self._complained = True

    def _greeted(self, line: _Line) -> bool:
        """Whether the sender has proven that it may send here; an OSError if it has proven that it may not."""
        greetings: list[bytes] = []
        if len(line.inbound) >= LENGTH.size and LENGTH.unpack_from(line.inbound)[0] > LONGEST_GREETING:
            raise OSError("no greeting is so long")
        _take_all(line.inbound, greetings.append, most=1)
        if not greetings:
            return False
        try:
            greeting = msgspec.msgpack.decode(greetings[0], type=Greeting)
        except msgspec.MsgspecError as error:
            raise OSError("this is no greeting") from error
        expected = proof(self._secret, b"sender", line.challenge)
        if greeting.to != self._me or not hmac.compare_digest(greeting.answer, expected):
            raise OSError("this is for somebody else")
        line.connection.send(proof(self._secret, b"receiver", greeting.challenge))
        line.proven = True
        return True


def _take_all(inbound: bytearray, take: Arrive, most: int | None = None) -> None:
    """Take what is complete off the beginning, or so many of it at most."""
    start = taken = 0
    while taken != most and len(inbound) - start >= LENGTH.size:
        (length,) = LENGTH.unpack_from(inbound, start)
        end = start + LENGTH.size + length
        if len(inbound) < end:
            break
        bundle = bytes(memoryview(inbound)[start + LENGTH.size : end])
        start, taken = end, taken + 1
        take(bundle)
    del inbound[:start]
