"""The edges of a topology, and numbers on them: made once, for all intervals in which the topology is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock.metrics.snapshot import Declared
    from penstock.metrics.table import Layout

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Held = Mapping[str, Mapping[str, int]]  # what senders keep for operators, by operator and sender


class Graph:
    """Operators in topological order, and their edges in the same order, each with the places of its two ends.

    >>> diamond = Graph({"o1": ["in"], "o2": ["o1"], "o3": ["o1"], "o4": ["o2", "o3"]})
    >>> diamond.names, diamond.edges[-1]
    (('o1', 'o2', 'o3', 'o4', 'in'), ('o4', 'o3'))
    >>> diamond.receivers, diamond.senders
    ([0, 1, 2, 3, 3], [4, 0, 0, 1, 2])
    """

    def __init__(self, predecessors: Mapping[str, Iterable[str]]) -> None:
        self.operators = tuple(predecessors)
        self.edges = [(operator, one) for operator, several in predecessors.items() for one in several]
        sources = dict.fromkeys(one for _, one in self.edges if one not in predecessors)
        self.names = (*self.operators, *sources)
        place = {name: number for number, name in enumerate(self.names)}
        self.receivers = [place[operator] for operator, _ in self.edges]
        self.senders = [place[one] for _, one in self.edges]
        self._told: Mapping[str, Declared] | None = None
        self._declared = np.zeros(0)

    @cached_property
    def places(self) -> Mapping[tuple[str, str], int]:
        """The place of each edge."""
        return {edge: place for place, edge in enumerate(self.edges)}

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """The places of receivers and senders, as arrays."""
        return np.array(self.receivers, np.int64), np.array(self.senders, np.int64)

    def declared(self, told: Mapping[str, Declared]) -> Floats:
        """The share that is declared for each edge, 1 where none is; found out once."""
        if self._told is not told:
            self._told, self._declared = told, declared_on(self, {name: one.shares for name, one in told.items()})
        return self._declared

    def flow(self, own: Mapping[str, float], shares: Sequence[float]) -> dict[str, float]:
        """What reaches each operator: x_i = own_i + Σ_p θ_i^p · x_p."""
        amounts = [own.get(name, 0.0) for name in self.names]
        for receiver, sender, share in zip(self.receivers, self.senders, shares, strict=True):
            amounts[receiver] += share * amounts[sender]
        return {**own, **dict(zip(self.operators, amounts, strict=False))}

    def longest(self, lengths: Mapping[str, float | None]) -> float:
        """The longest way through the operators, each of its length."""
        own = [lengths.get(name) or 0.0 for name in self.names]
        ways = own.copy()
        for receiver, sender in zip(self.receivers, self.senders, strict=True):
            ways[receiver] = max(ways[receiver], ways[sender] + own[receiver])
        return max(ways, default=0.0)


class OnEdges(Mapping[str, Mapping[str, float]]):
    """A number for each edge, read by operator and predecessor.

    >>> shares = OnEdges.of({"o1": {"in": 1.0}, "o2": {"o1": 0.7}})
    >>> shares.numbers, shares["o2"]
    ([1.0, 0.7], {'o1': 0.7})
    """

    def __init__(self, graph: Graph, numbers: Sequence[float]) -> None:
        self.graph = graph
        self.numbers = numbers  # in the order of the graph's edges

    @classmethod
    def of(cls, numbers: Mapping[str, Mapping[str, float]]) -> OnEdges:
        """These numbers."""
        if isinstance(numbers, OnEdges):
            return numbers
        return cls(Graph(numbers), list(chain.from_iterable(one.values() for one in numbers.values())))

    def __len__(self) -> int:
        return len(self.graph.operators)

    def __iter__(self) -> Iterator[str]:
        return iter(self.graph.operators)

    def __getitem__(self, operator: str) -> Mapping[str, float]:
        return self._by_operator[operator]

    def __repr__(self) -> str:
        return repr(self._by_operator)

    def only(self, some: NDArray[np.bool_]) -> OnEdges:
        """Without the other edges."""
        if some.all():
            return self
        kept: dict[str, dict[str, float]] = {operator: {} for operator in self.graph.operators}
        for place in np.flatnonzero(some).tolist():
            operator, predecessor = self.graph.edges[place]
            kept[operator][predecessor] = self.numbers[place]
        return OnEdges.of(kept)

    @cached_property
    def _by_operator(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {operator: {} for operator in self.graph.operators}
        for (operator, predecessor), number in zip(self.graph.edges, self.numbers, strict=True):
            found[operator][predecessor] = number
        return found


class CountedEdges:
    """The edges of a layout: those that are declared, those with counters, and those over which something is `held`."""

    def __init__(self, layout: Layout, declared: Mapping[str, Declared], held: Held) -> None:
        self.told = declared
        senders = {name: one.senders for name, one in layout.operators.items()}
        told = {name: declared[name].predecessors if name in declared else () for name in senders}
        self.graph = Graph(
            {name: dict.fromkeys((*told[name], *senders[name], *held.get(name, ()))) for name in senders}
        )
        firsts = {name: first for name, (first, _) in layout.numbers.items()}
        columns = {(name, one): firsts[name] + n for name, several in senders.items() for n, one in enumerate(several)}
        self._columns: Ints = np.array([columns.get(edge, -1) for edge in self.graph.edges], np.int64)
        self.counted = self._columns >= 0
        self.declared = np.array([one in told[name] for name, one in self.graph.edges], bool)
        self.shares = self.graph.declared(declared)

    def know(self, held: Held) -> bool:
        """Whether all is held over edges of these."""
        return not held or all((name, one) in self.graph.places for name, by in held.items() for one in by)

    def counts(self, sums: Floats, held: Held) -> Floats:
        """What came over each edge, by the sums of all columns and by what is held."""
        counts: Floats = np.where(self.counted, sums[self._columns], 0.0) if sums.size else np.zeros(len(self._columns))
        for name, by in held.items():
            for one, count in by.items():
                counts[self.graph.places[name, one]] += count
        return counts


def declared_on(graph: Graph, shares: Mapping[str, Mapping[str, float]]) -> Floats:
    """The share that is declared for each edge, 1 where none is."""
    none: Mapping[str, float] = {}
    return np.array([shares.get(operator, none).get(one, 1.0) for operator, one in graph.edges], np.float64)
