"""How busy an operator's active replicas were, for policies with thresholds."""

from __future__ import annotations

from penstock.metrics.snapshot import OperatorLoad


def mean_busy_share(load: OperatorLoad) -> float | None:
    """The mean busy share of the active replicas; None where nothing was measured.

    A replica that nothing is known of was idle, as long as another one was measured.

    >>> load = OperatorLoad(name="clean", received_by={}, processed=9, backlog=0, active=(0, 1), pool=4,
    ...                     busy_share={0: 0.5, 1: 0.75, 2: 0.0, 3: 0.0})
    >>> mean_busy_share(load)
    0.625
    """
    if not load.busy_share or not load.active:
        return None
    return sum(load.busy_share.get(replica, 0.0) for replica in load.active) / len(load.active)
