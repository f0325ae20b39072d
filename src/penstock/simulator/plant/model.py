"""What a topology does to events, as tables: how long each takes at each operator, and what becomes of it.

A source event is one of a list of payloads, in turn, and its place in the list is its *value*. Where the payloads are
known and operators are plain functions, every function is run once on every value beforehand, so that the simulation
takes the same way through the topology as a real run. Otherwise times are the declared ones, and the events given are
drawn from the declared selectivities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from penstock.apps.waiting import Waiting
from penstock.errors import InputError
from penstock.grouping.fields import key_of, stable_hash
from penstock.simulator.kernels.arrays import ALIKE, ONE_OF, TABLE, WHOLE, Floats, Ints, Work
from penstock.topology import Operator, To, Topology
from penstock.topology.on_error import DEAD_LETTERS
from penstock.topology.operator import Stream

UNKNOWN_VALUES = 1024  # distinct values where payloads are not known and some operator has a key
_WHOLE = 1e-9


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream as one of its readers sees it."""

    stream: Stream
    receiver: str
    base: int  # where its values begin in the receiver's tables
    row: int  # the first of its senders' rows at the receiver


@dataclass(frozen=True)
class OperatorModel:
    """One operator, ready to be simulated."""

    operator: Operator
    inputs: tuple[Edge, ...]
    outputs: tuple[Edge, ...]
    origin: Ints  # the sender of each row, as a place among `senders`
    senders: tuple[str, ...]
    work: Work
    mean_s: float  # mean time of an event
    keys: Ints  # the number of each value's key among all keys, where it keeps state


