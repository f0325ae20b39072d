"""A replica's end of the connections of all that send to it: one thread takes in what comes."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import selectors
import socket
import threading
from collections.abc import Callable

import msgspec

from penstock.engine.direct.greeting import CHALLENGE_BYTES, LONGEST_GREETING, Addressee, Greeting
from penstock.engine.protocol.messages import LENGTH, Address, proof

READ_BYTES = 1 << 18

Arrive = Callable[[bytes], None]


class _Line:
    """One sender's connection, and what has come of a bundle that is not all there."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.inbound = bytearray()
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self.proven = False


class Listener:
    """Where a replica can be reached in one attempt; whoever cannot prove to know the run's secret is hung up on."""

    def __init__(self, host: str, secret: bytes, me: Addressee) -> None:
        self._secret, self._me = secret, me
        self._server = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
        )
        with contextlib.ExitStack() as undone:
            undone.enter_context(self._server)
            self._server.setblocking(False)
            self.address: Address = (host, self._server.getsockname()[1])
            self._wake, self._woken = socket.socketpair()
            undone.pop_all()
        self._started = self._closing = False

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
                    for key, _ in selector.select():
                        if key.fileobj is self._server:
                            self._accept(selector)
                        elif isinstance(key.data, _Line):
                            self._read(key.data, selector, arrive)
            except BaseException as error:  # it belongs to the replica's own thread
                fail(error)
            finally:
                for key in list(selector.get_map().values()):
                    if isinstance(key.fileobj, socket.socket):
                        key.fileobj.close()
                self._wake.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        with contextlib.suppress(OSError):  # whoever called has hung up
            connection, _ = self._server.accept()
            connection.setblocking(False)
            line = _Line(connection)
            connection.send(line.challenge)
            selector.register(connection, selectors.EVENT_READ, line)

    def _read(self, line: _Line, selector: selectors.BaseSelector, arrive: Arrive) -> None:
        """Take in what has come on a line; who hangs up is gone, and whether that is a fault Spark knows."""
        try:
            data = line.connection.recv(READ_BYTES)
            line.inbound += data
            if data and (line.proven or self._greeted(line)):
                _take_all(line.inbound, arrive)
                return
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(line.inbound) > LONGEST_GREETING:
            selector.unregister(line.connection)
            line.connection.close()

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
