"""Shares: how much of what enters the topology reaches each operator.

    θ_i^p = λ_i^p / μ_p          θ_i = Σ_{p ∈ pred(i)} θ_i^p · θ_p

Wladdimiro et al., SBAC-PAD 2022, equations 2b and 2c.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.metrics.counters import RunCounters
from penstock.metrics.snapshot import Declared
from penstock.metrics.table import PROCESSED

_UNDECLARED = Declared(())
Edges = Mapping[str, Mapping[str, float]]  # operator → predecessor → θ_i^p; operators in topological order


def propagate(own: Mapping[str, float], edges: Edges) -> dict[str, float]:
    """Let amounts at sources and operators flow down the topology: x_i = own_i + Σ_p θ_i^p · x_p.

    With 1 at the source this gives every θ_i; with the events of an interval, what each operator will receive;
    with the backlogs, what waits for an operator anywhere above it.

    >>> diamond = {"o1": {"in": 1}, "o2": {"o1": 0.7}, "o3": {"o1": 0.3}, "o4": {"o2": 0.4, "o3": 1}}
    >>> round(propagate({"in": 1}, diamond)["o4"], 12)
    0.58
    """
    amounts = dict(own)
    for operator, shares in edges.items():
        amount = own.get(operator, 0.0)
        for predecessor, share in shares.items():
            amount += share * amounts.get(predecessor, 0.0)
        amounts[operator] = amount
    return amounts


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


def counted_edges(counters: RunCounters, declared: Mapping[str, Declared]) -> dict[str, dict[str, float]]:
    """The shares over the whole run so far; declared ones where a predecessor has not processed anything.

    What a source sends reaches all who read it; only of what none was expected, its dead letters, it is measured.
    """
    processed: dict[str, float] = dict(counters.sources)
    edges: dict[str, dict[str, float]] = {}
    totals = counters.table.totals(counters.table.cells)
    for operator, counted in counters.operators.items():
        senders = counters.table.layout.operators[operator].senders
        received = dict(zip(senders, totals[operator], strict=False))
        for sender, held in counted.held_by.items():
            received[sender] = received.get(sender, 0) + held
        processed[operator] = totals[operator][PROCESSED]
        told = declared.get(operator)
        shares = {p: told.shares.get(p, 1.0) for p in told.predecessors} if told else {}
        for sender, count in received.items():
            if sender in counters.sources and shares.get(sender, 1.0) > 0:
                shares[sender] = 1.0
            elif processed.get(sender, 0) > 0:
                shares[sender] = count / processed[sender]
        edges[operator] = shares
    return edges


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
    senders = {
        predecessor
        for operator, shares in edges.items()
        for predecessor in shares
        if (declared or {}).get(operator, _UNDECLARED).shares.get(predecessor, 1.0) > 0
    }
    sinks = [operator for operator in edges if operator not in senders]
    total = sum(entered.values())
    if not total:
        return 0.0
    reaching = propagate(entered, edges)
    expected = sum(reaching[sink] for sink in sinks)
    return sum(processed.get(sink, 0.0) for sink in sinks) * total / expected if expected > 0 else 0.0
