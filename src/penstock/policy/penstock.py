"""Our own: of many rules the cheapest that would have kept the promise, had it been used on what came."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.common.checks import positive, share
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Supply, Target
from penstock.policy.parts.expected import Expected, Shares, SourceRates, horizon_s, movable
from penstock.policy.parts.skew import Skew, uneven_need
from penstock.policy.replay.past import Past
from penstock.policy.replay.replay import Copy, copied
from penstock.policy.replay.rules import resampled
from penstock.policy.replay.workers import STEP_S, WorkersPast

LATE = 0.01
TARGET_MS = 2000.0


class Penstock:
    """Replays the past: sizes for the rate that the cheapest rule which would have kept the promise is ready for.

        size = max(h · the largest λ of the last k seconds, φ · the largest of the last half hour)
        r_i  = ⌈(size · td · θ_i + q_i) · et_i / td⌉

    The promise is the user's: at most the share `late` of all events takes longer than `target_ms`. Once in an interval
    what came is played under 546 rules (h, k, φ), each with a queue of its own, on a fluid copy of the topology, with a
    memory of about an hour. Of the rules that kept 0.6 of the promise the cheapest is used, and kept as long as it is
    within 2 % of the cheapest. The rule without headroom is `psps` with `predecessor_backlog`, and no rule is below
    it. Before anything is known, made bursts are played, and a quarter of each pool is active. Where no rule keeps the
    promise, an operator gets no more than the largest rate so far needs, as if it had been sized for that peak, or what
    `psps` with `predecessor_backlog` wants.

    Where keys are not even, a keyed operator gets what its busiest replica needs, at most twice of what even keys need.

    >>> from penstock.testing.loads import load, snapshot
    >>> policy = Penstock(late=0.01, target_ms=2000)
    >>> for number in range(1, 721):  # an hour at 100 events per second, every other minute 250 for 5 s
    ...     came = 1250 if number % 24 == 0 else 500
    ...     clean = load("clean", {"in": came}, execution_time_s=0.02)
    ...     plan = policy.plan(snapshot({"in": came}, [clean], time_s=5.0 * number, interval_s=5.0, td_s=5.0))
    >>> import textwrap
    >>> print(textwrap.fill(plan.targets["clean"].reason, 112))
    expects 2188 events (2188 new, 1 of 2188 entering; 0 backlog) of 20 ms each: 8.75 replicas; ready for 1.75 × the
    last rate: the cheapest rule that was on time over the last hour; psps would have cost 47 % less and been late
    with 7.4 %
    """

    own_windows = True  # short intervals make it no noisier

    def __init__(self, *, late: float = LATE, target_ms: float = TARGET_MS) -> None:
        self.late = share("policy 'penstock'", "late", late)
        self.target_ms = positive("policy 'penstock'", "target_ms", target_ms)
        self._rates = SourceRates()
        self._shares = Shares()
        self._skew = Skew()
        self._mix: dict[str, float] = {}  # of what entered last, the part of each source
        self._peak = 0.0  # the largest rate so far
        self._past: Past | None = None  # at the interval's length
        self._workers: WorkersPast | None = None  # where somebody asks for slots
        self._now: _Now | None = None  # what the last plan was made for
        self._before: tuple[Sequence[float], float] = (), 1.0  # rates before the run, and their step

    def __repr__(self) -> str:
        return f"Penstock(late={self.late:g}, target_ms={self.target_ms:g})"

    def initial(self, pools: Mapping[str, int], td_s: float) -> Mapping[str, int]:  # noqa: ARG002
        """A quarter of each pool: nothing is known yet."""
        return {name: math.ceil(pool / 4) for name, pool in pools.items()}

    def recall(self, rates: Sequence[float], step_s: float) -> None:
        """Take in what came before the run, step by step: it is played in the place of made bursts."""
        self._before = rates, positive("policy 'penstock'", "step_s", step_s)
        self._peak = max([self._peak, *rates])

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:  # noqa: ARG002
        """A target for every operator, in topological order."""
        rates, edges, hot = self._rates.learn(snapshot), self._shares.learn(snapshot), self._skew.learn(snapshot)
        rate, over_s = sum(rates.values()), horizon_s(snapshot.td_s)
        if rate > 0:
            self._mix = {source: one / rate for source, one in rates.items()}
        if not snapshot.incomplete:
            self._peak = max(self._peak, rate)
        past = self._past_at(over_s)
        copy = copied(snapshot, propagate(self._mix, edges), hot)
        if copy is not None:
            past.learn(snapshot, copy)
        size = past.ready_for(snapshot.time_s, rate)
        new = propagate({source: part * size * over_s for source, part in self._mix.items()}, edges)
        own = {name: movable(load, over_s) for name, load in snapshot.operators.items()}
        waiting, why = propagate(own, edges), past.why()
        self._now = None if copy is None else _Now(snapshot, rate, copy, waiting)
        if size > 0 and past.verdict is not None and not past.verdict.kept:
            new = _within(new, waiting, rate / size, self._peak / size)
        targets = {}
        for name, load in snapshot.operators.items():
            expected = Expected(new[name], waiting[name], size * over_s, load.backlog - own[name])
            target = _sized(expected, load, over_s, hot.get(name))
            target = Target(target.replicas, f"{target.reason}; {why}", target.expected)
            targets[name] = _trusted(target, load) if snapshot.incomplete else target
        return Plan(targets)

    def slots_ahead(self, supply: Supply) -> tuple[int, str] | None:
        """How many slots there should be when a worker that is asked for now has joined, by the last plan's numbers."""
        now = self._now
        if now is None:
            return None
        snapshot, step_s = now.snapshot, max(STEP_S, now.snapshot.td_s)
        if self._workers is None or self._workers.step_s != step_s:
            self._workers = WorkersPast(step_s, self.late, self.target_ms / 1000, self._came_before(step_s))
        if not snapshot.incomplete and snapshot.interval_s > 0:
            self._workers.learn(snapshot.time_s, snapshot.entered, snapshot.interval_s, now.copy, supply)
        return self._workers.slots(snapshot.time_s, now.rate, now.events_waiting, now.copy, supply)

    def _past_at(self, step_s: float) -> Past:
        """What was played at intervals of this length; at another length it begins anew."""
        if self._past is None or self._past.step_s != step_s:
            self._past = Past(step_s, self.late, self.target_ms / 1000, self._came_before(step_s))
        return self._past

    def _came_before(self, step_s: float) -> list[float]:
        """What came before the run, at steps of this length; nothing where all of it was silence."""
        rates = resampled(*self._before, step_s)
        return rates if any(rates) else []


