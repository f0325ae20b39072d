"""What driver and replicas say to each other, as msgspec structs in length-prefixed msgpack frames."""

from __future__ import annotations

import hashlib
import hmac
import struct

import msgspec

from penstock.engine.protocol.progress import Progress
from penstock.grouping.online_shuffle import Sketch
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table

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


class ReplyTo(msgspec.Struct, array_like=True, frozen=True):
    """Replica to one of its senders: the time that its events took, minus its estimate."""

    sender: str
    replica: int
    epoch: int
    delta_s: float


class OnlineReport(msgspec.Struct, omit_defaults=True):
    """Replica to driver: what it has learnt about its events, and what it knows of those that it sends to.

    `states` has the operators that it sends to by online shuffle, each with the state of its scheduler. `known` is the
    number of the last news that it has of them.
    """

    generation: int
    batch: int
    operator: str  # or the source's name
    replica: int
    sketch: Sketch | None = None
    number: int = 0  # of the sketch, in this batch
    replies: list[ReplyTo] = []
    states: dict[str, str] = {}
    known: int = 0


class StateReport(msgspec.Struct, array_like=True):
    """Replica to driver: the last versions of its operator's table of which it has handed over, and taken, all."""

    operator: str
    replica: int
    generation: int
    handed: int
    taken: int
    written: bool = False  # all of its state, for the next shift


class Reports(msgspec.Struct, tag=True, omit_defaults=True):
    """Replica process to driver: what changed since the last time, and the last poll it has seen."""

    host: str
    pid: int
    poll: int
    reports: list[Report]
    online: list[OnlineReport] = []
    state: list[StateReport] = []


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


class Halted(msgspec.Struct, tag=True):
    """Source slot to driver: sources are to stop, and this is the first event that I have not sent."""

    generation: int
    source: str
    slot: int
    batch: int
    position: int
    since: int  # the version of the progress that said so


class TablesQuery(msgspec.Struct, tag=True, frozen=True):
    """Partition to driver: who owns which key groups as my batch begins? Or, for one operator, as it ends?"""

    generation: int
    batch: int
    ending: str = ""  # the operator


class Tables(msgspec.Struct, tag=True):
    """Driver to partition: the answer, the same for all partitions of the batch."""

    batch: int
    ending: str
    tables: dict[str, Table]


class Position(msgspec.Struct, tag=True, omit_defaults=True):
    """Driver to source slot: the answer to all three, the position as the driver has it on disk.

    `until`: another shift sends from there on.
    """

    batch: int
    position: int
    until: int | None = None


class OperatorRouting(msgspec.Struct, frozen=True):
    """Who may get events of one operator."""

    active: tuple[int, ...]
    table: Table | None = None  # of the key groups, where the operator keeps state


class Routing(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: who may get events from now on."""

    version: int
    operators: dict[str, OperatorRouting]


class Used(msgspec.Struct, frozen=True):
    """How used the replicas of one operator are."""

    by_replica: dict[int, float]
    step: float  # et / td
    interval: int  # grows with every publication


class Utilisations(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: what the load-balancing grouping looks at, once an interval."""

    version: int = 0
    operators: dict[str, Used] = {}


class Poll(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: report at once."""

    number: int


class SketchOf(msgspec.Struct, array_like=True, frozen=True):
    """The newest sketch of a replica."""

    operator: str
    replica: int
    sketch: Sketch


class ReplyOf(msgspec.Struct, array_like=True, frozen=True):
    """A replica's reply to the one who reads this."""

    operator: str
    replica: int
    epoch: int
    delta_s: float


class OnlineNews(msgspec.Struct, tag=True):
    """Driver to a sending replica: what is new about those that it sends to."""

    generation: int
    batch: int
    operator: str  # whom it is for
    replica: int
    number: int  # grows with all that is new; what the sender then knows
    sketches: list[SketchOf]
    replies: list[ReplyOf]


Question = StartQuery | BatchEnd | Halted
Upward = Hello | Proof | Reports | StartQuery | BatchEnd | Halted | TablesQuery
Notice = Progress | Routing | Utilisations | Poll  # to all; of each kind the last one is told to who connects
Downward = Hello | Proof | Notice | Position | Tables | OnlineNews

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
