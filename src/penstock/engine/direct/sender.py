"""A replica's end of its connections to all that it sends to, each made when it is first needed."""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from penstock.engine.direct.greeting import CHALLENGE_BYTES, PROOF_BYTES, Addressee, Greeting
from penstock.engine.plan.program import Program
from penstock.engine.protocol.messages import LENGTH, Address, proof
from penstock.engine.protocol.tls import connect, shake_hands
from penstock.errors import EngineError
from penstock.topology import ReplicaId

LOOK_S = 0.5  # while a receiver takes nothing, whether the attempt is over is looked at so often
FOUND_WITHIN_S = 120.0  # all that may be sent to
LOOK_EVERY_S = 0.02  # for them, and whether it is known why a connection broke
BROKEN_S = 5.0  # after which a broken connection is a fault of its own: before that, Spark says whose it is

Places = Callable[[], Mapping[ReplicaId, Address]]
A = TypeVar("A")
T = TypeVar("T")


class _Over(Exception):  # noqa: N818 - no error
    """The attempt ends: nobody waits for what is sent."""


class Lines:
    """What a replica sends, by partition of the receivers; bundles to one of them stay in order.

    A receiver that is slow lets its senders wait. If a connection breaks the attempt ends: what was on its way is lost.
    """

    def __init__(self, program: Program, places: Places, over: Callable[[], bool]) -> None:
        self._program = program
        self._places, self._over = places, over
        self._known: Mapping[ReplicaId, Address] = {}
        self._lines: dict[int, socket.socket] = {}

    def send(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Send bundles, each to the replica of its partition; nothing if the attempt is over."""
        by_partition: dict[int, list[bytes]] = {}
        for partition, bundle in rows:
            by_partition.setdefault(partition, []).extend((LENGTH.pack(len(bundle)), bundle))
        try:
            for partition, frames in by_partition.items():
                self._write(partition, b"".join(frames))
        except _Over:
            return

    def close(self) -> None:
        """Send nothing more."""
        while self._lines:
            self._lines.popitem()[1].close()

    def _write(self, partition: int, data: bytes) -> None:
        try:
            line = self._lines.get(partition) or self._connect(partition)
            view = memoryview(data)
            while view:
                view = view[self._patiently(line.send, view) :]
        except OSError as error:
            self._broke(partition, error)

    def _connect(self, partition: int) -> socket.socket:
        operator, replica = self._receiver(partition)
        line = connect(self._place(operator, replica), BROKEN_S, self._program.driver.credential)
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.settimeout(LOOK_S)
            self._patiently(shake_hands, line)
            self._greet(line, Addressee(self._program.run, self._program.generation, operator, replica))
        except BaseException:
            line.close()
            raise
        self._lines[partition] = line
        return line

    def _greet(self, line: socket.socket, to: Addressee) -> None:
        secret, challenge = self._program.driver.secret, secrets.token_bytes(CHALLENGE_BYTES)
        answer = proof(secret, b"sender", self._exactly(line, CHALLENGE_BYTES))
        greeting = msgspec.msgpack.encode(Greeting(to, answer, challenge))
        line.sendall(LENGTH.pack(len(greeting)) + greeting)
        if not hmac.compare_digest(self._exactly(line, PROOF_BYTES), proof(secret, b"receiver", challenge)):
            raise ConnectionError("it does not hold the run's secret")

    def _exactly(self, line: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._patiently(line.recv, count - len(data))
            if not more:
                raise ConnectionError("it hung up")
            data += more
        return data

    def _patiently(self, call: Callable[[A], T], value: A) -> T:
        """Do it again with the same until it gets on: a receiver whose inbox is full takes nothing for a while."""
        while True:
            try:
                return call(value)
            except TimeoutError:
                self._check()

    def _receiver(self, partition: int) -> ReplicaId:
        receiver = self._program.layout.stages[-1][partition].id
        assert receiver is not None
        return receiver

    def _place(self, operator: str, replica: int) -> Address:
        """Where the replica listens; waits until the driver has told so, which it does once it knows it of all."""
        deadline = time.monotonic() + FOUND_WITHIN_S
        while (operator, replica) not in self._known:
            self._known = self._places()
            if (operator, replica) not in self._known:
                self._check()
                if time.monotonic() > deadline:
                    raise EngineError(f"where {operator}/{replica} listens was not heard within {FOUND_WITHIN_S:g} s")
                time.sleep(LOOK_EVERY_S)
        return self._known[operator, replica]

    def _check(self) -> None:
        if self._over():
            raise _Over

    def _broke(self, partition: int, error: OSError) -> None:
        """Whoever is at the other end has died, most likely: Spark ends the attempt then, and knows better why."""
        deadline = time.monotonic() + BROKEN_S
        while time.monotonic() < deadline:
            self._check()
            time.sleep(LOOK_EVERY_S)
        receiver = "/".join(map(str, self._receiver(partition)))
        told = f"{type(error).__name__}: {error}"
        if partition in self._lines:
            raise EngineError(f"the connection to {receiver} broke: {told}") from error
        raise EngineError(
            f"{receiver} cannot be reached: {told}; workers must be able to connect to each other by TCP"
        ) from error
