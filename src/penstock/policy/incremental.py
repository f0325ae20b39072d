"""Incremental: thresholds on the busy share, one replica at a time."""

from __future__ import annotations

from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.busy import mean_busy_share, thresholds
from penstock.policy.parts.expected import distrusted, kept


class Incremental:
    """One replica more where the mean busy share B is above `high`, one fewer where it is below `low`.

        B > high: r + 1        B < low: max(1, r − 1)        otherwise r

    Each operator is looked at alone, and queues do not count. The paper gives no thresholds: 0.8 and 0.3 are ours.
    With low at most high / 2, a step is not taken back as long as the input stays the same.

    >>> busy = OperatorLoad(name="clean", received_by={"in": 90}, processed=90, backlog=0, active=(0, 1), pool=8,
    ...                     busy_share={0: 0.95, 1: 0.85})
    >>> plan = Incremental().plan(Snapshot(time_s=1, interval_s=1, td_s=1, source_input={"in": 90},
    ...                                    operators={"clean": busy}))
    >>> plan.targets["clean"].replicas, plan.targets["clean"].reason
    (3, 'replicas are busy 0.9 of the time, above 0.8: one more')

    Kotto-Kombi et al., "DABS-Storm: A data-aware approach for elastic stream processing", TLDKS 40, 2019, §7.2.
    """

    def __init__(self, *, high: float = 0.8, low: float = 0.3) -> None:
        self.low, self.high = thresholds("incremental", low, high)

    def __repr__(self) -> str:
        return f"Incremental(high={self.high}, low={self.low})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A step up, a step down or none, for every operator."""
        loads = snapshot.operators.items()
        return Plan({name: distrusted(load, snapshot) or self._target(load) for name, load in loads})

    def _target(self, load: OperatorLoad) -> Target:
        busy = mean_busy_share(load)
        if busy is None:
            return kept(load, "no busy share measured yet")
        now = load.replicas
        said = f"replicas are busy {busy:.3g} of the time"
        if busy > self.high:
            return Target(now + 1, f"{said}, above {self.high:g}: one more")
        if busy >= self.low:
            return Target(now, f"{said}, from {self.low:g} to {self.high:g}: keeps {now}")
        if now == 1:
            return Target(now, f"{said}, below {self.low:g}, but one stays")
        return Target(now - 1, f"{said}, below {self.low:g}: one fewer")