@dataclass(frozen=True, slots=True)
class _Now:
    """What a plan was made for; `waiting` are the events that wait for each operator, anywhere above it."""

    snapshot: Snapshot
    rate: float
    copy: Copy
    waiting: Mapping[str, float]

    @property
    def events_waiting(self) -> float:
        """What waits, as source events that would be as much work."""
        times_s = {name: load.execution_time_s or 0.0 for name, load in self.snapshot.operators.items()}
        work_s = sum(count * times_s[name] for name, count in self.waiting.items() if name in times_s)
        return work_s / float(self.copy.work_s.sum())


def _within(new: Mapping[str, float], waiting: Mapping[str, float], last: float, peak: float) -> dict[str, float]:
    """New events to expect where no rule keeps the promise: with what waits, no more than come at the largest rate.

    At least those of the last rate count. `last` and `peak` are these rates over the one that `new` is for.

    >>> _within({"clean": 600.0, "store": 600.0}, {"clean": 50.0, "store": 400.0}, 1 / 3, 2 / 3)
    {'clean': 350.0, 'store': 200.0}
    """
    return {name: min(n, max(last * n, peak * n - waiting.get(name, 0.0))) for name, n in new.items()}


def _sized(expected: Expected, load: OperatorLoad, over_s: float, hot: float | None) -> Target:
    """Replicas for what is expected, by the busiest replica where keys are not even."""
    target = expected.target(load, over_s)
    return target if hot is None else _uneven(target, load, over_s, hot)


def _uneven(target: Target, load: OperatorLoad, over_s: float, hot: float) -> Target:
    """The target with what the busiest replica of a keyed operator needs.

    >>> clean = OperatorLoad(name="count", received_by={}, processed=0, backlog=0, active=(0,), pool=8,
    ...                      execution_time_s=0.02)
    >>> _uneven(Target(4, "needs 4 replicas", 200.0), clean, 1.0, 0.1)
    Target(replicas=6, reason='needs 4 replicas; keys are not even, one replica has 10 % beyond its part', \
expected=200.0, which=None)
    """
    if not load.execution_time_s or target.expected is None:
        return target
    need = target.expected * load.execution_time_s / over_s
    replicas = replicas_for(uneven_need(need, hot))
    replicas += load.replicas == replicas + 1  # one fewer is not worth moving keys
    why = f"keys are not even, one replica has {100 * hot:.2g} % beyond its part"
    if hot * need >= 1:
        why += f", which alone takes {hot * need:.3g} replicas: adding more does not help it"
    return replace(target, replicas=max(target.replicas, replicas), reason=f"{target.reason}; {why}")


def _trusted(target: Target, load: OperatorLoad) -> Target:
    """The target, but no scale-in: some numbers are missing."""
    if target.replicas >= load.replicas:
        return target
    return target.limited(load.replicas, "not scaled in on incomplete numbers")
