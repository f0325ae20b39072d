"""What the next interval brings: rates of the sources, shares between operators, and replicas for the sum of them.

What cannot be measured stays as it was last known. Several policies stand on these parts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from penstock.forecast.base import Forecast
from penstock.metrics.graph import Floats, Graph, OnEdges
from penstock.metrics.jump import is_jump
from penstock.metrics.paper import replicas_for
from penstock.metrics.snapshot import Loads, OperatorLoad, Snapshot
from penstock.policy.base import Target

RATE_S = 1.0  # over which rates are taken where intervals are shorter
SHARE_S = 5.0  # likewise shares between operators, which change more slowly


def horizon_s(td_s: float) -> float:
    """How long there is to work off what waits: the interval, or a second if that is longer.

    >>> horizon_s(5.0), horizon_s(0.2)
    (5.0, 1.0)
    """
    return max(td_s, RATE_S)


def faded(interval_s: float, window_s: float) -> float:
    """What earlier intervals count beside one of this length, so that about `window_s` count in all.

    >>> faded(5.0, 5.0), faded(1.0, 5.0)
    (0.0, 0.8)
    """
    return max(0.0, 1.0 - interval_s / window_s)


class SourceRates:
    """Events per second by source, last known where the numbers of a source are not to be trusted.

    Intervals shorter than a second count together with those before, as about a second: else they would be the noisier,
    the shorter they are. After a jump only what came since counts, and of an interval that a jump cut short the rate at
    its end, if that is known.
    """

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._sums: dict[str, tuple[float, float]] = {}  # events and seconds by source

    def learn(self, snapshot: Snapshot) -> dict[str, float]:
        """The rates of this interval."""
        length_s, fade = snapshot.interval_s, faded(snapshot.interval_s, RATE_S)
        rates, sums = {}, {}
        for source, count in snapshot.source_input.items():
            known = self._sums.get(source, (0.0, 0.0))
            if source in snapshot.incomplete or not length_s > 0:
                rates[source] = self._known.get(source, count / length_s if length_s > 0 else 0.0)
                sums[source] = known
                continue
            kept = 0.0 if is_jump(count, length_s, *known) else fade
            sums[source] = events, seconds = kept * known[0] + count, kept * known[1] + length_s
            rates[source] = events / seconds
        for source, rate in snapshot.jump.items():
            rates[source] = max(rates.get(source, 0.0), rate)
        self._known, self._sums = rates, sums
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
    """θ_i^p by operator and predecessor: 1 for a source, not its dead letters; measured; last known; declared; or 1.

    Measured is received / sent, over about five seconds where intervals are shorter.
    """

    def __init__(self) -> None:
        self._known = OnEdges.of({})
        self._sums = np.zeros((2, 0))  # received and sent, by edge
        self._gone: dict[tuple[str, str], tuple[float, float]] = {}  # the same of edges that were there once

    def learn(self, snapshot: Snapshot) -> OnEdges:
        """The shares of this interval, in the order of the snapshot's operators."""
        loads, doubted, entered = snapshot.loads, snapshot.incomplete, snapshot.source_input
        graph, known = loads.received.graph, self._follow(loads.received.graph, loads.declared)
        names, (receivers, senders) = graph.names, graph.ends
        sent_by = {**entered, **loads.processed}
        sent = np.array([sent_by.get(name, 0) for name in names], np.float64)[senders]
        given = np.array([name in entered for name in names], bool)[senders] & (loads.declared > 0)
        measured = ~given & (sent > 0)
        if doubted:
            bad = np.array([name in doubted for name in names], bool)
            measured &= ~(bad[receivers] | bad[senders])
        fade = faded(snapshot.interval_s, SHARE_S)
        sums = fade * self._sums + np.array((loads.received.numbers, sent), np.float64)
        self._sums = np.where(measured, sums, self._sums)
        shares = np.where(given, 1.0, known)
        np.divide(sums[0], sums[1], out=shares, where=measured)
        self._known = OnEdges(graph, shares.tolist())
        return self._known

    def _follow(self, graph: Graph, declared: Floats) -> Floats:
        """What is known of these edges, where some may be new or gone."""
        before = self._known.graph
        if graph is before or graph.edges == before.edges:
            return np.array(self._known.numbers, np.float64)
        known = dict(zip(before.edges, self._known.numbers, strict=True))
        self._gone |= dict(zip(before.edges, zip(*self._sums.tolist(), strict=True), strict=True))
        sums = [self._gone.pop(edge, (0.0, 0.0)) for edge in graph.edges]
        self._sums = np.array(sums, np.float64).reshape(-1, 2).T
        return np.array([known.get(edge, share) for edge, share in zip(graph.edges, declared.tolist(), strict=True)])


def movable(load: OperatorLoad, length_s: float) -> float:
    """What of an operator's backlog so many seconds of work can be about, whoever is added.

    An event that is booked stays with its replica: of each queue counts what its replica can do in that time, and
    nothing of one that is not active any more, which finishes by itself. What is held, outside or on its way counts,
    and so does all where queues are not known.

        q_i = backlog − Σ_j booked_j + Σ_{j active} min(booked_j, length / et)

    >>> from dataclasses import replace
    >>> full = OperatorLoad(name="clean", received_by={}, processed=0, backlog=303, active=(0, 1), pool=16,
    ...                     execution_time_s=5 / 74, queued_by={0: 152, 1: 151})
    >>> round(movable(full, 5.0)), round(movable(replace(full, queued_by={}), 5.0))
    (148, 303)
    """
    if not load.queued_by or not load.execution_time_s or not length_s > 0:
        return load.backlog
    booked, queues = load.booked, load.queued_by
    if booked <= 0:
        return load.backlog
    most = length_s / load.execution_time_s
    own = sum(min(queues.get(replica, 0), most) for replica in load.active)
    return max(0, load.backlog - booked) + min(own, load.backlog)


def all_movable(loads: Loads, length_s: float) -> dict[str, float]:
    """The same of all operators; where nothing is booked, all counts."""
    booked = loads.booked
    return {
        name: movable(loads[name], length_s) if booked[name] > 0 else backlog for name, backlog in loads.backlog.items()
    }


class Expected:
    """What an operator has to process in the next interval: new events, and those that wait already.

    `bound` is what waits as well, but at replicas that have enough to do without it.
    """

    __slots__ = ("bound", "entering", "new", "waiting")

    def __init__(self, new: float, waiting: float, entering: float, bound: float = 0.0) -> None:
        self.new = new
        self.waiting = waiting
        self.entering = entering
        self.bound = bound

    def __str__(self) -> str:
        share = f", {self.new / self.entering:.4g} of {self.entering:.4g} entering" if self.entering > 0 else ""
        more = f", {self.bound:.4g} more stay where they are booked" if self.bound >= 0.5 else ""
        waiting = f"{self.waiting:.4g} backlog{more}"
        return f"expects {self.new + self.waiting:.4g} events ({self.new:.4g} new{share}; {waiting})"

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
