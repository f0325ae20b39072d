"""How used each replica is, for the load-balancing grouping.

    U_j = processed_j · et / td

Wladdimiro et al., SBAC-PAD 2022, equation 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.metrics.snapshot import OperatorLoad


@dataclass(frozen=True, slots=True)
class Utilisation:
    """U of an operator's active replicas, 0..1, and what one more event adds to it (et / td)."""

    by_replica: Mapping[int, float]
    step: float


def utilisation(load: OperatorLoad, active: Iterable[int], interval_s: float) -> Utilisation | None:
    """U of the replicas that are active from now on (a new one has 0); None while et is unknown.

    >>> load = OperatorLoad(name="clean", received_by={}, processed=30, backlog=0, active=(0,), pool=4,
    ...                     execution_time_s=0.02, processed_by={0: 30})
    >>> utilisation(load, (0, 1), interval_s=1.0)
    Utilisation(by_replica={0: 0.6, 1: 0.0}, step=0.02)
    """
    if load.execution_time_s is None:
        return None
    step = load.execution_time_s / interval_s
    used = {replica: min(1.0, load.processed_by.get(replica, 0) * step) for replica in active}
    return Utilisation(used, step)
