"""Monitor: the queries of a session as one snapshot, and the slots that they share."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.attached.model.delay import DelaySum
from penstock.attached.model.lag import WITHIN_S, Lag, ask_all
from penstock.attached.model.progress import Batch
from penstock.attached.model.query import QueryState, source_of
from penstock.attached.model.sharing import Sharing
from penstock.forecast.base import Forecast
from penstock.metrics.interval import IntervalRules
from penstock.metrics.latency import merged
from penstock.metrics.snapshot import IntervalLatency, OperatorLoad, Snapshot
from penstock.metrics.utilisation import Utilisation
from penstock.policy.base import Plan, Policy, share_slots

TIMELINE = 2000  # looks at the slots that are remembered


class Watched(Protocol):
    """A query that can be looked at; see `penstock.attached.spark_query`."""

    def batches(self) -> Sequence[Batch]:
        """Those that have ended since this was last asked, the oldest first."""

    def running(self) -> float | None:
        """By how many offsets the batch that runs goes on, NaN if that is not known; None if none runs."""

    def absence(self) -> str | None:
        """Why the query is not there, if it is not."""


@dataclass(frozen=True, slots=True)
class _Heard:
    batches: Sequence[Batch]
    running: float | None
    absence: str | None


class SlotPort(Protocol):
    """Where slots are counted."""

    def slots(self) -> int:
        """Those that tasks can run on now."""


class Allotment:
    """What was last planned for each query: remembers the plans of the policy that it wraps.

    It is the loop's actuator, too: a slot is given to a query by having it, as Spark's scheduler shares them out.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.wanted: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Allotment({self.policy!r})"

    def plan(self, snapshot: Snapshot, forecast: Forecast | None = None) -> Plan:
        """The wrapped policy's plan."""
        plan = self.policy.plan(snapshot, forecast)
        self.wanted = plan.replicas
        return plan

    def set_replicas(self, operator: str, replicas: tuple[int, ...]) -> None:
        """Nothing to do: see `wanted`."""

    def publish_utilisation(self, utilisation: Mapping[str, Utilisation]) -> None:
        """Nobody asks."""

    def given(self, names: Sequence[str], slots: int) -> dict[str, int]:
        """Of the slots that are there, those of each query: what it wants, or its part by need where they are too few.

        Queries that nothing was planned for yet have an even part, and none is left over: it would be let go.

        >>> allotment = Allotment(None)
        >>> allotment.given(["a", "b"], 4), allotment.given(["a", "b"], 3)
        ({'a': 2, 'b': 2}, {'a': 2, 'b': 1})
        >>> allotment.wanted = {"a": 2, "b": 9}
        >>> allotment.given(["a", "b"], 8), allotment.given(["a", "b"], 16)
        ({'a': 2, 'b': 6}, {'a': 2, 'b': 9})
        """
        evenly = math.ceil(slots / max(1, len(names)))
        wanted = {name: max(1, self.wanted.get(name, evenly)) for name in names}
        if sum(wanted.values()) <= slots:
            return wanted
        return share_slots(wanted, dict.fromkeys(names, 1), slots)


