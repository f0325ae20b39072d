"""What came, played under every rule of a family on a small fluid copy of the topology, with a fading memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.metrics.snapshot import Snapshot
from penstock.policy.parts.skew import MOST
from penstock.policy.replay.rules import Array

MEMORY_S = 3600.0  # after which something counts for a third
COPIED = 64  # operators at most; of more, those that have most to do: the others stay at one replica or nearly so
_NEARLY = 1.02  # times the cheapest: not worth a change
_ROOM = 0.6  # of the promise is aimed at, as the copy is not the thing itself
_AS_LATE = 0.1  # of the promise: no difference where none keeps it
_WAY = 1.5  # times the execution times on its way: how long an event that hardly waits takes
_HOPS_S = 0.05
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Copy:
    """A topology as far as a fluid needs it: operators that share the work of one stream.

    `work_s` are the seconds of a replica that one source event costs at each operator, θ_i · et_i, of which the part
    `hot` stays with one replica; `through_s` is the longest way of an event, without waiting. `pulled` is the part of
    the work that waits in front of all replicas, not in the queue of one: whoever is added helps with it.
    """

    work_s: Array
    pools: Array
    hot: Array
    through_s: float
    pulled: float = 0.0

    def slack_s(self, target_s: float) -> float:
        """How long an event may wait and be on time; a tenth of the target, where the way takes nearly all of it."""
        return max(target_s - _WAY * self.through_s - _HOPS_S, 0.1 * target_s)

    def sized(self, rates: Array) -> tuple[Array, Array]:
        """For rates in events per second: replicas of all operators together, and what these can do per second.

        >>> copy = Copy(np.array([0.01, 0.02]), np.array([8.0, 8.0]), np.zeros(2), 0.03)
        >>> replicas, capacity = copy.sized(np.array([100.0, 120.0]))
        >>> replicas.tolist(), capacity.tolist()
        ([3.0, 5.0], [100.0, 150.0])
        """
        work_s, pools, hot = (one[:, np.newaxis] for one in (self.work_s, self.pools, self.hot))
        replicas = work_s * rates
        if self.hot.any():
            room, most = 1 - hot * replicas, MOST * replicas
            even = (1 - hot) * replicas / np.maximum(room, _ROUNDING)
            replicas = np.where(room > 0, np.minimum(even, most), most)
        replicas -= _ROUNDING
        np.clip(np.ceil(replicas, out=replicas), 1.0, pools, out=replicas)
        each_s = work_s * (hot + (1 - hot) / replicas) if self.hot.any() else work_s / replicas
        return replicas.sum(axis=0), 1 / each_s.max(axis=0)


def copied(snapshot: Snapshot, shares: Mapping[str, float], hot: Mapping[str, float]) -> Copy | None:
    """A copy of what is known of a topology now; None as long as no operator's execution time is."""
    through_s: dict[str, float] = {}
    found: list[tuple[float, float, float]] = []
    pulled_s = 0.0
    for name, load in snapshot.operators.items():
        before_s = max((through_s.get(sender, 0.0) for sender in load.received_by), default=0.0)
        through_s[name] = before_s + (load.execution_time_s or 0.0)
        if work_s := shares.get(name, 0.0) * (load.execution_time_s or 0.0):
            found.append((work_s, float(load.pool), hot.get(name, 0.0)))
            pulled_s += work_s * load.pulled
    if not found:
        return None
    pulled = pulled_s / sum(work_s for work_s, _, _ in found)
    work, pools, parts = np.array(sorted(found, reverse=True)[:COPIED]).T
    return Copy(work, pools, parts, max(through_s.values()), pulled)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which rule is used, and how it and the first of the family would have done."""

    rule: int
    late: float  # the share of events
    kept: bool  # whether that is within the promise
    first_late: float
    first_saves: float  # the part of the rule's cost that the first would not have had


class Replay:
    """Every rule with a queue of its own: what it would have cost, and how much would have been late.

    Between two decisions a rule's queue Q changes evenly, and an event that comes after u seconds waits for

        w(u) = max(0, Q + (y − c) · u) / c

    at a rate of y and a capacity of c. Late is the part of the time in which that is longer than an event may wait.
    That holds for events that wait in the queue of a replica; where they are pulled, what is left at the next decision
    is done with the capacity c' that it gives. So those that came in an interval are judged when the next is played.
    """

    def __init__(self, rules: int) -> None:
        self.rule = 0
        self._queued, self._replicas, self._capacity = np.zeros(rules), np.zeros(rules), np.ones(rules)
        self._late, self._cost = np.zeros(rules), np.zeros(rules)
        self._events = 0.0
        self._last: tuple[Array, Array, float, float] | None = None  # queues, capacities, rate, length: yet to judge

    def decide(self, copy: Copy, sizes: Array, over_s: float) -> None:
        """Let every rule take the replicas for its size and for what waits, which is worked off in so many seconds."""
        self._replicas, self._capacity = copy.sized(sizes + self._queued / over_s)

    def play(self, rate: float, length_s: float, slack_s: float, pulled: float = 0.0) -> None:
        """Let so much come for so long, then fade what was before; `pulled` is the part that waits for any replica."""
        fade = np.exp(-length_s / MEMORY_S)
        late = (1 - pulled) * late_share(self._queued, self._capacity, rate, length_s, slack_s) * rate * length_s
        if pulled:
            if self._last is not None:
                before = self._last
                late += pulled * late_if_pulled(*before, self._capacity, slack_s) * before[2] * before[3]
            self._last = self._queued, self._capacity, rate, length_s
        self._late = fade * self._late + late
        self._cost = fade * self._cost + self._replicas * length_s
        self._events = float(fade * self._events + rate * length_s)
        self._queued = np.maximum(0.0, self._queued + (rate - self._capacity) * length_s)

    def begin_anew(self, weight: float) -> None:
        """Forget what waits, and let all that was played so far count for less."""
        self._queued, self._last = np.zeros_like(self._queued), None
        self._late, self._cost, self._events = weight * self._late, weight * self._cost, weight * self._events

    def choose(self, promise: float) -> Verdict:
        """The cheapest rule that keeps the promise with room, or else of the least late; the last one, if nearly so."""
        late = self._late / self._events if self._events > 0 else self._late
        wanted = max(_ROOM * promise, late.min() + _AS_LATE * promise if late.min() > _ROOM * promise else 0.0)
        cost = np.where(late <= wanted, self._cost, np.inf)
        cheapest = int(cost.argmin())
        if not cost[self.rule] <= _NEARLY * cost[cheapest]:
            self.rule = cheapest
        saves = 1 - self._cost[0] / self._cost[self.rule] if self._cost[self.rule] > 0 else 0.0
        own = float(late[self.rule])
        return Verdict(self.rule, own, own <= promise, float(late[0]), float(saves))


def late_share(queued: Array, capacity: Array, rate: float, length_s: float, slack_s: float) -> Array:
    """The part of an interval in which those that come wait for too long, by rule.

    >>> late_share(np.array([0.0, 0.0, 90.0]), np.array([100.0, 50.0, 100.0]), 100.0, 4.0, 0.5).tolist()
    [0.0, 0.875, 1.0]
    """
    grows, room = rate - capacity, slack_s * capacity - queued
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.clip(room / (grows * length_s), 0.0, 1.0)  # when a wait is just too long, as part of the interval
    even = np.where(room < 0, 1.0, 0.0)
    share: Array = np.where(grows > 0, 1 - reached, np.where(grows < 0, reached, even))
    return share


def late_if_pulled(queued: Array, capacity: Array, rate: float, length_s: float, then: Array, slack_s: float) -> Array:
    """The same where all that waits at the end of the interval is done with another capacity, at five points of it.

    >>> late_if_pulled(np.zeros(2), np.array([20.0, 20.0]), 100.0, 1.0, np.array([20.0, 180.0]), 1.5).tolist()
    [0.6, 0.0]
    """
    after_s = (np.arange(5) + 0.5)[:, np.newaxis] * length_s / 5
    ahead = np.maximum(0.0, queued + (rate - capacity) * after_s)
    later = np.maximum(0.0, ahead - capacity * (length_s - after_s))  # of what is ahead: not done in this interval
    share: Array = np.mean((ahead - later) / capacity + later / then > slack_s, axis=0)
    return share
