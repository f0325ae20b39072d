"""From expected rates to the replicas that serve them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.common.checks import share, whole
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Target
from penstock.policy.parts.expected import distrusted, kept
from penstock.policy.planning.planners import MOST_REPLICAS, Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one operator needs in epochs 0 to T: rates with the backlog, and replicas within the pool."""

    rates: tuple[float, ...]  # of new events
    waiting: float  # the backlog as a rate, over the epochs in which it is worked off
    execution_time_s: float
    state_bytes: int = 0
    replicas: Counts
    pool: int
    uncut: int  # the most replicas it would take without the pool's bound
    high: tuple[float, ...] = ()  # rates of new events that are seldom exceeded, where they are known
    careful: Counts | None = None  # and the replicas that serve those

    def __str__(self) -> str:
        backlog = f" and {self.waiting:.4g}/s backlog" if self.waiting > 0 else ""
        of = f"of {self.execution_time_s * 1000:.4g} ms each"
        if len(self.rates) == 1:
            return f"{self.rates[0]:.4g}/s came{backlog}, {of}: needs {self.replicas[0]}{self._cut()}"
        ahead = self.replicas[1:]
        lowest, highest = ahead.min(), ahead.max()
        peak = f", at most {max(self.rates[1:]):.4g}/s in {len(ahead)} intervals" if len(ahead) > 1 else ""
        span = f" ({lowest} to {highest} in that time)" if lowest < highest else ""
        return f"expects {self.rates[1]:.4g}/s next{backlog}{peak}, {of}: needs {ahead[0]}{span}{self._cut()}"

    def _cut(self) -> str:
        return f", {self.uncut} without the pool's bound of {self.pool}" if self.uncut > self.pool else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """How rates become replicas: needed_t = ⌈rate_t · et / utilisation⌉, from 1 to the pool.

    The backlog is spread over the next `catch_up` epochs; it counts in epoch 0 as well, which is what `srea` serves.
    `utilisation` is the share of a replica's time that is planned for: below 1 there is headroom.

    >>> from penstock.testing.loads import load
    >>> clean = load("clean", {"in": 80}, backlog=40, execution_time_s=0.025)
    >>> Sizing(policy="cba", catch_up=2).need(clean, (80.0, 100.0, 100.0, 160.0), td_s=1.0).replicas.tolist()
    [3, 3, 3, 4]
    """

    policy: str
    catch_up: int = 1
    utilisation: float = 1.0

    def __post_init__(self) -> None:
        whole(f"policy '{self.policy}'", "catch_up", self.catch_up, least=1)
        share(f"policy '{self.policy}'", "utilisation", self.utilisation)

    def need(self, load: OperatorLoad, rates: Sequence[float], td_s: float, high: Sequence[float] = ()) -> Need:
        """The need of an operator whose execution time is known; `high` has rates that are seldom exceeded."""
        uncut, pool = self._uncut(load, rates, td_s), max(1, load.pool)
        return Need(
            state_bytes=load.state_bytes,
            rates=tuple(rates),
            waiting=self._waiting(load, td_s),
            execution_time_s=load.execution_time_s or 0.0,
            replicas=np.minimum(uncut, pool),
            pool=pool,
            uncut=int((uncut[1:] if len(uncut) > 1 else uncut).max()),
            high=tuple(high),
            careful=np.minimum(self._uncut(load, high, td_s), pool) if high else None,
        )

    def _waiting(self, load: OperatorLoad, td_s: float) -> float:
        return load.backlog / (self.catch_up * td_s)

    def _uncut(self, load: OperatorLoad, rates: Sequence[float], td_s: float) -> Counts:
        waiting, time_s = self._waiting(load, td_s), load.execution_time_s or 0.0
        served = [rate + (waiting if epoch <= self.catch_up else 0.0) for epoch, rate in enumerate(rates)]
        replicas = [replicas_for(min(rate * time_s / self.utilisation, MOST_REPLICAS)) for rate in served]
        return np.array(replicas, np.int64)


def unplanned(load: OperatorLoad, snapshot: Snapshot) -> Target | None:
    """A target that keeps what is there where nothing can be planned; else None."""
    if found := distrusted(load, snapshot):
        return found
    for length_s in (snapshot.interval_s, snapshot.td_s):
        if not 0 < length_s < math.inf:
            return kept(load, f"an interval of {length_s:g} s")
    if load.execution_time_s is None or not 0 <= load.execution_time_s < math.inf:
        return kept(load, "its execution time is not measured yet")
    return None