@dataclass(frozen=True)
class Model:
    """A whole topology; operators in topological order."""

    sources: Mapping[str, tuple[Edge, ...]]
    values: Mapping[str, int]  # distinct events of each source
    operators: Mapping[str, OperatorModel]

    @property
    def stateful(self) -> list[str]:
        """The operators that keep state."""
        return [name for name, one in self.operators.items() if one.operator.state is not None]

    @property
    def splits(self) -> bool:
        """Whether one event may become several."""
        copies = [len(edges) for edges in self.sources.values()]
        return max([*copies, *(_most(one) for one in self.operators.values())]) > 1


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known beside the topology itself."""

    payloads: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # by source
    times_s: Mapping[str, float] = field(default_factory=dict)  # measured mean times, instead of declared ones
    overhead_s: Mapping[str, float] = field(default_factory=dict)
    run_functions: bool = False  # whether `Waiting` functions may be run on the payloads
    exponential: bool = False
    seed: int = 0


@dataclass(slots=True)
class _Known:
    """The distinct events of one stream: how many, and which where that is known."""

    count: int
    events: list[Any] | None


def build_model(topology: Topology, facts: Facts | None = None) -> Model:
    """The tables of a topology.

    >>> topology = Topology("words")
    >>> split = topology.operator("split", str.split, inputs=topology.source("lines"), selectivity=5.0,
    ...                           execution_time_ms=3.0)
    >>> count = topology.operator("count", print, inputs=split, execution_time_ms=2.0)
    >>> model = build_model(topology)
    >>> model.operators["split"].mean_s, model.splits
    (0.003, True)
    """
    return _Builder(topology, facts or Facts()).build()


class _Builder:
    def __init__(self, topology: Topology, facts: Facts) -> None:
        topology.check()
        self._topology = topology
        self._facts = facts
        self._known: dict[Stream, _Known] = {}
        self._edges: dict[str, tuple[Edge, ...]] = {}  # by receiver
        self._given: dict[str, list[list[tuple[str, Any]]] | None] = {}  # outputs by operator and value
        self._random = np.random.default_rng(facts.seed)

    def build(self) -> Model:
        topology = self._topology
        keyed = any(one.grouping == "fields" for one in topology.operators.values())
        for source in topology.sources:
            payloads = self._facts.payloads.get(source)
            count = len(payloads) if payloads else (UNKNOWN_VALUES if keyed else 1)
            self._known[Stream(source)] = _Known(count, list(payloads) if payloads else None)
            self._known[Stream(source, DEAD_LETTERS)] = self._known[Stream(source)]  # of which none come
        for name in topology.in_order():
            self._edges[name] = self._inputs(topology[name])
            self._run(topology[name])
        operators = {name: self._operator(topology[name]) for name in topology.in_order()}
        sources = {name: self._read(Stream(name)) for name in topology.sources}
        return Model(sources, {name: self._known[Stream(name)].count for name in topology.sources}, operators)

    def _inputs(self, operator: Operator) -> tuple[Edge, ...]:
        edges, base, row = [], 0, 0
        for stream in operator.inputs:
            edges.append(Edge(stream, operator.name, base, row))
            base += self._known[stream].count
            sender = self._topology.operators.get(stream.sender)
            row += sender.pool if sender else 1
        return tuple(edges)

    def _read(self, stream: Stream) -> tuple[Edge, ...]:
        return tuple(edge for edges in self._edges.values() for edge in edges if edge.stream == stream)

    def _events(self, operator: Operator) -> _Known:
        """Everything that the operator may get."""
        inputs = [self._known[stream] for stream in operator.inputs]
        lists = [known.events for known in inputs if known.events is not None]
        events = [event for one in lists for event in one] if len(lists) == len(inputs) else None
        return _Known(sum(known.count for known in inputs), events)

    def _run(self, operator: Operator) -> None:
        """Find out which events the operator's streams carry."""
        got = self._events(operator)
        runs = self._facts.run_functions and isinstance(operator.run, Waiting) and got.events is not None
        given = [_outputs(operator, event) for event in got.events or ()] if runs else None
        self._given[operator.name] = given
        for name in operator.outputs:
            if given is None or name == DEAD_LETTERS:
                self._known[operator[name]] = _Known(got.count, None)
            else:
                events = [event for outputs in given for stream, event in outputs if stream == name]
                self._known[operator[name]] = _Known(len(events), events)

    def _operator(self, operator: Operator) -> OperatorModel:
        got = self._events(operator)
        service = service_times(operator, got.events, self._facts)
        outputs = tuple(edge for name in operator.outputs for edge in self._read(operator[name]))
        streams = list(dict.fromkeys(edge.stream.name for edge in outputs))
        senders = self._topology.predecessors(operator.name)
        origin = []
        for stream in operator.inputs:
            sender = self._topology.operators.get(stream.sender)
            origin += [senders.index(stream.sender)] * (sender.pool if sender else 1)
        rule, counts, first = self._giving(operator, streams, outputs)
        share = np.array([operator.selectivity.get(name, 1.0) for name in streams], np.float64)
        share = np.rint(share) if rule == WHOLE else share
        most = int(counts.max(initial=0)) if rule == TABLE else int(np.ceil(share).max(initial=0))
        work = Work(
            service=service,
            key=_keys(operator, got),
            counts=counts,
            first=first,
            share=share,
            stream=np.array([streams.index(edge.stream.name) for edge in outputs], np.int64),
            rows=np.array([edge.row for edge in outputs], np.int64),
            rules=np.array([rule, self._facts.exponential, most]),
            drawn=self._random.integers(1, 2**63, 2, np.uint64),
        )
        mean_s = float(service.mean())
        edges, keys = self._edges[operator.name], _key_numbers(operator, got)
        return OperatorModel(operator, edges, outputs, np.array(origin), senders, work, mean_s, keys)

    def _giving(self, operator: Operator, streams: list[str], outputs: tuple[Edge, ...]) -> tuple[int, Any, Any]:
        given = self._given[operator.name]
        if given is None or not streams:
            rule = giving([operator.selectivity.get(name, 1.0) for name in streams])
            return (
                rule,
                np.zeros((0, 0), np.int32),
                np.array([[edge.base] for edge in outputs], np.int32).reshape(-1, 1),
            )
        counts = np.array([[sum(s == name for s, _ in one) for one in given] for name in streams], np.int32)
        before = np.cumsum(counts, axis=1, dtype=np.int32) - counts
        first = [edge.base + before[streams.index(edge.stream.name)] for edge in outputs]
        return TABLE, counts.reshape(len(streams), -1), np.array(first, np.int32).reshape(len(outputs), -1)


