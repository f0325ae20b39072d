"""The counters of simulated replicas: arrays, from which those of one replica are made when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.metrics.counters import HasBlock, OperatorCounters, ReplicaCounters
from penstock.metrics.latency import LatencyHistogram, merged
from penstock.metrics.table import BUSY_S, CPU_S, PROCESSED, Block, Columns
from penstock.simulator.kernels.arrays import CAUSES, Ints, Replicas
from penstock.simulator.plant.model import OperatorModel


@dataclass(frozen=True)
class Kept:
    """The state that replicas have now, and the key groups that came to them."""

    keys: Sequence[int]
    key_bytes: float
    moved: Sequence[int]
    waits: Sequence[LatencyHistogram]


@dataclass(frozen=True, eq=False)
class Rows(HasBlock):
    """A block of a table, read as counters by replica. End-to-end latency counts at the first replica."""

    block: Block
    receivers: tuple[str, ...]  # of each edge
    sent: Ints  # by replica and edge
    kept: Kept | None = None

    def __len__(self) -> int:
        return len(self.block.columns.replicas)

    def __iter__(self) -> Iterator[int]:
        return iter(self.block.columns.replicas)

    def __getitem__(self, replica: int) -> ReplicaCounters:
        if not 0 <= replica < len(self):
            raise KeyError(replica)
        columns = self.block.columns
        first = replica * columns.width
        numbers = iter(self.block.cells[first : first + columns.width].tolist())
        received, emitted, dropped = (
            {name: int(next(numbers)) for name in names} for names in (columns.senders, columns.streams, columns.causes)
        )
        found = ReplicaCounters(
            received=received,
            processed=int(next(numbers)),
            emitted=emitted,
            sent=self._sent(replica),
            dropped={cause: count for cause, count in dropped.items() if count},
            busy_s=next(numbers),
            cpu_s=next(numbers),
            queued=int(self.block.queued[replica]),
        )
        if replica == 0:
            found.latency = merged(self.block.latency)
        if self.kept is not None:
            found.state_keys = self.kept.keys[replica]
            found.state_bytes = round(self.kept.key_bytes * found.state_keys)
            found.groups_moved, found.moving = self.kept.moved[replica], self.kept.waits[replica]
        return found

    def _sent(self, replica: int) -> dict[str, int]:
        sent: dict[str, int] = {}
        for receiver, count in zip(self.receivers, self.sent[replica].tolist(), strict=True):
            sent[receiver] = sent.get(receiver, 0) + count
        return sent


def counted(model: OperatorModel, replicas: Replicas) -> Rows:
    """What the replicas of an operator have counted so far; what they count later changes nothing in it."""
    edges = {edge.stream.name: place for place, edge in enumerate(model.outputs)}
    columns = Columns(tuple(range(len(replicas.busy))), model.senders, tuple(edges), CAUSES)
    came, given = len(model.senders), len(model.senders) + len(edges)
    cells = np.empty((len(replicas.busy), columns.width))
    cells[:, :came] = replicas.received
    cells[:, came:given] = replicas.emitted[:, list(edges.values())]
    cells[:, given:PROCESSED] = replicas.dropped
    cells[:, PROCESSED] = replicas.processed
    cells[:, BUSY_S] = cells[:, CPU_S] = replicas.busy
    block = Block(columns, cells.ravel(), replicas.held.astype(np.float64), 0, ())
    return Rows(block, tuple(edge.receiver for edge in model.outputs), replicas.emitted.copy())


def with_state(rows: Rows, kept: Kept) -> Rows:
    """The same with what the replicas keep."""
    size = sum(round(kept.key_bytes * keys) for keys in kept.keys)
    return replace(rows, block=rows.block._replace(state_bytes=size), kept=kept)


def with_latency(counters: OperatorCounters, latency: LatencyHistogram) -> OperatorCounters:
    """The counters of an operator at whose first replica end-to-end latency is counted."""
    rows = counters.replicas
    assert isinstance(rows, Rows)
    return replace(counters, replicas=replace(rows, block=rows.block._replace(latency=(latency,))))
