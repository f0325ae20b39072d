"""What driver and replicas say to each other, as msgspec structs in length-prefixed msgpack frames."""

from __future__ import annotations

import hashlib
import hmac
import struct

import msgspec

from penstock.metrics.counters import ReplicaCounters

LENGTH = struct.Struct("<I")
MAX_FRAME_BYTES = 64 << 20


class Hello(msgspec.Struct, tag=True):
    """Both ends: a random challenge, and whose run this is."""

    run: str
    challenge: bytes


class Proof(msgspec.Struct, tag=True):
    """Both ends: the answer to the other's challenge."""

    answer: bytes


class Report(msgspec.Struct, tag=True):
    """Replica to driver: its cumulative counters in this batch."""

    generation: int
    batch: int
    operator: str  # or the source's name
    replica: int
    counters: ReplicaCounters


class Reports(msgspec.Struct, tag=True):
    """Replica process to driver: what changed since the last time, and the last poll it has seen."""

    host: str
    pid: int
    poll: int
    reports: list[Report]


class StartQuery(msgspec.Struct, tag=True):
    """Source slot to driver: where does my batch start?"""

    generation: int
    source: str
    slot: int
    batch: int


class BatchEnd(msgspec.Struct, tag=True):
    """Source slot to driver: my batch ends before this event of mine."""

    generation: int
    source: str
    slot: int
    batch: int
    position: int


class Position(msgspec.Struct, tag=True):
    """Driver to source slot: the answer to both, the position as the driver has it on disk."""

    batch: int
    position: int


class OperatorRouting(msgspec.Struct, frozen=True):
    """Who may get events of one operator, and how used they are."""

    active: tuple[int, ...]
    utilisation: dict[int, float] = {}
    step: float = 0.0  # et / td
    interval: int = 0  # grows with every publication of utilisations


class Routing(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: the routing in force from now on."""

    version: int
    operators: dict[str, OperatorRouting]
    epoch_s: float | None = None  # when the sources start; None: not yet
    stopping: bool = False  # sources send nothing more
    closing: bool = False  # nothing is in flight: operators are closed
    poll: int = 0  # report at once when this grows


Upward = Hello | Proof | Reports | StartQuery | BatchEnd
Downward = Hello | Proof | Routing | Position

_encoder = msgspec.msgpack.Encoder()
upward = msgspec.msgpack.Decoder(Upward)
downward = msgspec.msgpack.Decoder(Downward)


def frame(message: Upward | Downward) -> bytes:
    """A message as it travels."""
    payload = _encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def proof(secret: bytes, side: bytes, challenge: bytes) -> bytes:
    """What only someone who holds the run's secret can answer; the side keeps answers from being reflected."""
    return hmac.new(secret, side + challenge, hashlib.sha256).digest()
