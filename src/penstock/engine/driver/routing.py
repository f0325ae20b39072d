"""The routing in force, as the driver keeps it: which replicas are active, who owns key groups, how used they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from penstock.engine.driver.channel import Publisher
from penstock.engine.driver.members import Members
from penstock.engine.plan.layout import Layout
from penstock.engine.protocol.messages import OperatorRouting, Routing, Used, Utilisations
from penstock.errors import InputError
from penstock.metrics.utilisation import Utilisation
from penstock.state.handover import Coordinator, Table
from penstock.state.owners import first_owners
from penstock.topology import Operator, Topology

T = TypeVar("T")


class RoutingTable:
    """Every change makes a new version and is published at once."""

    def __init__(self, topology: Topology, replicas: Mapping[str, int | Sequence[int]], publisher: Publisher) -> None:
        self._topology = topology
        self._publisher = publisher
        self._lock = threading.Lock()
        for name in replicas:
            topology[name]
        self.pools = {name: tuple(range(one.pool)) for name, one in topology.operators.items()}  # to choose from
        first = {name: self._chosen(name, replicas.get(name, 1), ()) for name in topology.in_order()}
        self._coordinators = {
            name: Coordinator(Table(1, first_owners(operator.state.groups, first[name])))
            for name, operator in topology.operators.items()
            if operator.state is not None
        }
        operators = {name: OperatorRouting(active, table=self._table(name)) for name, active in first.items()}
        self.current = Routing(1, operators)
        self.members = Members()
        self.members.follow(self.current)
        self.used = Utilisations()
        self._wanted: dict[str, tuple[int, ...]] = {}  # to be active after `gather`, while whole pools are
        self._gathered: dict[str, tuple[int, ...]] = {}  # what `gather` made of it last, until it is asked for others
        self._rolled_back = False

    @property
    def active(self) -> dict[str, tuple[int, ...]]:
        """The active replicas of each operator, as asked for: while whole pools catch up, those are not counted."""
        return {name: operator.active for name, operator in self.current.operators.items()} | self._wanted

    def activate(self, name: str, replicas: int | Sequence[int]) -> tuple[int, ...]:
        """Make this many replicas of the operator active, or just these."""
        with self._lock:
            active = self._chosen(name, replicas, self.active[self._topology[name].name])
            self._gathered.pop(name, None)
            if name in self._wanted:
                self._wanted[name] = active
            else:
                self._activate({name: active})
            return active

    def spread(self) -> None:
        """Have whole pools active for a while, but not after a change was taken back; what is asked for waits."""
        with self._lock:
            skipped, self._rolled_back = self._rolled_back, False
            if skipped:
                return
            wanted, self._gathered = self.active, {}
            many = [name for name, active in wanted.items() if may_spread(self._topology[name], active)]
            self._wanted = wanted
            self._activate({name: tuple(dict.fromkeys((*wanted[name], *self.pools[name]))) for name in many})

    def gather(self) -> None:
        """Have only those active again that were asked for."""
        with self._lock:
            self._gather()

    @contextmanager
    def laying_out(self, pools: Mapping[str, Sequence[int]], at_work: Callable[[], Layout]) -> Iterator[None]:
        """While another layout takes over, choose among the replicas that both have; then, those of the one at work.

        Raises an InputError if a replica that is active is not among them.
        """
        with self._lock:
            check_pools(self._topology, pools, self.active)
            self._gather()
            self.pools = {name: tuple(r for r in now if r in pools[name]) for name, now in self.pools.items()}
        try:
            yield
        finally:
            with self._lock:
                self.pools = {name: at_work().replicas(name) for name in self.pools}

    def use(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Publish how used the replicas are, where the grouping looks at it."""
        with self._lock:
            version = self.used.version + 1
            now = {
                name: Used(dict(used.by_replica), used.step, version)
                for name, used in utilisation.items()
                if self._topology[name].grouping == "load_balancing"
            }
            if now:
                self.used = Utilisations(version, self.used.operators | now)
                self._publisher.publish(self.used)

    def coordinate(self, act: Callable[[dict[str, Coordinator]], T]) -> T:
        """Do something with the owners of key groups; what changes of them is published."""
        with self._lock:
            result = act(self._coordinators)
            operators = self.current.operators
            changed = {
                name: msgspec.structs.replace(operators[name], table=coordinator.table)
                for name, coordinator in self._coordinators.items()
                if operators[name].table != coordinator.table
            }
            if changed:
                self._change(operators | changed)
            return result

    def roll_back(self) -> None:
        """While nothing runs: whoever owned key groups before a change that is not finished owns them again.

        But for a whole pool that had caught up: that goes back as the next attempt begins, with nothing to move.
        """
        with self._lock:
            back: dict[str, tuple[int, ...]] = {}
            for name, coordinator in self._coordinators.items():
                if coordinator.moving:
                    coordinator.roll_back()
                    back[name] = self._gathered.get(name) or tuple(sorted(set(coordinator.table.owners)))
            self._rolled_back = True
            self._activate(back)

    def _chosen(self, name: str, replicas: int | Sequence[int], active: tuple[int, ...]) -> tuple[int, ...]:
        return chosen(self._topology[name], self.pools[self._topology[name].name], replicas, active)

    def _gather(self) -> None:
        wanted, self._wanted = self._wanted, {}
        if wanted:
            self._gathered = dict(wanted)
            self._activate(wanted)

    def _activate(self, active: Mapping[str, tuple[int, ...]]) -> None:
        operators = dict(self.current.operators)
        for name, replicas in active.items():
            if name in self._coordinators:
                self._coordinators[name].want(replicas)
            operators[name] = msgspec.structs.replace(operators[name], active=replicas, table=self._table(name))
        self._change(operators)

    def _table(self, name: str) -> Table | None:
        return self._coordinators[name].table if name in self._coordinators else None

    def _change(self, operators: dict[str, OperatorRouting]) -> None:
        changed = Routing(self.current.version + 1, operators)
        self.members.follow(changed)
        self.current = changed
        self._publisher.publish(self.current)


