"""Operators as a fluid: what waits grows or falls evenly, so the late part of an interval is exact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WAY = 1.5  # times the execution times on its way: how long an event that hardly waits takes
HOPS_S = 0.05


@dataclass(frozen=True, slots=True)
class Flow:
    """One operator over a time: what comes per second, what one event takes, and what waits at the beginning.

    `part`: of the events that enter the topology, those that come here.
    """

    rate: float
    execution_time_s: float
    queued: float
    part: float = 1.0

    def late(self, replicas: int, seconds: float, slack_s: float) -> float:
        """The part of all events that waits too long here.

        An event that comes after u seconds waits for max(0, Q + (y − c) · u) / c, at a rate of y and a capacity of c.

        >>> Flow(100.0, 0.01, 0.0).late(1, 4.0, 0.5), Flow(100.0, 0.02, 0.0).late(1, 4.0, 0.5)
        (0.0, 0.875)
        """
        capacity = replicas / self.execution_time_s
        grows, room = self.rate - capacity, slack_s * capacity - self.queued
        if grows == 0:
            return self.part if room < 0 else 0.0
        reached = min(1.0, max(0.0, room / (grows * seconds)))  # when a wait is just too long, as part of the time
        return self.part * (1 - reached if grows > 0 else reached)

    def left(self, replicas: int, seconds: float) -> float:
        """What waits at the end.

        >>> Flow(100.0, 0.02, 10.0).left(1, 4.0)
        210.0
        """
        return max(0.0, self.queued + (self.rate - replicas / self.execution_time_s) * seconds)


def late_part(flows: Mapping[str, Flow], replicas: Mapping[str, int], seconds: float, slack_s: float) -> float:
    """The part of all events that is late under so many replicas: that of the operator where most are."""
    return max((one.late(replicas[name], seconds, slack_s) for name, one in flows.items()), default=0.0)


def slack_s(target_s: float, through_s: float) -> float:
    """How long an event may wait and be on time; a tenth of the target, where the way takes nearly all of it.

    >>> round(slack_s(2.0, 0.1), 3), slack_s(2.0, 5.0)
    (1.8, 0.2)
    """
    return max(target_s - WAY * through_s - HOPS_S, 0.1 * target_s)


def through_s(operators: Iterable[tuple[str, Iterable[str], float | None]]) -> float:
    """The longest way of an event without waiting: of names, predecessors and execution times, predecessors first.

    >>> through_s([("a", ["in"], 0.01), ("b", ["a"], 0.02), ("c", ["in"], None)])
    0.03
    """
    found: dict[str, float] = {}
    for name, senders, time_s in operators:
        found[name] = max((found.get(sender, 0.0) for sender in senders), default=0.0) + (time_s or 0.0)
    return max(found.values(), default=math.nan)
