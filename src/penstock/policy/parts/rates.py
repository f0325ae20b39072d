"""True rates: what a replica would do if it were busy all the time."""

from __future__ import annotations

from penstock.metrics.snapshot import OperatorLoad, Snapshot


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
