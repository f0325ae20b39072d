"""A topology laid out as Spark stages: which partition of which stage is which replica."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """Stage 0 are the sources' slots, stage 1 all replicas of all operators: bundles go straight from one to another.

    In a micro-batch they go through Spark's shuffle, level by level: stage n has the replicas of operators of level n,
    then a way past it if needed.
    """

    stages: tuple[tuple[Partition, ...], ...]
    by_level: bool = False

    @property
    def tasks(self) -> int:
        """Slots that Spark must offer when all stages run at once."""
        return sum(map(len, self.stages))

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
    def source_slots(self) -> frozenset[ReplicaId]:
        """All slots of all sources."""
        return frozenset(one.id for one in self.stages[0] if one.id is not None)

    @property
    def of_operators(self) -> frozenset[ReplicaId]:
        """All replicas of all operators: sources' slots are not among them."""
        return frozenset(one.id for stage in self.stages[1:] for one in stage if one.id is not None)

    def replicas(self, operator: str) -> tuple[int, ...]:
        """The operator's replicas."""
        return tuple(replica for name, replica in self._partitions if name == operator)

    def packed(self, members: Collection[ReplicaId]) -> bytes:
        """These replicas and slots, one bit for each of all."""
        bits = sum(1 << place for place, one in enumerate(self._partitions) if one in members)
        return bits.to_bytes(-(-len(self._partitions) // 8), "little")

    def unpacked(self, members: bytes) -> frozenset[ReplicaId]:
        """Those that were packed; of nothing, all.

        >>> layout = Layout(((Partition("s"),), (Partition("o", 0), Partition("o", 1))))
        >>> sorted(layout.unpacked(layout.packed({("s", 0), ("o", 1)})))
        [('o', 1), ('s', 0)]
        >>> len(layout.unpacked(b""))
        3
        """
        if not members:
            return frozenset(self._partitions)
        bits = int.from_bytes(members, "little")
        return frozenset(one for place, one in enumerate(self._partitions) if bits >> place & 1)

    def next_partition(self, level: int, target_level: int, target: int) -> int:
        """Where a bundle leaving `level` goes first: to its target, or to the way past the next stage."""
        return target if not self.by_level or target_level == level + 1 else len(self.stages[level + 1]) - 1


def lay_out(topology: Topology, replicas: Mapping[str, Sequence[int]], source_slots: int = 1) -> Layout:
    """The stages of a topology whose operators have these replicas.

    >>> t = Topology("t")
    >>> a = t.operator("a", print, inputs=t.source("s"))
    >>> b = t.operator("b", print, inputs=a)
    >>> [one.id for one in lay_out(t, {"a": [0, 1], "b": [0]}).stages[1]]
    [('a', 0), ('a', 1), ('b', 0)]
    """
    names = [name for operators in topology.levels() for name in operators]
    return Layout((_slots(topology, source_slots), _replicas(names, replicas)))


def lay_out_by_level(topology: Topology, replicas: Mapping[str, Sequence[int]], source_slots: int = 1) -> Layout:
    """The same for a micro-batch, in which rows go from level to level.

    >>> t = Topology("t")
    >>> a = t.operator("a", print, inputs=t.source("s"))
    >>> b = t.operator("b", print, inputs=a)
    >>> [one.id for one in lay_out_by_level(t, {"a": [0, 1], "b": [0]}).stages[2]]
    [('b', 0)]
    """
    stages = [_slots(topology, source_slots)]
    for level, names in enumerate(topology.levels(), start=1):
        way_past = (Partition(None),) if _is_passed(topology, level) else ()
        stages.append(_replicas(names, replicas) + way_past)
    return Layout(tuple(stages), by_level=True)


def full_layout(topology: Topology, source_slots: int = 1) -> Layout:
    """The stages with every replica of every pool."""
    return lay_out(topology, {name: range(one.pool) for name, one in topology.operators.items()}, source_slots)


def _slots(topology: Topology, source_slots: int) -> tuple[Partition, ...]:
    return tuple(Partition(source, part) for source in topology.sources for part in range(source_slots))


def _replicas(names: Iterable[str], replicas: Mapping[str, Sequence[int]]) -> tuple[Partition, ...]:
    return tuple(Partition(name, replica) for name in names for replica in replicas[name])


def _is_passed(topology: Topology, level: int) -> bool:
    """Whether some stream skips the level."""
    return any(
        topology.level(sender) < level < topology.level(name)
        for name in topology.operators
        for sender in topology.predecessors(name)
    )
