"""Flink: the autoscaler of Flink's Kubernetes operator."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from penstock.common.checks import at_least, choice, positive, share
from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.busy import TrueRates
from penstock.policy.parts.expected import Shares, distrusted, kept
from penstock.policy.parts.window import Largest, merged
from penstock.policy.workload import Workload

_LEAST_FACTOR = 0.4  # a scale-in takes away at most 60 %
_ROUNDING = 1e-9
_OBSERVATIONS = 2  # of what replicas do while they catch up, at least
_SWITCH = 0.15  # so much more than that is not believed


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkSettings:
    """What the autoscaler aims for and how long it waits; the defaults are Flink's.

    It aims for `target_utilisation` and acts when an operator's utilisation would be outside `u_min` to `u_max`. A
    backlog is to be gone after `catch_up_s`, with what a restart of `restart_s` adds to it. Averages are over
    `window_s`; after a change it waits `stabilisation_s`; a scale-in waits `down_interval_s`. A backlog of more than
    `backlog_lag_s` is worked off before anything scales in, and one of `observed_lag_s` shows what replicas can do.
    """

    target_utilisation: float = 0.7
    u_max: float = 1.0
    u_min: float = 0.4
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    window_s: float = 900.0
    stabilisation_s: float = 300.0
    down_interval_s: float = 3600.0
    backlog_lag_s: float = 300.0
    observed_lag_s: float = 30.0

    def __post_init__(self) -> None:
        for name in ("target_utilisation", "u_max", "u_min"):
            share("policy 'flink'", name, getattr(self, name))
        if not self.u_min <= self.target_utilisation <= self.u_max:
            bounds = f"from u_min {self.u_min:g} to u_max {self.u_max:g}"
            raise InputError(f"policy 'flink': target_utilisation must be {bounds}; got {self.target_utilisation:g}")
        for field in fields(self):
            if field.name.endswith("_s"):
                check = positive if field.name == "window_s" else at_least
                check("policy 'flink'", field.name, getattr(self, field.name))

    def capacity(self, target: float, backlog: float, utilisation: float, *, restart: bool = True) -> float:
        """Events per second that it takes to run at a utilisation, catch up with the backlog and bear a restart.

            capacity(u) = backlog / catch_up + target · restart / catch_up + target / u

        Without a time to catch up the first two terms are 0, and with `restart` off the second is.

        >>> settings = FlinkSettings(catch_up_s=100, restart_s=10)
        >>> settings.capacity(target=70, backlog=200, utilisation=0.7)
        109.0
        >>> settings.capacity(target=70, backlog=200, utilisation=0.7, restart=False)
        102.0
        """
        at_utilisation = target / utilisation
        if self.catch_up_s == 0:
            return at_utilisation
        missed = target * self.restart_s if restart else 0.0
        return (backlog + missed) / self.catch_up_s + at_utilisation


SETTINGS = {
    "default": FlinkSettings(),
    "short": FlinkSettings(window_s=60, stabilisation_s=10, down_interval_s=300, catch_up_s=120, restart_s=0),
}


class Flink:
    """Flink's autoscaler: replicas for a target utilisation, from the true rates over a window of intervals.

        true rate_i   = in rate_i / busy share_i, or what it did while it caught up if that is 13 % less
        target_i      = in rate_i + d(backlog_i)/dt where a source feeds it; below, Σ_p target_p · θ_i^p
        capacity_i(u) = backlog_i / catch_up + target_i · restart / catch_up + target_i / u
        r_i           = ⌈replicas_i · max(0.4, capacity_i(0.7) / true rate_i)⌉

    It acts only if an operator that would change has a true rate below capacity(u_max), without the restart, or above
    capacity(u_min). While an operator at a source has more than `backlog_lag_s` to catch up with, u_max is 1 and none
    is above. A scale-in waits until it was wished for `down_interval_s`, and goes to the largest wish in that time.
    After any change of replicas, and at the start, it looks at nothing for `stabilisation_s`, and the window begins
    anew.

    A backlog counts for its operator and, times the shares, for all below: Flink's back pressure would keep these
    events at the source. Flink also waits until the window is full; here it decides on what the window has.

    >>> from penstock.testing.loads import load, snapshot
    >>> busy = load("clean", {"in": 5400}, replicas=2, busy_share={0: 0.9, 1: 0.9})
    >>> flink = Flink(FlinkSettings(catch_up_s=0, stabilisation_s=0, u_max=0.8))
    >>> plan = flink.plan(snapshot({"in": 5400}, [busy], time_s=60.0, interval_s=60.0, td_s=60.0))
    >>> plan.targets["clean"].replicas, plan.targets["clean"].reason
    (3, '90 events per second to process, 0 backlog: needs capacity for 128.6 per second, has 100: 2.571 replicas')

    Apache Flink Kubernetes Operator, "Autoscaler"; the rates are those of DS2 (Kalavri et al., OSDI 2018).
    """

    def __init__(self, settings: FlinkSettings | None = None) -> None:
        self.settings = settings or FlinkSettings()
        self._shares = Shares()
        self._rates = TrueRates()
        self._window: deque[Snapshot] = deque()  # complete intervals, none older than the window
        self._before: Snapshot | None = None  # the complete interval before the window
        self._replicas: dict[str, int] = {}  # in the snapshot before
        self._time_s: float | None = None  # of the snapshot before
        self._changed_s = 0.0  # when replicas last changed, or the start
        self._downs: dict[str, _Down] = {}  # scale-ins that wait

    def __repr__(self) -> str:
        return f"Flink({self.settings!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, in topological order."""
        self._look(snapshot)
        passed_s, wait_s = snapshot.time_s - self._changed_s, self.settings.stabilisation_s
        if passed_s < wait_s:
            self._before = self._before if snapshot.incomplete else snapshot
            why = f"waits until {wait_s:g} s after the start or the last change, {passed_s:.4g} s ago"
            return _nothing(snapshot, why)
        if not snapshot.incomplete:
            self._window.append(snapshot)
        self._trim(snapshot.time_s)
        if not self._window:
            return _nothing(snapshot, f"no complete interval in the last {self.settings.window_s:g} s")
        needs = self._needs()
        return self._decide(snapshot, needs, self._bounds(needs))

    def _look(self, snapshot: Snapshot) -> None:
        """Begin anew where the replicas are others than in the snapshot before, or the clock went back."""
        replicas = {name: load.replicas for name, load in snapshot.operators.items()}
        if self._time_s is None:
            self._changed_s = snapshot.time_s - snapshot.interval_s
        elif replicas != self._replicas or snapshot.time_s <= self._time_s:
            self._changed_s = min(self._time_s, snapshot.time_s)
            last = self._window[-1] if self._window else self._before
            self._before = last if last and last.time_s < snapshot.time_s else None
            self._window.clear()
            self._downs.clear()
        self._replicas, self._time_s = replicas, snapshot.time_s

    def _trim(self, now_s: float) -> None:
        """Forget the intervals that ended before the window, but keep the last of them for its backlog."""
        while self._window and self._window[0].time_s <= now_s - self.settings.window_s:
            self._before = self._window.popleft()

    def _needs(self) -> dict[str, _Need]:
        """What each operator has to do, and can do, by the intervals of the window."""
        window, before = list(self._window), self._before
        if before is None:  # the first interval has no growth of its backlog: it is what the others grow from
            before, window = window[0], window[1:] or window
        seen = merged(window)
        edges, rates = self._shares.learn(seen), self._rates.learn(seen)
        rates = {name: _believed(rate, self._observed(name, window)) for name, rate in rates.items()}
        targets = propagate({name: _from_sources(load, seen, before) for name, load in seen.operators.items()}, edges)
        backlogs = propagate({name: load.backlog for name, load in seen.operators.items()}, edges)
        return {
            name: _Need(targets[name], backlogs[name], rates[name], _lag_s(load, seen))
            for name, load in seen.operators.items()
        }

    def _observed(self, name: str, window: Sequence[Snapshot]) -> float | None:
        """What one replica did while its operator, at a source, caught up; None where that was hardly seen."""
        found = []
        for seen in window:
            load = seen.operators.get(name)
            if load and load.processed and load.replicas and _lag_s(load, seen) >= self.settings.observed_lag_s:
                found.append(load.processed / seen.interval_s / load.replicas)
        return sum(found) / len(found) if len(found) >= _OBSERVATIONS else None

    def _bounds(self, needs: Mapping[str, _Need]) -> tuple[float, float]:
        """The utilisations between which nothing is done."""
        if any(need.lag_s > self.settings.backlog_lag_s for need in needs.values()):
            return 0.0, 1.0
        return self.settings.u_min, self.settings.u_max

    def _decide(self, snapshot: Snapshot, needs: Mapping[str, _Need], bounds: tuple[float, float]) -> Plan:
        """All wishes, if one of them is for an operator outside its bounds."""
        targets = {
            name: distrusted(load, snapshot) or self._wish(load, needs.get(name, _Need()), snapshot)
            for name, load in snapshot.operators.items()
        }
        changes = {name: load for name, load in snapshot.operators.items() if targets[name].replicas != load.replicas}
        if not any(self._outside(needs[name], load, bounds) for name, load in changes.items() if name in needs):
            why = f"no operator that would change is outside a utilisation of {bounds[0]:g} to {bounds[1]:g}"
            targets |= {name: targets[name].limited(max(1, load.replicas), why) for name, load in changes.items()}
        return Plan(targets)

    def _wish(self, load: OperatorLoad, need: _Need, snapshot: Snapshot) -> Target:
        if need.true_rate is None:
            return kept(load, f"{need}, no busy time measured yet")
        capacity = self.settings.capacity(need.target, need.backlog, self.settings.target_utilisation)
        replicas = max(1, load.replicas)
        has = need.true_rate * replicas
        wanted = f"{need}: needs capacity for {capacity:.4g} per second, has {has:.4g}: {capacity / need.true_rate:.4g}"
        target = Target(scaled(replicas, capacity, has), f"{wanted} replicas", need.target * snapshot.td_s)
        if target.replicas >= replicas:
            self._downs.pop(load.name, None)
            return target
        return self._delayed(target, load, snapshot.time_s)

    def _delayed(self, target: Target, load: OperatorLoad, time_s: float) -> Target:
        """A scale-in to the largest wish of the down interval, once that is over."""
        wait_s = self.settings.down_interval_s
        down = self._downs.setdefault(load.name, _Down(time_s, Largest(wait_s)))
        largest = down.wishes.add(time_s, target.replicas)
        passed_s = time_s - down.since_s
        if passed_s < wait_s:
            return target.limited(load.replicas, f"scale-in waits for {wait_s:g} s, {passed_s:.4g} s so far")
        if largest > target.replicas:
            return target.limited(largest, f"{largest} is the largest wish of the last {wait_s:g} s")
        return target

    def _outside(self, need: _Need, load: OperatorLoad, bounds: tuple[float, float]) -> bool:
        has, (u_min, u_max) = (need.true_rate or 0.0) * max(1, load.replicas), bounds
        least = self.settings.capacity(need.target, need.backlog, u_max, restart=False)
        most = self.settings.capacity(need.target, need.backlog, u_min) if u_min else math.inf
        return has < least * (1 - _ROUNDING) or has > most * (1 + _ROUNDING)


