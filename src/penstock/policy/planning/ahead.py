"""What the policies that plan ahead (`spea`, `cba`, `optimal`) share: forecast → rates → need → timetable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from penstock.common.checks import choice, share, whole
from penstock.forecast.base import Forecast
from penstock.metrics.paper import replicas_for
from penstock.metrics.shares import propagate
from penstock.metrics.snapshot import OperatorLoad, Snapshot
from penstock.policy.base import Plan, Target
from penstock.policy.parts.expected import Shares, SourceRates, distrusted, horizon_s, kept, movable
from penstock.policy.planning.planners import MOST_REPLICAS, held
from penstock.policy.planning.timetable import Counts

PREDICT = ("operators", "sources")

Rates: TypeAlias = Mapping[str, tuple[float, ...]]  # by operator: of the interval that just ended, then of the next
Notes: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A timetable, the plain one it improves on, and what it saves against that."""

    timetable: Counts
    plain: Counts
    saved: float = 0.0


@dataclass(eq=False, kw_only=True)
class Ahead(ABC):
    """Plans every operator for itself, `horizon` intervals ahead, and carries out the first step.

    `horizon`: intervals of a timetable. `predict`: `operators`, the forecast of each operator's own input, as in the
    paper; or `sources`, that of the sources times the shares. `catch_up`: intervals over which a backlog is worked
    off. `utilisation`: the share of a replica's time that is planned for.
    """

    name: ClassVar[str]

    horizon: int = 12
    predict: str = "operators"
    catch_up: int = 1
    utilisation: float = 1.0

    def __post_init__(self) -> None:
        whole(f"policy '{self.name}'", "horizon", self.horizon, least=1)
        choice(f"policy '{self.name}'", "predict", self.predict, PREDICT)
        self._sizing = Sizing(policy=self.name, catch_up=self.catch_up, utilisation=self.utilisation)
        self._inputs = Inputs(self.predict, self.horizon)

    @abstractmethod
    def draft(self, need: Need, start: int) -> Draft:
        """The timetable for a need, where `start` replicas run."""

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """A target and a timetable for every operator; no timetable where nothing can be planned."""
        rates, notes = self._inputs.expect(snapshot, forecast)
        high = self._inputs.seldom_exceeded(forecast)
        targets: dict[str, Target] = {}
        timetables: dict[str, tuple[int, ...]] = {}
        for name, load in snapshot.operators.items():
            if held := unplanned(load, snapshot):
                targets[name] = held
            else:
                need = self._sizing.need(load, rates[name], snapshot.td_s, high.get(name, ()))
                targets[name], timetables[name] = self._planned(need, load.replicas, snapshot.td_s)
        return Plan(targets, notes, timetables)

    def _planned(self, need: Need, start: int, td_s: float) -> tuple[Target, tuple[int, ...]]:
        draft = self.draft(need, start)
        reason = reason_of(need, draft.timetable, draft.plain, start, draft.saved)
        timetable = draft.timetable if need.careful is None else held(draft.timetable, need.careful, start)
        if timetable[0] > draft.timetable[0]:
            reason += f"; keeps {timetable[0]}, as {need.high[1]:.4g}/s may come"
        first, *_ = counts = tuple(timetable.tolist())
        return Target(first, reason, (need.rates[1] + need.waiting) * td_s), counts


# From the forecast to every operator's input, in events per second.


