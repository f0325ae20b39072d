"""Handing groups over from replica to replica while events flow: who may do what when. No clock, no files, no network.

A *table* says who owns which group; its version grows with every change. What makes a change exact:

1. A sending partition that hears of version v puts a switch (v) behind its last event under v − 1, to every replica
   that loses a group in v. Rows from one partition to another stay in order.
2. A replica that loses groups goes on with them until it has the switches of all sending partitions. Then no event of
   these groups can come any more under v − 1: it hands their state over.
3. A replica holds back the events of groups whose state it has not got, in order. Other groups never wait.
4. The next change begins when all of this one has been taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.state.owners import Owners, reassigned
from penstock.topology.replica_id import ReplicaId


@dataclass(frozen=True, slots=True)
class Table:
    """Who owns which group now and did before, and who has handed over what it loses in this version.

    >>> table = Table(2, (0, 0, 1, 2), before=(0, 0, 0, 0))
    >>> table.losers, table.gainers, table.moves(0, 2)
    ((0,), (1, 2), frozenset({3}))
    """

    version: int
    owners: Owners
    before: Owners = ()  # nothing: as they are now
    handed: tuple[int, ...] = ()

    def of(self, replica: int) -> frozenset[int]:
        """The groups of a replica."""
        return frozenset(group for group, owner in enumerate(self.owners) if owner == replica)

    @property
    def moved(self) -> dict[int, tuple[int, int]]:
        """The groups with another owner than before: from whom to whom."""
        pairs = zip(self.before, self.owners, strict=bool(self.before))
        return {group: (old, new) for group, (old, new) in enumerate(pairs) if old != new}

    @property
    def losers(self) -> tuple[int, ...]:
        """Replicas that lose a group."""
        return tuple(sorted({old for old, _ in self.moved.values()}))

    @property
    def gainers(self) -> tuple[int, ...]:
        """Replicas that get a group."""
        return tuple(sorted({new for _, new in self.moved.values()}))

    def moves(self, loser: int, gainer: int) -> frozenset[int]:
        """The groups that go from one replica to another."""
        return frozenset(group for group, pair in self.moved.items() if pair == (loser, gainer))

    def lost(self, replica: int) -> frozenset[int]:
        """The groups that a replica loses."""
        return frozenset(group for group, (old, _) in self.moved.items() if old == replica)

    def gained(self, replica: int) -> frozenset[int]:
        """The groups that a replica gets."""
        return frozenset(group for group, (_, new) in self.moved.items() if new == replica)


class SendingSide:
    """What a sending partition follows, for one operator that it sends to."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def hear(self, table: Table) -> tuple[int, ...]:
        """Follow the table from now on; the replicas that must get its switch first."""
        if table.version <= self.table.version:
            return ()
        self.table = table
        return table.losers


class ReceivingSide:
    """What a replica owns, gives and takes."""

    def __init__(self, replica: int, table: Table, senders: Iterable[ReplicaId]) -> None:
        self._replica = replica
        self._senders = frozenset(senders)
        self._table = table
        self._marked: dict[int, set[ReplicaId]] = {}
        self._to_lose: frozenset[int] = frozenset()
        self._to_gain: frozenset[int] = frozenset()
        self.handed = self.taken = table.version  # the last versions whose groups were given, and got

    @property
    def version(self) -> int:
        """The newest table heard of."""
        return self._table.version

    def hear(self, table: Table) -> None:
        """Take a new table, or news of who has handed over."""
        if table.version < self._table.version:
            return
        if table.version > self._table.version:
            self._to_lose, self._to_gain = table.lost(self._replica), table.gained(self._replica)
            if not self._to_lose:
                self.handed = table.version
            if not self._to_gain:
                self.taken = table.version
        self._table = table

    def mark(self, version: int, sender: ReplicaId) -> None:
        """A sender's switch has come: what it sends from now on follows that version."""
        self._marked.setdefault(version, set()).add(sender)

    def to_hand_over(self) -> frozenset[int]:
        """The groups to be handed over now."""
        if self._marked.get(self.version, set()) >= self._senders:
            return self._to_lose
        return frozenset()

    def hand_over(self) -> None:
        """They have been."""
        self._to_lose, self.handed = frozenset(), self.version
        self._marked.clear()

    def to_take(self) -> dict[int, frozenset[int]]:
        """The groups to be taken now, by the replica that has handed them over."""
        if not self._to_gain:
            return {}
        moves = {loser: self._table.moves(loser, self._replica) & self._to_gain for loser in self._table.handed}
        return {loser: groups for loser, groups in moves.items() if groups}

    def take(self, groups: Iterable[int]) -> None:
        """Their state is here."""
        self._to_gain -= frozenset(groups)
        if not self._to_gain:
            self.taken = self.version

    @property
    def waited_for(self) -> frozenset[int]:
        """The groups whose state is still to come."""
        return self._to_gain

    @property
    def settled(self) -> bool:
        """Whether nothing is left to give or take."""
        return not self._to_lose and not self._to_gain


class Coordinator:
    """The driver's side, for one operator: one change at a time; of the wishes that come meanwhile the last counts."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.moving = False  # a change is going on
        self.held = False  # no change may begin
        self._wish: tuple[int, ...] | None = None
        self._taken: set[int] = set()

    def want(self, active: Sequence[int]) -> None:
        """Have the groups spread over these replicas, as soon as can be."""
        self._wish = tuple(active)
        self._go_on()

    @property
    def waits(self) -> bool:
        """Whether other owners are wanted, and no change may begin."""
        return self.held and self._wish is not None and reassigned(self.table.owners, self._wish) != self.table.owners

    def hear(self, replica: int, handed: int, taken: int) -> None:
        """A replica has given, and got, all up to these versions."""
        table = self.table
        if not self.moving:
            return
        if handed >= table.version and replica in table.losers and replica not in table.handed:
            self.table = table = replace(table, handed=tuple(sorted((*table.handed, replica))))
        if taken >= table.version and replica in table.gainers:
            self._taken.add(replica)
        if not self.missing:
            self.moving = False
            self._go_on()

    @property
    def missing(self) -> tuple[int, ...]:
        """The replicas that the change waits for: those that lose first, then those that gain."""
        if not self.moving:
            return ()
        losing = tuple(replica for replica in self.table.losers if replica not in self.table.handed)
        return losing or tuple(replica for replica in self.table.gainers if replica not in self._taken)

    def release(self) -> None:
        """Changes may begin again."""
        self.held = False
        self._go_on()

    def begin(self) -> Table:
        """An attempt begins, with all state loaded by this table: whatever was going on has ended."""
        version, owners = self.table.version, self.table.owners
        if self._wish is not None and not self.held:
            version, owners, self._wish = version + 1, reassigned(owners, self._wish), None
        self.moving = False
        self.table = Table(version, owners)
        return self.table

    def roll_back(self) -> None:
        """While nothing runs: own again what was owned before the change that is going on; wishes are dropped."""
        if self.moving:
            self.table = Table(self.table.version + 1, self.table.before)
            self.moving, self._wish = False, None

    def _go_on(self) -> None:
        if self._wish is None or self.moving or self.held:
            return
        before, wish, self._wish = self.table.owners, self._wish, None
        owners = reassigned(before, wish)
        if owners != before:
            self.table, self.moving = Table(self.table.version + 1, owners, before), True
            self._taken = set()
