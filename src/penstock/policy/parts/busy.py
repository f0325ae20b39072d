"""How busy an operator's replicas were, and what they would do if they were busy all the time."""

from __future__ import annotations

from penstock.common.checks import share
from penstock.errors import InputError
from penstock.metrics.snapshot import OperatorLoad, Snapshot


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


def thresholds(policy: str, low: object, high: object) -> tuple[float, float]:
    """Thresholds on the busy share, or an InputError unless 0 < low < high ≤ 1.

    >>> thresholds("incremental", 0.8, 0.3)
    Traceback (most recent call last):
    penstock.errors.InputError: policy 'incremental': low must be below high; got low 0.8 and high 0.3
    """
    below, above = share(f"policy '{policy}'", "low", low), share(f"policy '{policy}'", "high", high)
    if not below < above:
        raise InputError(f"policy '{policy}': low must be below high; got low {low} and high {high}")
    return below, above


class TrueRates:
    """Events per second of busy time by operator: processed / busy time of all replicas; or last known; or None.

    >>> clean = OperatorLoad(name="clean", received_by={"in": 30}, processed=30, backlog=0, active=(0, 1), pool=4,
    ...                      busy_share={0: 0.5, 1: 0.25})
    >>> TrueRates().learn(Snapshot(time_s=1, interval_s=1, td_s=1, source_input={"in": 30}, operators={"clean": clean}))
    {'clean': 40.0}
    """

    def __init__(self) -> None:
        self._known: dict[str, float | None] = {}

    def learn(self, snapshot: Snapshot) -> dict[str, float | None]:
        """The true rates of this interval."""
        self._known = {name: self._of(load, snapshot) for name, load in snapshot.operators.items()}
        return self._known

    def _of(self, load: OperatorLoad, snapshot: Snapshot) -> float | None:
        busy_s = sum(load.busy_share.values()) * snapshot.interval_s
        if load.name in snapshot.incomplete or not (busy_s > 0 and load.processed > 0):
            return self._known.get(load.name)
        return load.processed / busy_s
