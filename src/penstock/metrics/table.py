"""The counters of all replicas of a run as one table, so that an interval is a difference of two arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.metrics.graph import CountedEdges, Floats, Held, Ints
from penstock.metrics.latency import LatencyHistogram, merged

if TYPE_CHECKING:
    from penstock.metrics.counters import OperatorCounters, ReplicaCounters
    from penstock.metrics.snapshot import Declared

PROCESSED, BUSY_S, CPU_S = -3, -2, -1  # the last columns of an operator; before them what came, was given and dropped
_TIMES = ("busy time", "CPU time")


class Columns(NamedTuple):
    """What is counted of each replica of an operator."""

    replicas: tuple[int, ...]
    senders: tuple[str, ...]
    streams: tuple[str, ...]
    causes: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many numbers a replica has."""
        return len(self.senders) + len(self.streams) + len(self.causes) + 3

    @property
    def names(self) -> list[str]:
        """What each number is."""
        kinds = (("received from", self.senders), ("emitted to", self.streams), ("dropped by", self.causes))
        return [*(f"{kind} {name}" for kind, names in kinds for name in names), "processed", *_TIMES]


class Block(NamedTuple):
    """One operator's part of a table."""

    columns: Columns
    cells: Floats  # what each replica counted since the run's start, replica by replica
    queued: Floats  # what waits for each now
    state_bytes: int  # of all replicas
    latency: Sequence[LatencyHistogram]  # end to end, where a replica has any


class Now(NamedTuple):
    """What operators have now, in their order."""

    active: tuple[tuple[int, ...], ...] = ()
    pool: tuple[int, ...] = ()
    backlog: tuple[int, ...] = ()
    age_s: tuple[float, ...] = ()
    there: tuple[tuple[int, ...] | None, ...] = ()
    held_by: tuple[Mapping[str, int], ...] = ()


_now_of = attrgetter(*Now._fields)
_columns = lru_cache(maxsize=2**17)(Columns)  # equal ones are the same, so that layouts are quickly compared


def block_of(replicas: Mapping[int, ReplicaCounters]) -> Block:
    """The block of counters that came one by one."""
    several = list(replicas.values())
    senders = _names([one.received for one in several])
    streams = _names([one.emitted for one in several])
    causes = _names([one.dropped for one in several])
    cells: list[float] = []
    for one in several:
        cells += [one.received.get(name, 0) for name in senders]
        cells += [one.emitted.get(name, 0) for name in streams]
        cells += [one.dropped.get(name, 0) for name in causes]
        cells += (one.processed, one.busy_s, one.cpu_s)
    return Block(
        _columns(tuple(replicas), senders, streams, causes),
        np.array(cells, np.float64),
        np.array([one.queued for one in several], np.float64),
        sum([one.state_bytes for one in several]),
        [one.latency for one in several if one.latency.count],
    )


