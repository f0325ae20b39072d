"""Notes of how much room a replica has, straight from its process to those of its senders, by datagram.

Counts are since the beginning of the attempt, so that a note that is lost is made good by the next. A note that was not
made with the run's secret is passed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket

import msgspec

from penstock.engine.protocol.messages import Address
from penstock.engine.protocol.ports import Ports, bound
from penstock.grouping import Room
from penstock.topology import ReplicaId

_MAC_BYTES = 8
_LONGEST = 1024


class RoomNote(msgspec.Struct, array_like=True, frozen=True):
    """From a replica to one of those that send to it: so many of its events are finished, so many it may have there."""

    generation: int
    receiver: str
    replica: int
    sender: str
    of: int  # the sender's replica
    finished: int
    credit: int

    @property
    def room(self) -> Room:
        """As the sender's grouping takes it."""
        return Room(self.finished, self.credit)

    @property
    def to(self) -> ReplicaId:
        """For whom it is."""
        return self.sender, self.of


class Post:
    """One process's end. Any thread may send; one receives."""

    def __init__(self, host: str, secret: bytes, ports: Ports | None = None) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._secret = secret
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            bound(lambda port: self.socket.bind((host, port)), host, ports)
        except BaseException:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self.address: Address = (host, self.socket.getsockname()[1])

    def send(self, note: RoomNote, to: Address) -> None:
        """Send a note; whether it arrives is not known."""
        payload = msgspec.msgpack.encode(note)
        with contextlib.suppress(OSError):  # whoever it was for is gone, or has more than it can take
            self.socket.sendto(self._mac(payload) + payload, to)

    def received(self) -> list[RoomNote]:
        """All notes that have come."""
        notes: list[RoomNote] = []
        with contextlib.suppress(OSError):  # no more is there
            while True:
                data = self.socket.recv(_LONGEST)
                mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
                if hmac.compare_digest(mac, self._mac(payload)):
                    notes.append(_decode(payload))
        return notes

    def _mac(self, payload: bytes) -> bytes:
        return hashlib.blake2b(payload, digest_size=_MAC_BYTES, key=self._secret[:64]).digest()

    def close(self) -> None:
        """Hear no more."""
        self.socket.close()


_decode = msgspec.msgpack.Decoder(RoomNote).decode
