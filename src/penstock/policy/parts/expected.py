"""What the next interval brings: rates of the sources, shares between operators, and replicas for the sum of them.

What cannot be measured stays as it was last known. Several policies stand on these parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Target


class SourceRates:
    """Events per second by source, last known where the numbers of a source are not to be trusted."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def learn(self, snapshot: Snapshot) -> dict[str, float]:
        """The rates of this interval."""
        rates = {}
        for source, count in snapshot.source_input.items():
            rate = count / snapshot.interval_s if snapshot.interval_s > 0 else 0.0
            trusted = source not in snapshot.incomplete and snapshot.interval_s > 0
            rates[source] = rate if trusted else self._known.get(source, rate)
        self._known = rates
        return dict(rates)


def foreseen(last: Mapping[str, float], forecast: Forecast | None) -> tuple[dict[str, float], tuple[str, ...]]:
    """The forecast rates, with the last ones where there is no forecast, and a note for each of these.

    >>> foreseen({"tweets": 90.0}, Forecast("drift", {"tweets": (120.0,)}))
    ({'tweets': 120.0}, ())
    """
    expected = {source: forecast.rate(source) if forecast else None for source in last}
    rates = {source: last[source] if rate is None else rate for source, rate in expected.items()}
    silent = [source for source, rate in expected.items() if rate is None]
    return rates, tuple(f"no forecast for source '{source}' yet: takes its last value" for source in silent)


class Shares:
    """θ_i^p by operator and predecessor: 1 for a source, not its dead letters; measured; last known; declared; or 1."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, float]] = {}

    def learn(self, snapshot: Snapshot) -> dict[str, dict[str, float]]:
        """The shares of this interval, in the order of the snapshot's operators."""
        self._known = {name: self._of(load, snapshot) for name, load in snapshot.operators.items()}
        return self._known

    def _of(self, load: OperatorLoad, snapshot: Snapshot) -> dict[str, float]:
        known = self._known.get(load.name, {})
        trusted = load.name not in snapshot.incomplete
        shares = {}
        for predecessor, received in load.received_by.items():
            sender, declared = snapshot.operators.get(predecessor), load.declared_shares.get(predecessor, 1.0)
            sent = sender.processed if sender else snapshot.source_input.get(predecessor, 0)
            if predecessor in snapshot.source_input and declared > 0:
                shares[predecessor] = 1.0
            elif sent > 0 and trusted and predecessor not in snapshot.incomplete:
                shares[predecessor] = received / sent
            else:
                shares[predecessor] = known.get(predecessor, declared)
        return shares


class Expected:
    """What an operator has to process in the next interval: new events, and those that wait already."""

    __slots__ = ("entering", "new", "waiting")

    def __init__(self, new: float, waiting: float, entering: float) -> None:
        self.new = new
        self.waiting = waiting
        self.entering = entering

    def __str__(self) -> str:
        share = f", {self.new / self.entering:.4g} of {self.entering:.4g} entering" if self.entering > 0 else ""
        return f"expects {self.new + self.waiting:.4g} events ({self.new:.4g} new{share}; {self.waiting:.4g} backlog)"

    def target(self, load: OperatorLoad, td_s: float) -> Target:
        """Replicas for all these events: ⌈events · et / td⌉.

        >>> clean = OperatorLoad(name="clean", received_by={}, processed=0, backlog=7, active=(0,), pool=8,
        ...                      execution_time_s=0.025)
        >>> Expected(93.0, 7.0, 93.0).target(clean, 1.0).replicas
        3
        """
        events = self.new + self.waiting
        if not td_s > 0:
            return kept(load, f"{self} in an interval of {td_s:g} s")
        if load.execution_time_s is None:
            reason = f"{self}, of unknown execution time: keeps {load.replicas} until one is measured"
            return Target(max(1, load.replicas), reason, events)
        need = events * load.execution_time_s / td_s
        reason = f"{self} of {load.execution_time_s * 1000:.4g} ms each: {need:.4g} replicas"
        return Target(replicas_for(need), reason, events)


def kept(load: OperatorLoad, why: str) -> Target:
    """A target that keeps what is there.

    >>> clean = OperatorLoad(name="clean", received_by={}, processed=0, backlog=0, active=(0, 1), pool=8)
    >>> kept(clean, "no busy time measured yet")
    Target(replicas=2, reason='keeps 2: no busy time measured yet', expected=None, which=None)
    """
    replicas = max(1, load.replicas)
    return Target(replicas, f"keeps {replicas}: {why}")


def distrusted(load: OperatorLoad, snapshot: Snapshot) -> Target | None:
    """A target that keeps what is there where the operator's numbers are not to be trusted; else None."""
    reason = snapshot.incomplete.get(load.name)
    return None if reason is None else kept(load, f"numbers are not to be trusted ({reason})")
