"""What is shipped to the replicas: everything a partition needs to know to play its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle

from penstock.common.storage import Storage, storage_at
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import OperatorRouting, Routing, Utilisations
from penstock.engine.protocol.ports import Ports
from penstock.engine.protocol.tls import Credential
from penstock.grouping.names import WITH_STATE
from penstock.grouping.online_shuffle import OnlineShuffleOptions
from penstock.sources.base import Source
from penstock.topology import Operator, ReplicaId, Topology
from penstock.topology.on_error import DEAD_LETTERS

QUEUE_BYTES = 64 << 20


@dataclass(frozen=True)
class Edge:
    """A stream as one of its readers sees it: who reads, and how a replica is chosen for each event."""

    stream: str
    receiver: str
    level: int
    grouping: str
    key: Any
    senders: tuple[str, ...]  # all that send to this receiver
    online: OnlineShuffleOptions | None = None  # if the grouping is online shuffle


@dataclass(frozen=True)
class Limits:
    """Bounds that make replicas drop events; both off by default."""

    t_out_s: float | None = None
    q_size: int | None = None


@dataclass(frozen=True)
class DriverAddress:
    """How a replica reaches the driver, and is reached by others."""

    host: str
    port: int
    secret: bytes = field(repr=False)
    report_every_s: float
    credential: Credential | None = None  # with one, all of it is TLS
    ports: Ports | None = None  # of which it takes one to listen on


@dataclass(frozen=True)
class MicroBatch:
    """One batch of a DataFrame: its number, the source whose events are its rows, and how used replicas are."""

    number: int
    source: str
    used: Utilisations = field(default_factory=Utilisations)


@dataclass(frozen=True)
class Program:
    """One generation of one run."""

    run: str
    generation: int
    layout: Layout
    driver: DriverAddress
    limits: Limits
    edges: Mapping[str, tuple[Edge, ...]]  # by sender
    senders: tuple[str, ...]  # sources and operators; bundles name their sender by its place here
    routing: Mapping[str, OperatorRouting]  # to begin with, until the driver has been heard
    blobs: Mapping[str, bytes]  # operators and sources, pickled one by one,
    files: Mapping[str, str] = field(default_factory=dict)  # but for large ones: files that Spark takes to each worker
    shift: int = 0
    queue_bytes: int = QUEUE_BYTES  # a replica stops reading when its queue holds this much
    microbatch: MicroBatch | None = None  # in micro-batch mode every batch has a program of its own
    path: tuple[str, ...] = ()  # where the driver finds modules; workers look there too
    labels: Mapping[str, str] = field(default_factory=dict)  # operators as error messages name them
    on_error: Mapping[str, str] = field(default_factory=dict)  # what becomes of events that fail, if it is not `fail`
    storage_uri: str = "."  # where the run keeps state and what waits for checkpoints; all workers see it
    token: str = ""  # a file that the driver has left there, and that all workers must see
    checkpoint: int = 0  # to which the first events belong
    standby: bool = False  # it begins when it is called, as the attempt at work has died
    careful: bool = False  # replicas say what they are about to work on, as something ends their processes
    deadly: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by operator: events that did, by id

    @cached_property
    def storage(self) -> Storage:
        """The same, for this process."""
        return storage_at(self.storage_uri)

    @property
    def realtime(self) -> bool:
        """Whether stages run at once and the batch never ends, so that routing changes while it is at work."""
        return self.microbatch is None

    @property
    def direct(self) -> bool:
        """Whether bundles go straight from replica to replica, and not through Spark's shuffle."""
        return not self.layout.by_level

    def senders_to(self, receiver: str) -> list[ReplicaId]:
        """All that may send to the operator: slots of sources, replicas active or not."""
        senders = {sender for sender, edges in self.edges.items() for edge in edges if edge.receiver == receiver}
        every = [one for stage in self.layout.stages for one in stage]
        return [one.id for one in every if one.id is not None and one.operator in senders]

    def is_sink(self, name: str) -> bool:
        """Whether nobody reads anything of the operator but dead letters."""
        return all(edge.stream == DEAD_LETTERS for edge in self.edges[name])

    def needs_tables(self, name: str) -> bool:
        """Whether the source or operator keeps state, or sends to one that does."""
        table = self.routing[name].table if name in self.routing else None
        return table is not None or any(edge.grouping == WITH_STATE for edge in self.edges[name])

    def operator(self, name: str) -> tuple[Operator, Any]:
        """The operator as the user declared it, in a copy of this process's own, and the type of its events.

        The type is read where the topology is declared: annotations need not travel with a function.
        """
        operator: tuple[Operator, Any] = cloudpickle.loads(self._blob(name))
        return operator

    def _blob(self, name: str) -> bytes:
        """Only who needs a large one reads it."""
        if name not in self.files:
            return self.blobs[name]
        from pyspark import SparkFiles

        return Path(SparkFiles.get(self.files[name])).read_bytes()

    def source(self, name: str) -> Source:
        """The source, in a copy of this process's own."""
        source: Source = cloudpickle.loads(self._blob(name))
        return source


def active_senders(program: Program, routing: Routing, sender: str) -> tuple[int, ...]:
    """Who sends for that sender: an operator's active replicas, a source's slots."""
    if sender in routing.operators:
        return routing.operators[sender].active
    return tuple(one.replica for one in program.layout.stages[0] if one.operator == sender)


def edges_of(topology: Topology) -> dict[str, tuple[Edge, ...]]:
    """For every sender, the edges its events may take."""
    edges: dict[str, list[Edge]] = {name: [] for name in (*topology.sources, *topology.operators)}
    for operator in topology.operators.values():
        for stream in operator.inputs:
            edge = Edge(
                stream.name,
                operator.name,
                topology.level(operator.name),
                operator.grouping if operator.state is None else WITH_STATE,
                operator.cost_by if operator.grouping == "online_shuffle" else operator.key,
                topology.predecessors(operator.name),
                operator.grouping_options,
            )
            edges[stream.sender].append(edge)
    return {sender: tuple(out) for sender, out in edges.items()}
