"""A topology laid out as Spark stages: which partition of which stage is which replica."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.topology import ReplicaId, Topology

MOST_LINKS = 512  # between two stages; for each, Spark's shuffle has a connection, a thread and five open files
RELAYED = 16  # partitions of the smaller stage for each relay


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
    direct: bool = False  # all operators are one stage, to which Spark gives nothing: bundles go straight to replicas

    @property
    def tasks(self) -> int:
        """Slots that Spark must offer when all stages run at once."""
        return sum(self.relays(level) + len(stage) for level, stage in enumerate(self.stages))

    @property
    def all_stages(self) -> tuple[tuple[Partition, ...], ...]:
        """The stages as Spark numbers them; relays are one of their own, without anything to know."""
        every = ([(), stage] if self.relays(level) else [stage] for level, stage in enumerate(self.stages))
        return tuple(stage for stages in every for stage in stages)

    def relays(self, level: int) -> int:
        """Partitions before a stage that only pass rows on, so that not all of two large stages are linked; often 0.

        >>> [Layout(((Partition("a"),) * 64, (Partition("b"),) * pool)).relays(1) for pool in (8, 9, 64)]
        [0, 1, 4]
        """
        before, here = len(self.stages[level - 1]) if level else 0, len(self.stages[level])
        relays = math.ceil(min(before, here) / RELAYED)
        many = before * here > max(MOST_LINKS, 2 * relays * (before + here))
        return relays if many and not self.direct else 0

    @cached_property
    def _partitions(self) -> dict[ReplicaId, int]:
        return {one.id: number for stage in self.stages for number, one in enumerate(stage) if one.id is not None}

    def partition(self, operator: str, replica: int) -> int:
        """The replica's partition in its own stage."""
        return self._partitions[operator, replica]

    def has(self, operator: str, replica: int) -> bool:
        """Whether the replica is part of it."""
        return (operator, replica) in self._partitions

    @property
    def of_operators(self) -> frozenset[ReplicaId]:
        """All replicas of all operators: sources' slots are not among them."""
        return frozenset(one.id for stage in self.stages[1:] for one in stage if one.id is not None)

    def replicas(self, operator: str) -> tuple[int, ...]:
        """The operator's replicas."""
        return tuple(replica for name, replica in self._partitions if name == operator)

    def next_partition(self, level: int, target_level: int, target: int) -> int:
        """Where a bundle leaving `level` goes first: to its target, or to the way past the next stage."""
        return target if self.direct or target_level == level + 1 else len(self.stages[level + 1]) - 1


def lay_out(
    topology: Topology, replicas: Mapping[str, Sequence[int]], source_slots: int = 1, *, direct: bool = False
) -> Layout:
    """The stages of a topology whose operators have these replicas.

    >>> t = Topology("t")
    >>> a = t.operator("a", print, inputs=t.source("s"))
    >>> b = t.operator("b", print, inputs=a)
    >>> lay_out(t, {"a": [0, 1], "b": [0]}).stages[1]
    (Partition(operator='a', replica=0), Partition(operator='a', replica=1))
    """
    stages = [tuple(Partition(source, part) for source in topology.sources for part in range(source_slots))]
    levels = topology.levels()
    if direct:
        every = [Partition(name, replica) for operators in levels for name in operators for replica in replicas[name]]
        return Layout((*stages, tuple(every)), direct=True)
    for level, operators in enumerate(levels, start=1):
        partitions = [Partition(name, replica) for name in operators for replica in replicas[name]]
        if _is_passed(topology, level):
            partitions.append(Partition(None))
        stages.append(tuple(partitions))
    return Layout(tuple(stages))


def full_layout(topology: Topology, source_slots: int = 1, *, direct: bool = False) -> Layout:
    """The stages with every replica of every pool."""
    pools = {name: range(one.pool) for name, one in topology.operators.items()}
    return lay_out(topology, pools, source_slots, direct=direct)


def _is_passed(topology: Topology, level: int) -> bool:
    """Whether some stream skips the level."""
    return any(
        topology.level(sender) < level < topology.level(name)
        for name in topology.operators
        for sender in topology.predecessors(name)
    )
