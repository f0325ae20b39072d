"""What a topology declares, in the form that the monitor and the policies take."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.grouping.names import LATE
from penstock.metrics.shares import declared_edges, propagate
from penstock.metrics.snapshot import Declared
from penstock.policy.workload import Workload
from penstock.topology.on_error import DEAD_LETTERS
from penstock.topology.topology import Topology
from penstock.workload.trace import Trace


def declared(topology: Topology) -> dict[str, Declared]:
    """Predecessors, execution time and shares of every operator, in topological order.

    The share from a predecessor is the selectivity of the streams between them, 1 for a stream that declares none;
    dead letters are not expected.

    >>> topology = Topology("words")
    >>> lines = topology.source("lines")
    >>> split = topology.operator("split", str.split, inputs=lines, selectivity=5.0, execution_time_ms=3.0)
    >>> count = topology.operator("count", print, inputs=split)
    >>> {name: dict(one.shares) for name, one in declared(topology).items()}
    {'split': {'lines': 1.0}, 'count': {'split': 5.0}}
    """
    return {name: _declared(topology, name) for level in topology.levels() for name in level}


def workload_of(topology: Topology, trace: Trace, times_s: Mapping[str, float]) -> Workload:
    """What is known of a run beforehand: the trace's rates, the declared shares, these execution times.

    With several sources each brings an equal part of the trace.
    """
    entering = dict.fromkeys(topology.sources, 1.0 / len(topology.sources))
    reaching = propagate(entering, declared_edges(declared(topology)))
    return Workload(trace.peak, trace.mean, {name: reaching[name] for name in topology.operators}, times_s)


def expected_workload(topology: Topology, trace: Trace, measured_s: Mapping[str, float]) -> Workload:
    """The same with the declared execution times; where none is declared the measured one, or else 1 ms."""
    times_s = {
        name: measured_s.get(name, 0.001) if operator.execution_time_ms is None else operator.execution_time_ms / 1000
        for name, operator in topology.operators.items()
    }
    return workload_of(topology, trace, times_s)


def _declared(topology: Topology, name: str) -> Declared:
    operator = topology[name]
    shares: dict[str, float] = {}
    for stream in operator.inputs:
        sender = topology.operators.get(stream.sender)
        share = sender.selectivity.get(stream.name, 1.0) if sender else float(stream.name != DEAD_LETTERS)
        shares[stream.sender] = shares.get(stream.sender, 0.0) + share
    time_ms = operator.execution_time_ms
    time_s = None if time_ms is None else time_ms / 1000
    return Declared(topology.predecessors(name), time_s, shares, operator.in_order, operator.grouping in LATE)