class Inputs:
    """Rates by operator: the last one, and those of the next `horizon` intervals.

    `predict` is whose forecast is used: `operators`, each one's own, or `sources`, times the shares θ_i. Where there is
    no forecast the last rate goes on, and a note says so.

    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 90}, [load("clean", {"in": 80})])
    >>> Inputs("operators", 3).expect(seen, Forecast("drift", {"clean": (100.0, 120.0)}))
    ({'clean': (80.0, 100.0, 120.0, 120.0)}, ())
    >>> Inputs("sources", 2).expect(seen, Forecast("drift", {"in": (100.0, 120.0)}))
    ({'clean': (80.0, 100.0, 120.0)}, ())
    """

    def __init__(self, predict: str, horizon: int) -> None:
        self.predict = predict
        self.horizon = horizon
        self._sources = SourceRates()
        self._shares = Shares()

    def expect(self, snapshot: Snapshot, forecast: Forecast | None) -> tuple[Rates, Notes]:
        """Learn from the snapshot, then say what comes."""
        self._last = last_rates(snapshot)
        known = forecast.rates if forecast else {}
        if self.predict == "operators":
            ahead, silent = _ahead(self._last, known, self.horizon)
            return self._joined(ahead), _note("operator", silent)
        self._from, self._edges = self._sources.learn(snapshot), self._shares.learn(snapshot)
        ahead, silent = _ahead(self._from, known, self.horizon)
        return self._joined(self._reaching(ahead)), _note("source", silent)

    def seldom_exceeded(self, forecast: Forecast | None) -> Rates:
        """The same of the forecast's high rates, right after `expect`; empty where it has none.

        >>> from penstock.testing.loads import load, snapshot
        >>> comes = Forecast("auto", {"clean": (100.0,)}, high={"clean": (130.0,)})
        >>> inputs = Inputs("operators", 2)
        >>> rates = inputs.expect(snapshot({"in": 90}, [load("clean", {"in": 80})]), comes)
        >>> inputs.seldom_exceeded(comes)
        {'clean': (80.0, 130.0, 130.0)}
        """
        if forecast is None or not forecast.high:
            return {}
        known = {**forecast.rates, **forecast.high}
        if self.predict == "operators":
            return self._joined(_ahead(self._last, known, self.horizon)[0])
        return self._joined(self._reaching(_ahead(self._from, known, self.horizon)[0]))

    def _reaching(self, sources: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
        """What of the sources' rates reaches each operator."""
        steps = [
            propagate({name: rates[t] for name, rates in sources.items()}, self._edges) for t in range(self.horizon)
        ]
        return {name: [step[name] for step in steps] for name in self._last}

    def _joined(self, ahead: Mapping[str, Sequence[float]]) -> Rates:
        return {name: (rate, *ahead[name]) for name, rate in self._last.items()}


def last_rates(snapshot: Snapshot) -> dict[str, float]:
    """Events per second that reached each operator; 0 where the interval has no length."""
    length_s = snapshot.interval_s
    return {name: load.received / length_s if length_s > 0 else 0.0 for name, load in snapshot.operators.items()}


def _ahead(
    last: Mapping[str, float], expected: Mapping[str, Sequence[float]], horizon: int
) -> tuple[dict[str, list[float]], list[str]]:
    """What is expected of each series, its end held where it is too short, the last rate where it is not known."""
    found, silent = {}, []
    for name, rate in last.items():
        known = _usable(expected.get(name, ()))
        if not known:
            silent.append(name)
        padded = [*known, *[(known or [rate])[-1]] * horizon]
        found[name] = padded[:horizon]
    return found, silent


def _usable(rates: Sequence[float]) -> list[float]:
    """The rates up to the first that is no number of at least 0."""
    wrong = next((place for place, rate in enumerate(rates) if not 0 <= rate < math.inf), len(rates))
    return list(rates[:wrong])


def _note(kind: str, silent: Sequence[str]) -> Notes:
    if not silent:
        return ()
    if len(silent) == 1:
        return (f"no forecast for {kind} '{silent[0]}' yet: its last rate goes on",)
    return (f"no forecast for {len(silent)} {kind}s yet, '{silent[0]}' the first: their last rates go on",)


# From rates to the replicas that serve them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one operator needs in epochs 0 to T: rates with the backlog, and replicas within the pool."""

    rates: tuple[float, ...]  # of new events
    waiting: float  # the backlog as a rate, over the epochs in which it is worked off
    execution_time_s: float
    state_bytes: int = 0
    replicas: Counts
    pool: int
    unbounded: Counts  # replicas without the pool's bound
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

    @property
    def uncut(self) -> int:
        """The most replicas it would take without the pool's bound."""
        return int((self.unbounded[1:] if len(self.unbounded) > 1 else self.unbounded).max())

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
            unbounded=uncut,
            high=tuple(high),
            careful=np.minimum(self._uncut(load, high, td_s), pool) if high else None,
        )

    def _waiting(self, load: OperatorLoad, td_s: float) -> float:
        length_s = self.catch_up * horizon_s(td_s)
        return movable(load, length_s) / length_s

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


# What a timetable does that the need alone does not explain.


def reason_of(need: Need, timetable: Counts, plain: Counts, start: int, saved: float) -> str:
    """Why the timetable begins as it does, and where it leaves the `plain` one, with what that saves.

    `plain` is what the planner improves on: SPEA's timetable, or the need itself.
    """
    wanted = need.replicas[1:]
    parts = [str(need)]
    if timetable[0] != wanted[0]:
        parts.append(_move(timetable, wanted, 0, start))
    later = next((t for t in range(1, len(plain)) if timetable[t] != plain[t]), 0)
    if later and timetable[0] == plain[0]:
        parts.append(f"in {later + 1} intervals {_move(timetable, plain, later, int(timetable[later - 1]))}")
    if saved > 0 and len(parts) > 1:
        parts[-1] += f" (saves {_amount(saved)})"
    return "; ".join(parts)


def _move(timetable: Counts, wanted: Counts, place: int, before: int) -> str:
    count, need = int(timetable[place]), int(wanted[place])
    if count < need:
        return f"takes {count}, {need - count} short"
    if count > before:
        return f"takes {count} early"
    if (wanted[place:] >= count).any():
        return f"keeps {count} through the dip"
    return f"keeps {count} for longer"


def _amount(saved: float) -> str:
    return f"{saved:,.0f}" if saved >= 10 else f"{saved:.2g}"
