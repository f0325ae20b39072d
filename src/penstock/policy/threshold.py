"""E2DF's Operator Managers: thresholds on each replica's busy share, one replica at a time."""

from __future__ import annotations

import zlib

from penstock.common.checks import positive
from penstock.forecast.base import Forecast
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import distrusted, kept


class Threshold:
    """One replica more where some replica is overloaded; one fewer where the others could take its load.

        some S_α > S_out: n + 1        Σ S_α / (n − 1) < c · S_out: n − 1        S_α: busy share of replica α

    The one that goes is one of the two most used, drawn by the seed. Each operator is looked at alone.

    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 9}, [load("split", {"in": 9}, replicas=2, busy_share={0: 0.3, 1: 0.2})])
    >>> Threshold().plan(seen).targets["split"].reason
    'replicas are busy 0.5 together: 1 would be at 0.5, below 0.525: one fewer'

    Nardelli et al., "A multi-level elasticity framework for distributed data stream processing", 2019 (E2DF), §4.2.
    """

    def __init__(self, *, out: float = 0.7, c: float = 0.75, seed: int = 0) -> None:
        self.out = positive("policy 'e2df'", "out", out)
        self.c = positive("policy 'e2df'", "c", c)
        self.seed = seed
        self._draws = 0

    def __repr__(self) -> str:
        return f"Threshold(out={self.out}, c={self.c}, seed={self.seed})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A step up, a step down or none, for every operator."""
        loads = snapshot.operators.items()
        return Plan({name: distrusted(load, snapshot) or self._target(load) for name, load in loads})

    def _target(self, load: OperatorLoad) -> Target:
        if not load.busy_share or not load.active:
            return kept(load, "no busy share measured yet")
        busy = {replica: load.busy_share.get(replica, 0.0) for replica in load.active}
        most, total, now = max(busy.values()), sum(busy.values()), load.replicas
        if most > self.out:
            return Target(now + 1, f"a replica is busy {most:.3g} of the time, above {self.out:g}: one more")
        if now == 1:
            return Target(1, f"the replica is busy {total:.3g} of the time, up to {self.out:g}: keeps it")
        rest, limit = total / (now - 1), self.c * self.out
        said = f"replicas are busy {total:.3g} together: {now - 1} would be at {rest:.3g}"
        if rest >= limit:
            return Target(now, f"{said}, from {limit:.4g} on: keeps {now}")
        victim = self._victim(busy)
        which = tuple(replica for replica in load.active if replica != victim)
        return Target(now - 1, f"{said}, below {limit:.4g}: one fewer", which=which)

    def _victim(self, busy: dict[int, float]) -> int:
        """One of the two most used."""
        self._draws += 1
        first, second, *_ = sorted(busy, key=lambda replica: (-busy[replica], replica))
        return (first, second)[zlib.crc32(f"{self.seed}/{self._draws}".encode()) % 2]
