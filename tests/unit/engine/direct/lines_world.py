"""Replicas that listen, and whoever sends to them, over loopback."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from types import SimpleNamespace

from penstock.engine.direct.greeting import Addressee
from penstock.engine.direct.receiver import Listener
from penstock.engine.direct.sender import Lines
from penstock.engine.plan.layout import full_layout
from penstock.engine.plan.program import DriverAddress, Program
from penstock.engine.protocol.messages import Address
from penstock.engine.protocol.tls import client_side
from penstock.topology import ReplicaId, Topology
from tests.waiting import LONG_S

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
        assert self.open.wait(LONG_S)
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


def stranger(address: Address) -> socket.socket:
    """One who holds the certificate, and not the secret."""
    return client_side(CREDENTIAL).wrap_socket(socket.create_connection(address, timeout=LONG_S))
