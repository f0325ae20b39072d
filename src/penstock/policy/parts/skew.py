"""Keys that are not even: how much of an operator's events its busiest replica gets, and what that takes."""

from __future__ import annotations

import math

from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.parts.expected import faded

_WINDOW_S = 10.0  # over which events are counted
_ENOUGH = 64.0  # events a replica, on average, before they say anything
_SIGMAS = 4.0  # by which the busiest must be above the average, if that is chance
MOST = 2.0  # times the replicas for even keys are enough: what is too much for one stays so


class Skew:
    """The hot part p of each keyed operator's events: those that stay with one replica, however many there are.

    The busiest of n replicas gets all of the hot part and its share of the rest, so what it gets, m, tells p:

        m = p + (1 − p) / n        p = (n · m − 1) / (n − 1)

    It is counted anew when the active replicas change, and holds as last known until enough has come.
    """

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._counts: dict[str, dict[int, float]] = {}  # by operator and active replica
        self._queued: dict[str, dict[int, int]] = {}  # at the end of the interval before

    def learn(self, snapshot: Snapshot) -> dict[str, float]:
        """The hot parts after this interval; operators whose keys are even, or that have none, are left out."""
        keyed = {name: load for name, load in snapshot.operators.items() if load.keyed}
        fade = faded(snapshot.interval_s, _WINDOW_S)
        for name, load in keyed.items():
            if name not in snapshot.incomplete:
                self._count(load, fade)
        self._known = {name: part for name, part in self._known.items() if name in keyed}
        return {name: part for name, part in self._known.items() if part > 0}

    def _count(self, load: OperatorLoad, fade: float) -> None:
        before, queued = self._queued.get(load.name, {}), dict(load.queued_by)
        self._queued[load.name] = queued
        counts = self._counts.get(load.name, {})
        if tuple(counts) != load.active:
            self._counts[load.name] = dict.fromkeys(load.active, 0.0)
            return
        for replica in counts:
            came = load.processed_by.get(replica, 0) + queued.get(replica, 0) - before.get(replica, 0)
            counts[replica] = fade * counts[replica] + max(0, came)
        mean = sum(counts.values()) / max(1, len(counts))
        if len(counts) > 1 and mean >= _ENOUGH:
            self._known[load.name] = hot_part(max(counts.values()), mean, len(counts))


def hot_part(busiest: float, mean: float, replicas: int) -> float:
    """What of an operator's events stays with one replica; 0 where the busiest has no more than chance gives it.

    >>> hot_part(400.0, 100.0, 4), hot_part(250.0, 100.0, 4), hot_part(130.0, 100.0, 4)
    (1.0, 0.5, 0.0)
    """
    if busiest <= mean + _SIGMAS * math.sqrt(mean):
        return 0.0
    return min(1.0, (busiest / mean - 1) / (replicas - 1))


def uneven_need(need: float, hot: float) -> float:
    """Replicas where a part of the work stays with one of them, which must not have too much.

        n such that (p + (1 − p) / n) · need = 1        at most twice the need

    >>> uneven_need(6.0, 0.0), round(uneven_need(6.0, 0.1), 1), uneven_need(6.0, 0.3)
    (6.0, 12.0, 12.0)
    >>> round(uneven_need(3.0, 0.1), 2)
    3.86
    """
    room = 1 - hot * need
    return min((1 - hot) * need / room, MOST * need) if room > 0 else MOST * need