def scaled(replicas: int, capacity: float, true_rate: float) -> int:
    """So many replicas times what is needed over what is there, but no scale-in by more than 60 %.

    >>> scaled(10, capacity=50 / 1.0, true_rate=100), scaled(10, 60 / 0.8, 100), scaled(2, 100 / 0.5, 40)
    (5, 8, 10)
    >>> scaled(10, capacity=0, true_rate=100)
    4
    """
    return replicas_for(max(_LEAST_FACTOR, capacity / true_rate) * replicas)


def make_flink(
    settings: str = "default",
    *,
    target_utilisation: float | None = None,
    u_max: float | None = None,
    u_min: float | None = None,
    catch_up_s: float | None = None,
    restart_s: float | None = None,
    window_s: float | None = None,
    stabilisation_s: float | None = None,
    down_interval_s: float | None = None,
    backlog_lag_s: float | None = None,
    observed_lag_s: float | None = None,
    workload: Workload | None = None,
) -> Flink:
    """`flink`, or `flink:short` for the short settings; single ones go before either.

    The short settings bear a restart only where the workload says that a change of replicas takes one.

    >>> make_flink("short").settings.restart_s, make_flink("short", restart_s=30).settings.restart_s
    (0, 30)
    """
    # All arguments but two, where they are given.
    others = ("settings", "workload")
    given = {name: value for name, value in locals().items() if name not in (*others, "others") and value is not None}
    chosen = SETTINGS[choice("policy 'flink'", "settings", settings, tuple(SETTINGS))]
    if settings == "short" and workload is not None:
        chosen = replace(chosen, restart_s=workload.restart_s)
    return Flink(replace(chosen, **given))


