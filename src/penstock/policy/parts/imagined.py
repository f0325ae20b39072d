"""A policy whose plans nobody carries out: what they would have come to, and how it would see the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.metrics.fluid import Flow, late_part, slack_s, through_s
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan
from penstock.policy.parts.expected import Shares


@dataclass(frozen=True, slots=True)
class Came:
    """What came in an interval: per second and operator, what one event takes, and how long one may wait."""

    seconds: float
    events: float  # that entered
    rates: Mapping[str, float]  # by operator, as if nobody above it held anything up
    times_s: Mapping[str, float]
    slack_s: float

    @classmethod
    def of(cls, snapshot: Snapshot, shares: Shares, target_s: float) -> Came | None:
        """From a snapshot; None where its numbers are not to be trusted."""
        edges = shares.learn(snapshot)
        if snapshot.incomplete or not snapshot.interval_s > 0:
            return None
        loads = snapshot.operators
        came = propagate({name: float(count) for name, count in snapshot.source_input.items()}, edges)
        way_s = through_s((name, one.received_by, one.execution_time_s) for name, one in loads.items())
        return cls(
            snapshot.interval_s,
            float(snapshot.entered),
            {name: came[name] / snapshot.interval_s for name in loads},
            {name: one.execution_time_s for name, one in loads.items() if one.execution_time_s},
            slack_s(target_s, way_s),
        )


class Imagined:
    """One policy's plans, each played on what came since as a fluid, with a queue of its own for every operator."""

    def __init__(self) -> None:
        self.replicas: dict[str, int] = {}  # of its last plan
        self.queued: dict[str, float] = {}

    def decide(self, plan: Plan, snapshot: Snapshot) -> None:
        """Take the replicas of a plan, within the pools."""
        pools = snapshot.loads.pool
        self.replicas = {name: max(1, min(n, pools[name])) for name, n in plan.replicas.items() if name in pools}

    def begin(self, snapshot: Snapshot) -> None:
        """Let wait what really waits."""
        self.queued = {name: float(one.backlog) for name, one in snapshot.operators.items()}

    def play(self, came: Came) -> tuple[float, float]:
        """Let the interval pass: how many events were late, and the replica-seconds that it took."""
        flows = {
            name: Flow(came.rates[name], time_s, self.queued.get(name, 0.0), self._part(name, came))
            for name, time_s in came.times_s.items()
            if name in self.replicas
        }
        late = came.events * late_part(flows, self.replicas, came.seconds, came.slack_s)
        self.queued = {name: one.left(self.replicas[name], came.seconds) for name, one in flows.items()}
        return late, came.seconds * sum(self.replicas.values())

    def overdue(self, came: Came) -> float:
        """Events that wait and will have waited for too long, where most do."""
        over = (
            queued - came.slack_s * self.replicas[name] / came.times_s[name]
            for name, queued in self.queued.items()
            if name in self.replicas and name in came.times_s
        )
        return max(0.0, *over, 0.0)

    @staticmethod
    def _part(name: str, came: Came) -> float:
        return min(1.0, came.rates[name] * came.seconds / came.events) if came.events else 1.0


def as_if(snapshot: Snapshot, own: Imagined, real: Imagined) -> Snapshot:
    """The snapshot as it would be with a policy's own replicas at work; the same where its plans were those of `real`.

    Of what waits it is the difference between both fluids that is added, so that a fluid's own error cancels out.
    """
    loads = {
        name: _seen(load, own.replicas.get(name, load.replicas) - real.replicas.get(name, load.replicas), more)
        for name, load in snapshot.operators.items()
        for more in [own.queued.get(name, 0.0) - real.queued.get(name, 0.0)]
    }
    return replace(snapshot, operators=loads)


def _seen(load: OperatorLoad, more_replicas: int, more_events: float) -> OperatorLoad:
    """A load with so many replicas and waiting events more, or fewer; the work is shared evenly by the active ones.

    >>> from penstock.testing.loads import load
    >>> one = _seen(load("clean", {"in": 9}, replicas=2, backlog=4, busy_share={0: 0.5, 1: 0.1}), 1, 10.4)
    >>> one.active, one.backlog, {replica: round(share, 3) for replica, share in one.busy_share.items()}
    ((0, 1, 2), 14, {0: 0.2, 1: 0.2, 2: 0.2})
    """
    events = round(more_events)
    if not more_replicas and not events:
        return load
    count = max(1, min(load.pool, load.replicas + more_replicas))
    free = (one for one in range(load.pool) if one not in load.active)
    active = load.active[:count] + tuple(next(free) for _ in range(count - load.replicas))
    booked = max(0, load.booked + events)
    busy = min(1.0, sum(load.busy_share.get(one, 0.0) for one in load.active) / count)
    return replace(
        load,
        active=active,
        backlog=max(0, load.backlog + events),
        queued_by=dict.fromkeys(active, round(booked / count)) if load.queued_by else {},
        busy_share=dict.fromkeys(active, busy) if load.busy_share else {},
        processed_by=dict.fromkeys(active, round(load.processed / count)) if load.processed_by else {},
    )
