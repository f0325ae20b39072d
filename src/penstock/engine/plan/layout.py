"""A topology laid out as Spark stages: which partition of which stage is which replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.topology import ReplicaId, Topology


@dataclass(frozen=True, slots=True)
class Partition:
    """What one partition of a stage is: a replica of an operator, or the way past the stage (no operator)."""

    operator: str | None
    replica: int = 0

    @property
    def id(self) -> ReplicaId | None:
        """The replica, or the source's slot, that it is."""
        return None if self.operator is None else (self.operator, self.replica)


@dataclass(frozen=True)
class Layout:
    """Stage 0 are the sources' slots; stage n the replicas of operators of level n, then a way past it if needed."""

    stages: tuple[tuple[Partition, ...], ...]

    @property
    def tasks(self) -> int:
        """Slots that Spark must offer when all stages run at once."""
        return sum(len(stage) for stage in self.stages)

    @cached_property
    def _partitions(self) -> dict[ReplicaId, int]:
        return {one.id: number for stage in self.stages for number, one in enumerate(stage) if one.id is not None}

    def partition(self, operator: str, replica: int) -> int:
        """The replica's partition in its own stage."""
        return self._partitions[operator, replica]

    def has(self, operator: str, replica: int) -> bool:
        """Whether the replica is part of it."""
        return (operator, replica) in self._partitions

    def replicas(self, operator: str) -> tuple[int, ...]:
        """The operator's replicas."""
        return tuple(replica for name, replica in self._partitions if name == operator)

    def next_partition(self, level: int, target_level: int, target: int) -> int:
        """Where a bundle leaving `level` goes first: to its target, or to the way past the next stage."""
        return target if target_level == level + 1 else len(self.stages[level + 1]) - 1


def lay_out(topology: Topology, replicas: Mapping[str, Sequence[int]], source_slots: int = 1) -> Layout:
    """The stages of a topology whose operators have these replicas.

    >>> t = Topology("t")
    >>> a = t.operator("a", print, inputs=t.source("s"))
    >>> b = t.operator("b", print, inputs=a)
    >>> lay_out(t, {"a": [0, 1], "b": [0]}).stages[1]
    (Partition(operator='a', replica=0), Partition(operator='a', replica=1))
    """
    stages = [tuple(Partition(source, part) for source in topology.sources for part in range(source_slots))]
    levels = topology.levels()
    for level, operators in enumerate(levels, start=1):
        partitions = [Partition(name, replica) for name in operators for replica in replicas[name]]
        if _is_passed(topology, level):
            partitions.append(Partition(None))
        stages.append(tuple(partitions))
    return Layout(tuple(stages))


def full_layout(topology: Topology, source_slots: int = 1) -> Layout:
    """The stages with every replica of every pool."""
    return lay_out(topology, {name: range(one.pool) for name, one in topology.operators.items()}, source_slots)


def _is_passed(topology: Topology, level: int) -> bool:
    """Whether some stream skips the level."""
    return any(
        topology.level(sender) < level < topology.level(name)
        for name in topology.operators
        for sender in topology.predecessors(name)
    )