@dataclass(eq=False)
class Layout:
    """Which cell of a table is which number of which replica: the same from one interval to the next."""

    operators: Mapping[str, Columns]
    _edges: CountedEdges | None = field(default=None, init=False, repr=False)

    def edges(self, declared: Mapping[str, Declared], held: Held) -> CountedEdges:
        """Who sends to whom, by what is declared, has counters or is held; found out once."""
        if self._edges is None or self._edges.told is not declared:
            self._edges = CountedEdges(self, declared, {})
        return self._edges if self._edges.know(held) else CountedEdges(self, declared, held)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The operators."""
        return tuple(self.operators)

    @cached_property
    def rows(self) -> Mapping[str, tuple[int, int]]:
        """The first row of each operator, and the one after its last."""
        return dict(zip(self.operators, _spans(len(one.replicas) for one in self._columns), strict=True))

    @cached_property
    def numbers(self) -> Mapping[str, tuple[int, int]]:
        """The same of its columns, where those of all operators are counted through."""
        return dict(zip(self.operators, _spans(one.width for one in self._columns), strict=True))

    @cached_property
    def ends(self) -> Ints:
        """The cell after the last of each row: what is counted of every replica lies before it."""
        return np.cumsum(self._of_rows([one.width for one in self._columns]))

    @cached_property
    def number_of(self) -> Ints:
        """The column of each cell, where those of all operators are counted through."""
        widths = self._of_rows([one.width for one in self._columns])
        firsts = self._of_rows([first for first, _ in self.numbers.values()])
        return np.arange(widths.sum()) + np.repeat(firsts - self.ends + widths, widths)

    def _of_rows(self, values: Sequence[int]) -> Ints:
        """What is given for each operator, for each of its rows."""
        return np.repeat(np.array(values, np.int64), [len(one.replicas) for one in self._columns])

    @cached_property
    def operator_ends(self) -> Ints:
        """The column after the last of each operator, where those of all operators are counted through."""
        return np.cumsum([one.width for one in self._columns], dtype=np.int64)

    @cached_property
    def operator_of(self) -> Ints:
        """The place of the operator of each row."""
        return self._of_rows(range(len(self.operators)))

    @cached_property
    def width(self) -> int:
        """The columns of all operators."""
        return sum(one.width for one in self._columns)

    @cached_property
    def _columns(self) -> list[Columns]:
        return list(self.operators.values())


@dataclass
class CounterTable:
    """What all replicas of a run have counted since its start, and what they have now.

    Nobody changes it, but for taking over an equal layout.

    >>> from penstock.metrics.counters import OperatorCounters, ReplicaCounters
    >>> clean = {0: ReplicaCounters({"in": 30}, 25, busy_s=0.8), 3: ReplicaCounters({"in": 5}, 5)}
    >>> table = CounterTable.of({"clean": OperatorCounters(clean, (0, 3), 4, 0)})
    >>> table.cells.tolist(), table.totals(table.cells)["clean"]
    ([30.0, 25.0, 0.8, 0.0, 5.0, 5.0, 0.0, 0.0], [35.0, 30.0, 0.8, 0.0])
    """

    layout: Layout
    cells: Floats
    queued: Floats
    state_bytes: Sequence[int]
    latency: LatencyHistogram
    now: Now

    @classmethod
    def of(cls, operators: Mapping[str, OperatorCounters]) -> CounterTable:
        """The table of these operators."""
        blocks = [one.block for one in operators.values()]
        return cls(
            Layout(dict(zip(operators, (one.columns for one in blocks), strict=True))),
            _joined([one.cells for one in blocks]),
            _joined([one.queued for one in blocks]),
            [one.state_bytes for one in blocks],
            merged(latency for one in blocks for latency in one.latency),
            Now(*zip(*map(_now_of, operators.values()), strict=True)),
        )

    @cached_property
    def held(self) -> Held:
        """What senders keep for operators, where they do."""
        held = zip(self.layout.operators, self.now.held_by, strict=True) if any(self.now.held_by) else ()
        return {name: by for name, by in held if by}

    def keep_layout(self, earlier: CounterTable) -> None:
        """Take over the layout of an earlier table where it is equal: what was found out of it is found out once."""
        if _same(self.layout, earlier.layout):
            self.layout = earlier.layout

    def sums(self, cells: Floats) -> Floats:
        """The sum over an operator's replicas of each of its columns, in the replicas' order; of all operators."""
        sums: Floats = np.bincount(self.layout.number_of, cells, self.layout.width).astype(np.float64, copy=False)
        return sums

    def totals(self, cells: Floats) -> dict[str, list[float]]:
        """The same by operator."""
        sums: list[float] = self.sums(cells).tolist()
        return {name: sums[first:last] for name, (first, last) in self.layout.numbers.items()}

    def of_replicas(self, cells: Floats, column: int) -> Floats:
        """One of the last columns, for the replicas of all operators."""
        return cells[self.layout.ends + column]

    def growth(self, before: CounterTable) -> tuple[Floats, dict[str, str]]:
        """What was counted since an earlier table, and of which operators not all is to be trusted, with the reason.

        What is invalid or went back has not grown; of an operator the first of these is named.
        """
        earlier = before.like(self.layout)
        with np.errstate(invalid="ignore"):  # ∞ − ∞, which is no count
            grown: Floats = self.cells - earlier
        if not grown.size or (earlier.min() >= 0 and grown.min() >= 0 and grown.max() < math.inf):
            return grown, {}
        good = (earlier >= 0) & (grown >= 0) & (grown < math.inf)
        doubts: dict[str, str] = {}
        names = [(name, what) for name, one in self.layout.operators.items() for what in one.names]
        for cell in np.flatnonzero(~good).tolist():
            name, what = names[self.layout.number_of[cell]]
            doubts.setdefault(name, _doubt(what, float(earlier[cell]), float(self.cells[cell])))
        return np.where(good, grown, 0.0), doubts

    def like(self, layout: Layout) -> Floats:
        """The cells in another layout, 0 where this table has none."""
        if _same(self.layout, layout):
            return self.cells
        known = dict(zip(_cells(self.layout), self.cells.tolist(), strict=True))
        return np.array([known.get(cell, 0.0) for cell in _cells(layout)], np.float64)


def _same(one: Layout, other: Layout) -> bool:
    """Whether cells lie in the same places."""
    return one is other or (one.operators == other.operators and list(one.operators) == list(other.operators))


def _cells(layout: Layout) -> Iterable[tuple[str, int, str]]:
    for name, one in layout.operators.items():
        names = one.names
        for replica in one.replicas:
            for what in names:
                yield name, replica, what


def _doubt(what: str, before: float, now: float) -> str:
    shown = [f"{one:g}" if what in _TIMES or not math.isfinite(one) else f"{one:.0f}" for one in (before, now)]
    if 0 <= now < before < math.inf:
        return f"{what} went back from {shown[0]} to {shown[1]}: work was done again"
    return f"{what} is {shown[1]} after {shown[0]}"


def _names(counted: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for one in counted:
        if one and not one.keys() <= names.keys():
            names |= dict.fromkeys(one)
    return tuple(names)


def _spans(lengths: Iterable[int]) -> Iterable[tuple[int, int]]:
    return pairwise(accumulate(lengths, initial=0))


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)
