"""A bundle: one or more events for one replica, as they travel between two stages.

    header (sender and its replica, level and partition of the receiver, number of events)
    + msgpack [ids, born, events, keys]

The header can be read without decoding the events. Keys are there where the grouping is online shuffle, and where the
operator keeps state. A bundle of no events is a *marker*: what its sender sends from then on follows a later table of
key groups; or a *barrier*: it belongs to a later checkpoint. An empty bundle is a *nudge*: Spark hands a row to Python
only once another row is there, so a nudge is sent behind every bundle that may be the last for a while.
"""

from __future__ import annotations

import struct
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from penstock.grouping.online_shuffle import Request

T = TypeVar("T")

ROW_SCHEMA = "partition int, bundle binary"  # of what travels between two stages
NUDGE = b""
HASH = np.dtype("<u4")
_HEADER = struct.Struct("<HHHII")
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


class Marker(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """What a sender sends from now on follows this version of the table."""

    version: int


class Barrier(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """What a sender has sent so far belongs to this checkpoint, what it sends from now on to the next."""

    number: int


def pack_sign(header: Header, sign: Marker | Barrier) -> bytes:
    """A marker or barrier as bytes."""
    return _HEADER.pack(*header) + _encoder.encode(sign)


def read_sign(bundle: bytes) -> Marker | Barrier:
    """What a bundle without events is."""
    sign: Marker | Barrier = _read_sign(memoryview(bundle)[_HEADER.size :])
    return sign


_read_sign = msgspec.msgpack.Decoder(Marker | Barrier).decode


def pack(header: Header, events: Events[Any]) -> bytes:
    """A bundle as bytes."""
    return _HEADER.pack(*header) + _encoder.encode(events)


def read_header(bundle: bytes) -> Header:
    """The header alone."""
    return Header(*_HEADER.unpack_from(bundle))


class Unpacker:
    """Decodes the events of bundles into the type that an operator wants."""

    def __init__(self, event_type: Any = Any) -> None:
        self._decode = msgspec.msgpack.Decoder(Events[event_type]).decode

    def __call__(self, bundle: bytes) -> Events[Any]:
        """The events of a bundle."""
        return self._decode(memoryview(bundle)[_HEADER.size :])