def chosen(
    operator: Operator, pool: Sequence[int], replicas: int | Sequence[int], active: tuple[int, ...]
) -> tuple[int, ...]:
    """Which replicas of the pool at work: those that are active stay as far as possible, then the lowest numbers.

    >>> from penstock.topology import Topology
    >>> t = Topology("t", pool=4)
    >>> o = t.operator("o", print, inputs=t.source("s"))
    >>> chosen(t["o"], range(4), 3, (1, 2)), chosen(t["o"], range(4), 1, (1, 2)), chosen(t["o"], range(4), [3, 0], (1,))
    ((1, 2, 0), (1,), (3, 0))
    """
    if not isinstance(replicas, int):
        ids = tuple(replicas)
        if not ids or len(set(ids)) < len(ids) or not set(ids) <= set(pool):
            raise InputError(f"{operator}: replicas must be among {_shown(pool)}, each once; got {list(ids)}")
        return ids
    if isinstance(replicas, bool) or not 1 <= replicas <= len(pool):
        raise InputError(f"{operator}: replicas must be from 1 to the pool of {len(pool)}; got {replicas!r}")
    spare = (r for r in sorted(pool) if r not in active)
    return (*active[:replicas], *(next(spare) for _ in range(replicas - len(active))))


def may_spread(operator: Operator, active: Sequence[int]) -> bool:
    """Whether more replicas, and fewer again, leave events in the order that somebody may count on.

    A single replica keeps all in order, and one that is chosen by key those of its key. Where there is state, events of
    a key stay in order whoever owns it.

    >>> from penstock.topology import Topology
    >>> t = Topology("t", pool=4)
    >>> o = t.operator("o", print, inputs=t.source("s"))
    >>> may_spread(t["o"], [0]), may_spread(t["o"], [0, 1])
    (False, True)
    """
    return operator.state is not None or (len(active) > 1 and not operator.in_order)


def _shown(pool: Sequence[int]) -> str:
    return f"0..{len(pool) - 1}" if set(pool) == set(range(len(pool))) else ", ".join(map(str, sorted(pool)))


def check_pools(topology: Topology, pools: Mapping[str, Sequence[int]], active: Mapping[str, tuple[int, ...]]) -> None:
    """Raise an InputError unless every operator's pool has its active replicas, and none beyond its declared pool."""
    for name, operator in topology.operators.items():
        missing = sorted(set(active[name]) - set(pools.get(name, ())))
        wrong = sorted(replica for replica in pools.get(name, ()) if not 0 <= replica < operator.pool)
        if missing or wrong:
            raise InputError(
                f"{operator}: its pool must have the active replicas and none beyond 0..{operator.pool - 1}; "
                f"missing: {missing}, beyond: {wrong}"
            )
