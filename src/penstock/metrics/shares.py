"""Shares: how much of what enters the topology reaches each operator.

    θ_i^p = λ_i^p / μ_p          θ_i = Σ_{p ∈ pred(i)} θ_i^p · θ_p

Wladdimiro et al., SBAC-PAD 2022, equations 2b and 2c.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.metrics.counters import RunCounters
from penstock.metrics.graph import OnEdges
from penstock.metrics.snapshot import Declared
from penstock.metrics.table import PROCESSED

Edges = Mapping[str, Mapping[str, float]]  # operator → predecessor → θ_i^p; operators in topological order


def propagate(own: Mapping[str, float], edges: Edges) -> dict[str, float]:
    """Let amounts at sources and operators flow down the topology: x_i = own_i + Σ_p θ_i^p · x_p.

    With 1 at the source this gives every θ_i; with the events of an interval, what each operator will receive;
    with the backlogs, what waits for an operator anywhere above it.

    >>> diamond = {"o1": {"in": 1}, "o2": {"o1": 0.7}, "o3": {"o1": 0.3}, "o4": {"o2": 0.4, "o3": 1}}
    >>> round(propagate({"in": 1}, diamond)["o4"], 12)
    0.58
    """
    known = OnEdges.of(edges)
    return known.graph.flow(own, known.numbers)


def shares_of(edges: Edges, source: str) -> dict[str, float]:
    """θ_i of every operator for one source.

    >>> shares_of({"split": {"in": 1.0}, "count": {"split": 5.0}}, "in")
    {'split': 1.0, 'count': 5.0}
    """
    amounts = propagate({source: 1.0}, edges)
    return {operator: amounts[operator] for operator in edges}


def declared_edges(declared: Mapping[str, Declared]) -> dict[str, dict[str, float]]:
    """The shares that the topology declares, 1 where it says nothing.

    >>> declared_edges({"clean": Declared(("tweets",)), "store": Declared(("clean",), shares={"clean": 0.5})})
    {'clean': {'tweets': 1.0}, 'store': {'clean': 0.5}}
    """
    return {operator: {p: one.shares.get(p, 1.0) for p in one.predecessors} for operator, one in declared.items()}


def counted_edges(counters: RunCounters, declared: Mapping[str, Declared]) -> OnEdges:
    """The shares over the whole run so far; declared ones where a predecessor has not processed anything.

    What a source sends reaches all who read it; only of what none was expected, its dead letters, it is measured.
    """
    table, sources = counters.table, counters.sources
    held, sums = table.held, table.sums(table.cells)
    edges = table.layout.edges(declared, held)
    names, (_, senders) = edges.graph.names, edges.graph.ends
    processed = sums[table.layout.operator_ends + PROCESSED].tolist()
    sent = np.array([*processed, *(sources.get(name, 0) for name in names[len(processed) :])])[senders]
    counted = edges.counted.copy()
    counted[[edges.graph.places[name, one] for name, by in held.items() for one in by]] = True
    given = counted & np.array([name in sources for name in names], bool)[senders] & (edges.shares > 0)
    measured = counted & ~given & (sent > 0)
    shares = np.where(given, 1.0, edges.shares)
    with np.errstate(invalid="ignore"):
        np.divide(edges.counts(sums, held), sent, out=shares, where=measured)
    return OnEdges(edges.graph, shares.tolist()).only(edges.declared | given | measured)


def source_output(
    entered: Mapping[str, float],
    processed: Mapping[str, float],
    edges: Edges,
    declared: Mapping[str, Declared] | None = None,
) -> float:
    """Source events that left: what the sinks processed, divided by their share of what entered.

    An operator of which others expect nothing (dead letters only) is a sink, too.

    >>> edges = {"clean": {"tweets": 1.0}, "store": {"clean": 0.5}}
    >>> source_output({"tweets": 100}, {"clean": 90, "store": 40}, edges)
    80.0
    """
    total = sum(entered.values())
    if not total:
        return 0.0
    known = OnEdges.of(edges)
    read = np.zeros(len(known.graph.names), bool)
    read[known.graph.ends[1][known.graph.declared(declared or {}) > 0]] = True
    sinks = [operator for operator, others in zip(known, read.tolist(), strict=False) if not others]
    reaching = propagate(entered, known)
    expected = sum(reaching[sink] for sink in sinks)
    return sum(processed.get(sink, 0.0) for sink in sinks) * total / expected if expected > 0 else 0.0