@dataclass(frozen=True, slots=True)
class _Need:
    """What an operator has to process, in events per second and waiting ones, and what a busy replica does."""

    target: float = 0.0
    backlog: float = 0.0
    true_rate: float | None = None  # per replica
    lag_s: float = 0.0  # how long what waits takes at the present rate, where a source feeds it

    def __str__(self) -> str:
        return f"{self.target:.4g} events per second to process, {self.backlog:.4g} backlog"


@dataclass(slots=True)
class _Down:
    """A scale-in that waits: since when it is wished for without a break, and to how many."""

    since_s: float
    wishes: Largest


def _from_sources(load: OperatorLoad, seen: Snapshot, before: Snapshot) -> float:
    """The target rate that sources cause at an operator: in rate + d(backlog)/dt, of what they sent."""
    received = load.received
    if not received or not seen.interval_s > 0:
        return 0.0
    part = sum(count for sender, count in load.received_by.items() if sender in seen.source_input) / received
    span_s, earlier = seen.time_s - before.time_s, before.operators.get(load.name)
    growth = (load.backlog - earlier.backlog) / span_s if earlier and span_s > 0 else 0.0
    return part * max(0.0, load.processed / seen.interval_s + growth)


def _lag_s(load: OperatorLoad, seen: Snapshot) -> float:
    """How long an operator that a source feeds needs for what waits, at its rate; 0 where that is not known."""
    at_source = any(sender in seen.source_input for sender in load.received_by)
    return load.backlog * seen.interval_s / load.processed if at_source and load.processed else 0.0


def _believed(by_busy_time: float | None, observed: float | None) -> float | None:
    """The true rate: by busy time, unless that is far more than was observed.

    >>> _believed(110.0, 100.0), _believed(120.0, 100.0), _believed(120.0, None), _believed(None, 100.0)
    (110.0, 100.0, 120.0, 100.0)
    """
    if observed is None or (by_busy_time is not None and by_busy_time <= observed * (1 + _SWITCH)):
        return by_busy_time
    return observed


def _nothing(snapshot: Snapshot, why: str) -> Plan:
    return Plan({name: kept(load, why) for name, load in snapshot.operators.items()})
