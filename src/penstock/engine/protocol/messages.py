"""What driver and replicas say to each other, as msgspec structs in length-prefixed msgpack frames."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

import msgspec

from penstock.engine.protocol.progress import Progress
from penstock.grouping.online_shuffle import Sketch
from penstock.metrics.counters import ReplicaCounters
from penstock.state.handover import Table
from penstock.state.segments import Segment

Address = tuple[str, int]  # host and port

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
    """Replica to driver: its cumulative counters in this attempt, or micro-batch."""

    generation: int
    batch: int
    operator: str  # or the source's name
    replica: int
    counters: ReplicaCounters
    ended: bool = False  # a source's slot: no event will come any more
    jump: float = 0.0  # a source's slot: what enters has just jumped, to so many events per second
    place: Address | None = None  # a replica's: where it listens for what is sent straight to it
    still: bool = False  # a source's slot: it has heard that sources stand still, and has sent all that it had polled


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


class Done(msgspec.Struct, omit_defaults=True):
    """Replica to driver: its part of a checkpoint is safe, and up to which checkpoint it has shown what it had to.

    `segments` has what it has written of its state since the last checkpoint that it knows to be committed, and
    `oldest` the first checkpoint of which its state still needs segments.
    """

    generation: int
    operator: str  # or the source's name
    replica: int
    number: int = 0
    counters: ReplicaCounters | None = None  # as of the barrier
    cursor: Any = None  # of a source's slot,
    sent: int = 0  # and how many events it has sent since the run began
    segments: list[Segment] = []
    oldest: int = 0
    part: Any = None  # what a sink wants to have kept
    shown: int = 0
    routing: int = 0  # the version that it follows, or a later one, behind its barrier


class Reports(msgspec.Struct, tag=True, omit_defaults=True):
    """Replica process to driver: what changed since the last time, and the last poll it has seen."""

    host: str
    pid: int
    poll: int
    reports: list[Report]
    online: list[OnlineReport] = []
    state: list[StateReport] = []
    done: list[Done] = []


class AtWork(msgspec.Struct, tag=True, frozen=True):
    """Replica to driver: this event is worked on from now on, or none; said only after processes died several times.

    Also what a standby says of itself, and who is about to fail, before Spark is told why.
    """

    generation: int
    operator: str
    replica: int
    event_id: str | None = None
    fails: bool = False


class StartQuery(msgspec.Struct, tag=True, frozen=True):
    """Source slot to driver: where do I start?"""

    generation: int
    source: str
    slot: int


class Start(msgspec.Struct, tag=True, omit_defaults=True):
    """Driver to source slot: the answer. `cursor` is None at the source's own beginning.

    `sent`: how many events the slot has sent before. `owed`: while sources stand still, it sends until it has sent so
    many.
    """

    cursor: Any = None
    sent: int = 0
    owed: int = 0


class TablesQuery(msgspec.Struct, tag=True, frozen=True):
    """Partition to driver: who owns which key groups as my attempt begins?"""

    generation: int


class Tables(msgspec.Struct, tag=True):
    """Driver to partition: the answer, the same for all partitions of an attempt."""

    tables: dict[str, Table]


class RestoreQuery(msgspec.Struct, tag=True, frozen=True):
    """Replica to driver: of which segments is the state of my operator?"""

    generation: int
    operator: str


class Restore(msgspec.Struct, tag=True):
    """Driver to replica: the answer, and the checkpoint that they are of."""

    checkpoint: int
    segments: list[Segment]


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where one replica listens."""

    operator: str
    replica: int
    address: Address


class Places(msgspec.Struct, tag=True, frozen=True):
    """Driver to every replica: where those of an attempt listen, by generation, once all have said so."""

    version: int = 0
    generations: dict[int, list[Place]] = {}


class OperatorRouting(msgspec.Struct, frozen=True):
    """Who may get events of one operator."""

    active: tuple[int, ...]
    table: Table | None = None  # of the key groups, where the operator keeps state

    @property
    def receiving(self) -> frozenset[int]:
        """The replicas to whom events go: active ones, or where there is state those that own key groups.

        >>> sorted(OperatorRouting((0, 2)).receiving), sorted(OperatorRouting((0, 2), Table(1, (0, 1))).receiving)
        ([0, 2], [0, 1])
        """
        return frozenset(self.active if self.table is None else self.table.owners)


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


Question = StartQuery | TablesQuery | RestoreQuery
Answer = Start | Tables | Restore
Upward = Hello | Proof | Reports | AtWork | Question
Notice = Progress | Routing | Utilisations | Places | Poll  # to all; of each kind the last one is told to who connects
Downward = Hello | Proof | Notice | Answer | OnlineNews

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
