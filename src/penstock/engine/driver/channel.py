"""The driver's end of the control channel: hears what replicas report and ask, tells them what has changed."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from penstock.engine.protocol.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Answer,
    AtWork,
    Hello,
    Notice,
    OnlineNews,
    Poll,
    Proof,
    Question,
    Report,
    Reports,
    frame,
    proof,
    upward,
)
from penstock.engine.protocol.ports import Ports, bound
from penstock.engine.protocol.tls import Credential, server_side
from penstock.errors import EngineError, PenstockError

log = logging.getLogger(__name__)
HANDSHAKE_TIMEOUT_S = 5.0
HANDSHAKE_FRAME_BYTES = 4096
MOST_COMPLAINTS = 100
SILENT_S = 10.0  # a process that says nothing for this long is gone
LOOKS = 20  # in that time


class Publisher(Protocol):
    """Tells all replicas something."""

    def publish(self, message: Notice) -> None:
        """Tell those that are connected now, and the last of its kind whoever connects later."""


class Listener(Protocol):
    """What the driver makes of what replicas say; called on the server's thread."""

    def hear(self, reports: Reports) -> Iterable[OnlineNews]:
        """Take reports; what to answer."""

    def lost(self, last: AtWork) -> None:
        """A process is gone; this is the last that is known of what it did."""

    def fell_silent(self, last: AtWork, silent_s: float) -> None:
        """A process has said nothing for so long, and was hung up on; it is told of as `lost`, too."""

    def answer(self, question: Question) -> Answer:
        """What a replica or a source's slot wants to know as it begins."""


