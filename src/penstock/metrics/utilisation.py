"""How used each replica is, for the load-balancing grouping: two measures of U, both 0..1.

    used      U_j = processed_j · et / td      the paper's: what the replica did in the last interval
    booked    U_j = queued_j · et / td         ours: how much of the next interval it is taken up for already

A replica that is activated has worked little and is booked for nothing. With the paper's measure it gets all events
until it has caught up with the others, much faster than it can work; with ours just so many as they have queued.

Wladdimiro et al., SBAC-PAD 2022, equation 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from penstock.metrics.snapshot import OperatorLoad


@dataclass(frozen=True, slots=True)
class Utilisation:
    """U of an operator's active replicas, 0..1, and what one more event adds to it (et / td)."""

    by_replica: Mapping[int, float]
    step: float


Measure = Callable[[OperatorLoad, Iterable[int], float, int], Utilisation | None]  # with the number of senders


def used(load: OperatorLoad, active: Iterable[int], interval_s: float, senders: int = 1) -> Utilisation | None:  # noqa: ARG001
    """What the replicas that are active from now on did (a new one has 0); None while et is unknown.

    >>> load = OperatorLoad(name="clean", received_by={}, processed=30, backlog=0, active=(0,), pool=4,
    ...                     execution_time_s=0.02, processed_by={0: 30})
    >>> used(load, (0, 1), interval_s=1.0)
    Utilisation(by_replica={0: 0.6, 1: 0.0}, step=0.02)
    """
    return _measured(load.processed_by, load.execution_time_s, active, interval_s)


def booked(load: OperatorLoad, active: Iterable[int], interval_s: float, senders: int = 1) -> Utilisation | None:
    """What waits for the replicas that are active from now on; None while et is unknown.

    Queues count in whole rounds of the senders: if one event of each evens out a difference, then one sender alone
    must not see it, or all of them would send their first event to the same replica.

    >>> load = OperatorLoad(name="clean", received_by={}, processed=30, backlog=10, active=(0,), pool=4,
    ...                     execution_time_s=0.02, queued_by={0: 10})
    >>> booked(load, (0, 1), interval_s=1.0)
    Utilisation(by_replica={0: 0.2, 1: 0.0}, step=0.02)
    """
    if load.execution_time_s is None:
        return None
    step, queued = load.execution_time_s / interval_s, load.queued_by.get
    return Utilisation({one: min(1.0, queued(one, 0) // senders * senders * step) for one in active}, step)


MEASURES: Mapping[str, Measure] = {"booked": booked, "used": used}


def _measured(
    events: Mapping[int, int], time_s: float | None, active: Iterable[int], interval_s: float
) -> Utilisation | None:
    if time_s is None:
        return None
    step = time_s / interval_s
    return Utilisation({replica: min(1.0, events.get(replica, 0) * step) for replica in active}, step)