def giving(shares: Sequence[float]) -> int:
    """How the number of events given is drawn from selectivities.

    Whole numbers are not drawn. Where they sum up to at most 1, an event goes to one stream or none; else to all
    streams alike, so that one whose fraction is no smaller gets what the other gets.

    >>> giving([1.0]) == WHOLE, giving([0.4, 0.5]) == ONE_OF, giving([0.82, 0.82]) == ALIKE
    (True, True, True)
    """
    if all(abs(share - round(share)) < _WHOLE for share in shares):
        return WHOLE
    return ONE_OF if sum(shares) <= 1 + _WHOLE else ALIKE


def service_times(operator: Operator, events: Sequence[Any] | None, facts: Facts) -> Floats:
    """The seconds that each value takes; one number where all take the same."""
    declared_ms = operator.execution_time_ms
    measured_s = facts.times_s.get(operator.name)
    if declared_ms is None and measured_s is None:
        raise InputError(
            f"{operator}: the simulator must know how long an event takes; declare execution_time_ms or calibrate "
            "with the store of a run"
        )
    mean_s = measured_s if measured_s is not None else (declared_ms or 0.0) / 1000
    times = np.array([mean_s])
    wait = operator.run.service_ms if isinstance(operator.run, Waiting) else None
    if callable(wait) and events:
        times = np.array([wait(event) for event in events]) / 1000
        if measured_s is not None:
            times *= measured_s / times.mean()
    return times + facts.overhead_s.get(operator.name, 0.0)


def _keys(operator: Operator, got: _Known) -> Ints:
    """The stable hash of each value's key; a value stands for its own key where events are not known."""
    key = operator.cost_by if operator.grouping == "online_shuffle" else operator.key
    if operator.grouping not in ("fields", "online_shuffle") or (operator.grouping == "online_shuffle" and key is None):
        return np.zeros(1, np.int64)
    if got.events is None or key is None:
        return np.array([stable_hash(value) for value in range(got.count)], np.int64)
    return np.array([stable_hash(key_of(key, event)) for event in got.events], np.int64)


def _key_numbers(operator: Operator, got: _Known) -> Ints:
    """Which of the distinct keys each value has, for an operator that keeps state."""
    if operator.state is None or operator.key is None:
        return np.zeros(0, np.int64)
    if got.events is None:
        return np.arange(got.count)
    numbers: dict[bytes, int] = {}
    keys = [msgspec.msgpack.encode(key_of(operator.key, event)) for event in got.events]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _outputs(operator: Operator, event: Any) -> list[tuple[str, Any]]:
    """What the operator gives for one event, by stream."""
    assert isinstance(operator.run, Waiting)
    output: Any = operator.run.function(event)
    if output is None:
        return []
    several = type(output) is not dict and (isinstance(output, list | tuple) or hasattr(output, "__next__"))
    outputs: list[Any] = list(output) if several else [output]
    plain = operator.outputs[0] if operator.outputs else ""
    return [(one.stream, one.event) if type(one) is To else (plain, one) for one in outputs]


def _most(one: OperatorModel) -> int:
    """The most copies that one event becomes."""
    work = one.work
    if not one.outputs:
        return 0
    if work.rules[0] == TABLE:
        return int(work.counts[work.stream].sum(axis=0).max(initial=0))
    if work.rules[0] == ONE_OF:
        return int(np.bincount(work.stream).max())
    return int(np.ceil(work.share[work.stream]).sum())
