"""A bundle: one or more events for one replica, as they travel together.

    header (sender and its replica, level and partition of the receiver, number of events)
    + checksum of all the rest
    + msgpack [ids, born, events, keys, back]

The header can be read without decoding the events. Keys are there where the grouping is online shuffle, and where the
operator keeps state. A bundle of no events is a *switch*: what its sender sends from then on follows a later table of
key groups; or a *barrier*: it belongs to a later checkpoint.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from penstock.engine.protocol.messages import Address
from penstock.errors import EngineError
from penstock.grouping.online_shuffle import Request

T = TypeVar("T")

ROW_SCHEMA = "partition int, bundle binary"  # of what Spark takes from stage to stage
HASH = np.dtype("<u4")
_HEADER = struct.Struct("<HHHII")
_CRC = struct.Struct("<I")
_BODY = _HEADER.size + _CRC.size
_encoder = msgspec.msgpack.Encoder()


class Header(NamedTuple):
    """What can be told of a bundle without decoding it."""

    sender: int  # the sender's place in the program's list of senders
    replica: int  # of the sender
    level: int
    partition: int
    events: int


class Keys(msgspec.Struct, array_like=True):
    """Where state is kept, or the grouping is online shuffle: the hashes by which events were sent where they were."""

    replica: int  # of the sender
    hashes: bytes  # of the events' keys, as HASH
    requests: list[Request] = []  # the sender wants to know how far its estimates are off


class Events(msgspec.Struct, Generic[T], array_like=True):
    """The events of a bundle, by column."""

    ids: list[str]
    born: list[float]  # when each source event was due, seconds since the epoch
    events: list[T]
    keys: Keys | None = None
    back: Address | None = None  # where the sender hears of room, if events are bound late


class Switch(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """What a sender sends from now on follows this version of the table."""

    version: int


class Barrier(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """What a sender has sent so far belongs to this checkpoint, what it sends from now on to the next.

    It goes from member to member of the checkpoint: a bit for each, as the layout packs them; nothing if all are.
    """

    number: int
    members: bytes = b""


def pack_sign(header: Header, sign: Switch | Barrier) -> bytes:
    """A switch or barrier as bytes."""
    return _packed(header, _encoder.encode(sign))


def read_sign(bundle: bytes) -> Switch | Barrier:
    """What a bundle without events is."""
    sign: Switch | Barrier = _read_sign(memoryview(bundle)[_BODY:])
    return sign


_read_sign = msgspec.msgpack.Decoder(Switch | Barrier).decode


def pack(header: Header, events: Events[Any]) -> bytes:
    """A bundle as bytes."""
    return _packed(header, _encoder.encode(events))


def _packed(header: Header, body: bytes) -> bytes:
    head = _HEADER.pack(*header)
    return b"".join((head, _CRC.pack(zlib.crc32(body, zlib.crc32(head))), body))


def read_checked(bundle: bytes) -> Header:
    """The header, once it is known that the bundle is as it was sent; an EngineError if it is not."""
    if len(bundle) >= _BODY:
        view = memoryview(bundle)
        if _CRC.unpack_from(bundle, _HEADER.size)[0] == zlib.crc32(view[_BODY:], zlib.crc32(view[: _HEADER.size])):
            return read_header(bundle)
    raise EngineError(f"a bundle of {len(bundle)} bytes is not as it was sent: its checksum is another")


def read_header(bundle: bytes) -> Header:
    """The header alone."""
    return Header(*_HEADER.unpack_from(bundle))


class Unpacker:
    """Decodes the events of bundles into the type that an operator wants."""

    def __init__(self, event_type: Any = Any) -> None:
        self._decode = msgspec.msgpack.Decoder(Events[event_type]).decode

    def __call__(self, bundle: bytes) -> Events[Any]:
        """The events of a bundle."""
        return self._decode(memoryview(bundle)[_BODY:])