class QueriesMonitor:
    """One snapshot an interval: every query an operator with a source of its own.

    Queries may be added while it works. In advice, where nothing is changed, a query has all slots that are there.
    """

    def __init__(self, rules: IntervalRules, slots: SlotPort, most_slots: int, allotment: Allotment | None) -> None:
        self.rules = rules
        self.states: dict[str, QueryState] = {}
        self.lags: dict[str, Lag] = {}  # by query, where its user can say what waits
        self.slots = 0  # at the last look
        self.away: dict[str, str] = {}  # queries that were not there, and why
        self._port = slots
        self._most = most_slots
        self._allotment = allotment
        self._watched: dict[str, Watched] = {}
        self._sharing = Sharing()
        self._last_s: float | None = None
        self._timeline: deque[tuple[float, int]] = deque(maxlen=TIMELINE)
        self._lock = threading.Lock()

    def add(self, state: QueryState, watched: Watched, lag: Lag | None = None) -> None:
        """Watch one more; `lag` says what waits at its source, if Spark cannot."""
        with self._lock:
            self.states[state.name], self._watched[state.name] = state, watched
            if lag is not None:
                self.lags[state.name] = lag

    def remove(self, name: str) -> None:
        """Watch it no longer."""
        with self._lock:
            for known in (self.states, self._watched, self.lags):
                known.pop(name, None)
            self._sharing.forget(name)

    def note_slots(self, now_s: float) -> None:
        """Look at the slots; also after they were changed."""
        self.slots = self._port.slots()
        self._timeline.append((now_s, self.slots))

    def collect(self, now_s: float, cut: bool = False) -> Snapshot | None:  # noqa: ARG002 - rates bear any length
        """The queries now, by what their batches said since the last look."""
        with self._lock:
            states, watched, lags = dict(self.states), dict(self._watched), dict(self.lags)
        self.note_slots(now_s)
        for name, rows in ask_all(lags, min(WITHIN_S, self.rules.td_s / 4)).items():
            states[name].outside = rows
        before, self.away = {name: one.processed for name, one in states.items()}, {}
        heard = {name: self._heard(states[name], one) for name, one in watched.items()}
        absent = {name: self._learnt(states[name], one) for name, one in heard.items()}
        length_s = self._length_s(now_s)
        given = self._given(list(states))
        loads = {name: self._load(one, now_s, given[name]) for name, one in states.items()}
        loads = {name: replace(one, processed=states[name].processed - before[name]) for name, one in loads.items()}
        doubts = {name: absent[name] or one.doubt(now_s) for name, one in states.items()}
        incomplete = {one: why for name, why in doubts.items() if why for one in (name, source_of(name))}
        return Snapshot(
            time_s=now_s,
            interval_s=length_s,
            td_s=self.rules.td_s,
            source_input={source: self._entered(one, length_s) for one in loads.values() for source in one.received_by},
            operators=loads,
            incomplete=incomplete,
            source_output=float(sum(one.processed for one in loads.values())),
            latency=_latency([one.taken_delays() for one in states.values()]),
        )

    def _heard(self, state: QueryState, watched: Watched) -> _Heard | str:
        """What a query says, or why it cannot be read. What fails for one is no fault of others."""
        try:
            batches = watched.batches()
            found = _Heard(batches, watched.running(), watched.absence())
        except Exception as error:  # whatever Spark says
            return f"its progress cannot be read: {type(error).__name__}: {error}"
        last = batches[-1] if batches else state.last
        self._sharing.ran(state.name, batches)
        self._sharing.runs(
            state.name, state.next_begins_s(last) if last is not None and found.running is not None else None
        )
        return found

    def _learnt(self, state: QueryState, heard: _Heard | str) -> str | None:
        """Take in what a query said, once all were heard; why it is not to be trusted, if so."""
        if isinstance(heard, str):
            return heard
        for batch in heard.batches:
            slots = batch.slots if batch.slots is not None else self._slots_between(batch.start_s, batch.end_s)
            own = None if slots is None else slots / self._sharing.among(state.name, batch)
            state.learn(replace(batch, slots=own))
        state.see_running(heard.running)
        if heard.absence is not None:
            self.away[state.name] = heard.absence
        return heard.absence

    def _length_s(self, now_s: float) -> float:
        last_s, self._last_s = self._last_s, now_s
        length_s = self.rules.td_s if last_s is None else now_s - last_s
        return length_s if 0 < length_s < math.inf else self.rules.td_s

    def _given(self, names: list[str]) -> dict[str, int]:
        if self._allotment is None:
            return dict.fromkeys(names, max(1, self.slots))
        return self._allotment.given(names, self.slots)

    def _load(self, state: QueryState, now_s: float, slots: int) -> OperatorLoad:
        pool = min(self._most, state.most_slots or self._most)
        return state.load(now_s, self.rules.td_s, tuple(range(slots)), pool)

    def _entered(self, load: OperatorLoad, length_s: float) -> int:
        return round(load.received * length_s / self.rules.td_s)

    def _slots_between(self, start_s: float, end_s: float) -> float | None:
        """How many there were, as long as the batch ran; None if they changed: nobody knows what it had of which.

        Before the first look they are taken to be as at it.
        """
        found: set[int] = set()
        for time_s, slots in reversed(self._timeline):
            if time_s >= end_s:  # only the first of these counts
                found = {slots}
            else:
                found.add(slots)
            if time_s <= start_s:
                break
        return float(found.pop()) if len(found) == 1 else None


def _latency(parts: Sequence[DelaySum]) -> IntervalLatency:
    found, late = merged(one.histogram for one in parts), sum(one.late for one in parts)
    return IntervalLatency(found.count, found.mean_ms, found.percentile_ms(0.5), found.percentile_ms(0.99), late)
