"""A keeper's queries played on for an explanation: batch by batch, on the slots that each has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from penstock.attached.model.demand import Promise, cost_at_pace
from penstock.attached.model.plant import SimulatedQuery
from penstock.attached.model.progress import Batch
from penstock.attached.model.query import QueryState, source_of
from penstock.metrics.rows import PromiseRow, RunRow
from penstock.metrics.store import Store
from penstock.policy.penstock import TARGET_MS
from penstock.simulator.what_if import UNKNOWN_S, Outcome, StateAtHand, played_on

Player: TypeAlias = Callable[[StateAtHand, Mapping[str, int]], Outcome]

BEFORE_S = 0.001  # when what came earlier was taken in


def triggers_of(run: RunRow) -> Mapping[str, float] | None:
    """The intervals of the triggers of a keeper's queries, by name; None of any other run."""
    found = run.settings.get("triggers_s")
    return found if isinstance(found, Mapping) else None


def player_of(run: RunRow) -> Player:
    """What plays a run on: a keeper's queries in batches, the operators of a topology event by event."""
    triggers_s = triggers_of(run)
    return played_on if triggers_s is None else partial(played_queries, triggers_s=triggers_s)


def promise_of(store: Store, run: RunRow) -> PromiseRow:
    """What a run promised; one of a keeper has it among its settings, too."""
    late, target_ms = run.settings.get("late"), run.settings.get("target_ms")
    told = PromiseRow(
        late=late if isinstance(late, float) else float("nan"),
        target_ms=float(target_ms) if isinstance(target_ms, int | float) else TARGET_MS,
    )
    return store.promise(run.run) or told


def played_queries(state: StateAtHand, replicas: Mapping[str, int], triggers_s: Mapping[str, float]) -> Outcome:
    """Let queries go on with so many slots each, all the time.

    What has come by the end is given until its target to be done: what is not done then is late.
    """
    found = [_played(state, name, replicas[name], triggers_s.get(name, 0.0)) for name in state.operators]
    return Outcome(
        events=sum(one.events for one in found),
        late=sum(one.late for one in found),
        replica_seconds=sum(one.replica_seconds for one in found),
        backlog=sum(one.backlog for one in found),
    )


def _played(state: StateAtHand, name: str, slots: int, trigger_s: float) -> Outcome:
    promise, end_s = Promise(state.target_s), state.seconds
    learnt = QueryState(name, trigger_s, promise)
    time_s = state.operators[name].execution_time_s
    came = _came(state, name)
    query = SimulatedQuery(name, trigger_s, cost_at_pace(UNKNOWN_S if time_s is None else time_s, learnt.pace), came)
    learnt.learn(Batch(number=-1, start_s=-BEFORE_S, planned_s=-BEFORE_S, seconds=0.0, rows=0))
    query.advance(end_s, slots)
    usual = came(end_s) - came(max(0.0, end_s - learnt.pace.longest_s))  # are in a batch, or in the next
    backlog = max(0, query.unfinished - usual)
    query.advance(end_s + state.target_s, slots)
    for batch in query.batches():
        learnt.learn(batch)
    late = learnt.delays.late + query.unfinished
    return Outcome(learnt.delays.rows + query.unfinished, late, slots * end_s, backlog)


def _came(state: StateAtHand, name: str) -> Callable[[float], int]:
    """Rows that waited, or had come by a time."""
    rates = state.rates.get(source_of(name), ())
    counts = state.operators[name].backlog + np.cumsum([0.0, *(state.td_s * rate for rate in rates)])
    edges_s = state.td_s * np.arange(len(counts))
    return lambda now_s: int(np.interp(now_s, edges_s, counts) + 1e-6)
