"""From one generation of the query to the next, on other pools or other workers: nothing lost, nothing repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.engine.ledger import Ledger
from penstock.engine.positions import Positions
from penstock.errors import InputError
from penstock.topology import Topology


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


def turn_over(topology: Topology, ledger: Ledger, positions: Positions, generation: int) -> None:
    """While no query runs and nothing is in flight: the next events are those that were not sent.

    What was counted is final; Spark does its last batch again, which now begins there.
    """
    ended = {
        (source, slot): positions.start(batch, (source, slot)) + sent
        for source in topology.sources
        for slot, (batch, sent) in ledger.newest(source).items()
    }
    positions.rebase(ended)
    ledger.close_generation(generation)