class ControlServer:
    """A TCP server on a thread of its own; every connection is one replica's process."""

    def __init__(self, run: str, silent_s: float = SILENT_S) -> None:
        self._run = run
        self._silent_s = silent_s  # who says nothing for so long is gone, with its machine or not
        self._heard: dict[asyncio.StreamWriter, int] = {}  # when each has said something, in looks of ours
        self._looks = 0
        self.secret = secrets.token_bytes(32)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener
        self._connections: set[asyncio.StreamWriter] = set()
        self._writers: dict[asyncio.StreamWriter, int] = {}  # those let in, and the last poll each has answered
        self._at_work: dict[asyncio.StreamWriter, AtWork] = {}  # what each has said last
        self._failing: deque[int] = deque(maxlen=MOST_COMPLAINTS)  # attempts of which a replica was about to fail
        self._latest: dict[type[Notice], Notice] = {}
        self._polls, self._polling = 0, threading.Lock()
        self._port = 0
        self._complaints: dict[bool, set[str]] = {True: set(), False: set()}  # of those let in, and of strangers
        self._paused = False
        self._error: Exception | None = None
        self._tls: ssl.SSLContext | None = None

    def start(
        self, host: str, listener: Listener, credential: Credential | None = None, ports: Ports | None = None
    ) -> int:
        """Listen, with a credential under TLS; the port."""
        self._listener, self._loop = listener, asyncio.new_event_loop()
        self._tls = None if credential is None else server_side(credential)
        ready = threading.Event()
        serving = threading.Thread(
            target=self._serve, args=(self._loop, host, ports, ready), name="penstock-control", daemon=True
        )
        serving.start()
        ready.wait()
        if self._error is not None:
            raise EngineError(f"the control channel cannot listen on {host}: {self._error}")
        return self._port

    def stop(self) -> None:
        """Close all connections and the server."""
        if self._loop is not None:
            self._soon(self._loop.stop)

    def publish(self, message: Notice) -> None:
        """Tell those that are connected now, and the last of its kind whoever connects later."""
        self._latest[type(message)] = message
        self._soon(self._broadcast, message)

    def poll(self) -> int:
        """Ask every process to report at once; the number of the poll."""
        with self._polling:
            self._polls += 1
            self.publish(Poll(self._polls))
            return self._polls

    def answered(self, poll: int, least: int = 1) -> bool:
        """Whether every connected process, and at least so many, has reported since that poll."""
        seen = list(self._writers.values())
        return len(seen) >= least and all(one >= poll for one in seen)

    def known(self, generation: int) -> int:
        """How many connected processes have said that they are of that attempt."""
        return sum(one.generation == generation for one in list(self._at_work.values()))

    def fails(self, generation: int) -> bool:
        """Whether a replica of that attempt has been about to fail: whoever is lost then is a consequence."""
        return generation in self._failing

    def cut(self, paused: bool) -> None:
        """Break all connections and refuse new ones until called with False: a fault, for tests."""
        self._paused = paused
        if paused:
            self._soon(self._hang_up)

    def _soon(self, call: Callable[..., None], *values: Any) -> None:
        with contextlib.suppress(RuntimeError):  # stopped: nobody is left to be told
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call, *values)

    def _hang_up(self) -> None:
        for writer in self._connections:
            self._close(writer)

    def _close(self, writer: asyncio.StreamWriter) -> None:
        """Hang up; a farewell of TLS would wait for the other end's."""
        if self._tls is None:
            writer.close()
        else:
            writer.transport.abort()

    def _serve(self, loop: asyncio.AbstractEventLoop, host: str, ports: Ports | None, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)

        def serve_at(port: int) -> asyncio.Server:
            return loop.run_until_complete(asyncio.start_server(self._converse, host, port, backlog=1024))

        try:
            server = bound(serve_at, host, ports)
            self._port = server.sockets[0].getsockname()[1]
        except (OSError, EngineError) as error:
            self._error = error
            loop.close()
            return
        finally:
            ready.set()
        watching = loop.create_task(self._watch())
        loop.run_forever()
        watching.cancel()
        self._shut_down(loop, server)

    def _shut_down(self, loop: asyncio.AbstractEventLoop, server: asyncio.Server) -> None:
        """Let nobody in any more and hang up on everyone, also on those who have only just been accepted."""
        self._paused = True
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        while tasks := asyncio.all_tasks(loop):
            self._hang_up()
            loop.run_until_complete(asyncio.wait(tasks))
        server.close()
        loop.run_until_complete(asyncio.sleep(0))  # a connection closes one turn after it was asked to
        loop.close()

    async def _watch(self) -> None:
        """Hang up on those who have been silent for too long.

        Looks are counted, not seconds: when the driver itself stood still, or its clock jumped, nobody was silent.
        """
        while True:
            await asyncio.sleep(self._silent_s / LOOKS)
            self._looks += 1
            for writer in [one for one, heard in self._heard.items() if self._looks - heard > LOOKS]:
                del self._heard[writer]
                writer.transport.abort()
                if (last := self._at_work.get(writer)) is not None:
                    self._listener.fell_silent(last, self._silent_s)

    def _broadcast(self, message: Notice) -> None:
        data = frame(message)
        for writer in self._writers:
            writer.write(data)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                await self._encrypt(writer)
                self._connections.add(writer)
                await self._shake_hands(reader, writer)
            self._writers[writer], self._heard[writer] = -1, self._looks
            for notice in list(self._latest.values()):
                writer.write(frame(notice))
            while True:
                message = await _receive(reader, MAX_FRAME_BYTES)
                self._heard[writer] = self._looks
                self._take(message, writer)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass  # gone, or never one of ours; a replica comes back by itself
        except Exception as error:  # not a message, or one that cannot be: whoever sent it may begin anew
            told = isinstance(error, ValueError | PermissionError | PenstockError)
            self._complain(writer, str(error) if told else f"{type(error).__name__}: {error}")
        finally:
            self._connections.discard(writer)
            self._writers.pop(writer, None)
            self._heard.pop(writer, None)
            self._close(writer)
            if (last := self._at_work.pop(writer, None)) is not None:
                self._listener.lost(last)

    def _complain(self, writer: asyncio.StreamWriter, error: str) -> None:
        """Say it once, as one asks again and again; and not all that comes to a stranger's mind."""
        said = self._complaints[writer in self._writers]
        new = error not in said and len(said) < MOST_COMPLAINTS
        if new:
            said.add(error)
        peer = writer.get_extra_info("peername")
        (log.warning if new else log.debug)("control channel: hung up on %s: %s", peer, error)

    async def _encrypt(self, writer: asyncio.StreamWriter) -> None:
        """Here, and not as the server accepts: what goes wrong is heard of."""
        if self._tls is not None:
            try:
                await writer.start_tls(self._tls)
            except ssl.SSLError as error:
                raise PermissionError(f"no TLS with the run's certificate: {error.reason}") from error

    async def _shake_hands(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._paused:
            raise ConnectionAbortedError
        hello = await _receive(reader, HANDSHAKE_FRAME_BYTES)
        if not isinstance(hello, Hello) or hello.run != self._run:
            raise PermissionError("not a replica of this run")
        challenge = secrets.token_bytes(32)
        writer.write(frame(Hello(self._run, challenge)))
        answer = await _receive(reader, HANDSHAKE_FRAME_BYTES)
        expected = proof(self.secret, b"replica", challenge)
        if not isinstance(answer, Proof) or not hmac.compare_digest(answer.answer, expected):
            raise PermissionError("wrong secret")
        writer.write(frame(Proof(proof(self.secret, b"driver", hello.challenge))))

    def _take(self, message: Any, writer: asyncio.StreamWriter) -> None:
        if isinstance(message, Reports):
            for news in self._listener.hear(message):
                writer.write(frame(news))
            self._writers[writer] = message.poll
            self._know(writer, message.reports)
        elif isinstance(message, AtWork):
            self._at_work[writer] = message
            if message.fails:
                self._failing.append(message.generation)
        elif isinstance(message, Question):
            writer.write(frame(self._listener.answer(message)))

    def _know(self, writer: asyncio.StreamWriter, reports: list[Report]) -> None:
        """Whose process it is, and of which attempt, also where it has never said what it works on."""
        for one in reports[:1]:
            last = self._at_work.get(writer)
            if last is None or last.generation < one.generation:
                self._at_work[writer] = AtWork(one.generation, one.operator, one.replica)


async def _receive(reader: asyncio.StreamReader, limit: int) -> Any:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > limit:
        raise PermissionError(f"a frame of {length} bytes is too long")
    return upward.decode(await reader.readexactly(length))
