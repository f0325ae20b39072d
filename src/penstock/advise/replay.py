"""A logged load played again, under other policies and numbers of executors: what they cost, and how late rows are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from penstock.advise.event_log import LoggedApplication, LoggedQuery
from penstock.attached.keeper import Keeper
from penstock.attached.model.cost import Cost
from penstock.attached.model.demand import Promise
from penstock.attached.model.need import UNKNOWN_JOIN_S, Bounds
from penstock.attached.model.plant import SimulatedExecutors, SimulatedQuery
from penstock.attached.model.query import POLLED_S, QueryState
from penstock.attached.model.sharing import sharing
from penstock.attached.options import DEFAULT_POLICY, KeeperOptions, usual_td_s
from penstock.errors import InputError
from penstock.metrics.latency import merged
from penstock.policy.registry import POLICIES

STEP_S = 0.5
AS_IT_WAS = "as it was"
AFTER_S = 60.0  # in which what has come may be finished
NOT_PLAYED = ("oracle", "static", "learning")  # they know the future, nothing, or a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What executors and rows came to, under one policy."""

    policy: str
    executor_seconds: float
    rows: int
    late: int
    p50_ms: float
    p99_ms: float
    changes: int = 0
    executors: tuple[tuple[float, int], ...] = ()  # from each time on

    @property
    def late_ratio(self) -> float:
        """The share of rows that were late."""
        return self.late / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A query that can be played: its trigger, its cost, and when its rows came."""

    name: str
    trigger_s: float
    cost: Cost
    came: Callable[[float], int]
    rows: int = 0
    state_partitions: int | None = None
    note: str | None = None  # what a user should know of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is promised, and what is played by. Without `td_s` it is the interval that `attach` would take."""

    promise: Promise
    bounds: Bounds
    join_s: float = UNKNOWN_JOIN_S
    td_s: float | None = None
    cooldown_s: float = 30.0
    forecaster: str | None = None


@dataclass
class Load:
    """The queries of an application, from their first row to their last, on a clock that begins there.

    `was` is what it came to when it ran.
    """

    name: str
    slots_each: int
    start_s: float
    seconds: float
    was: Outcome
    version: str = ""  # of Spark, where it is known
    queries: list[Fitted] = field(default_factory=list)


def logged_load(logged: LoggedApplication, promise: Promise) -> Load:
    """The load of an event log, with costs fitted, and the delays that rows had."""
    with_rows = [one for one in logged.queries.values() if sum(batch.rows > 0 for batch in one.batches) >= 2]
    if not with_rows:
        raise InputError("event log: must have a query of at least two batches with rows; there is none")
    start_s = min(one.batches[0].planned_s for one in with_rows)
    end_s = max(one.batches[-1].end_s for one in with_rows)
    states = [_learnt(one, promise, [other for other in with_rows if other is not one]) for one in with_rows]
    return Load(
        logged.id,
        logged.slots_each,
        start_s,
        end_s - start_s,
        _as_it_was(logged, states, start_s, end_s),
        logged.version,
        [_fitted(query, state, start_s) for query, state in zip(with_rows, states, strict=True)],
    )


def _learnt(query: LoggedQuery, promise: Promise, others: Sequence[LoggedQuery]) -> QueryState:
    state = QueryState(query.name, query.trigger_s, promise)
    beside = [replace(one, core_s=None) for other in others for one in other.batches if one.rows]  # played evenly, too
    for batch in query.batches:
        state.learn(batch if batch.slots is None else replace(batch, slots=batch.slots / sharing(batch, beside)))
    return state


def _fitted(query: LoggedQuery, state: QueryState, start_s: float) -> Fitted:
    if state.cost is None:
        raise InputError(f"query '{query.name}': its costs are not known, as its executors never stayed for a batch")
    return Fitted(
        name=query.name,
        trigger_s=state.trigger_s,
        cost=state.cost,
        came=arrivals(query, state.trigger_s, start_s),
        rows=state.processed,
        state_partitions=state.most_slots,
        note=state.note(),
    )


def _as_it_was(logged: LoggedApplication, states: Sequence[QueryState], start_s: float, end_s: float) -> Outcome:
    histogram = merged(one.delays.histogram for one in states)
    times = [(max(0.0, time_s - start_s), number) for time_s, number in logged.executor_times() if time_s < end_s]
    return Outcome(
        policy=AS_IT_WAS,
        executor_seconds=logged.executor_seconds(start_s, end_s),
        rows=histogram.count,
        late=sum(one.delays.late for one in states),
        p50_ms=histogram.percentile_ms(0.5),
        p99_ms=histogram.percentile_ms(0.99),
        changes=max(0, len(times) - 1),
        executors=tuple(times),
    )


def arrivals(query: LoggedQuery, trigger_s: float, start_s: float) -> Callable[[float], int]:
    """How many rows had come by a time: even between two looks of Spark's.

    What waited at the source before the log began is left out, and so is the first batch, whose rows came before.
    """
    times, counts, total = [query.batches[0].planned_s - start_s], [0.0], 0.0
    looks_s = max(trigger_s, POLLED_S)
    for before, batch in pairwise(query.batches):
        if batch.planned_s - start_s <= times[-1]:
            continue
        since_s = batch.start_s - looks_s - start_s
        if before.end_s - start_s <= since_s and since_s > times[-1]:  # nothing was there when it looked in between
            times.append(since_s)
            counts.append(total)
        total += max(0.0, batch.rows + (batch.waiting or 0.0) - (before.waiting or 0.0))
        times.append(batch.planned_s - start_s)
        counts.append(total)
    at, rows = np.array(times), np.array(counts)
    return lambda now_s: int(np.interp(now_s, at, rows) + 1e-6)


def played_options(load: Load, policy: str, rules: Rules) -> KeeperOptions:
    """The options of the keeper that a policy is played with; what is to be pasted has the same."""
    return KeeperOptions(
        bounds=rules.bounds,
        promise=rules.promise,
        policy=policy,
        forecaster=rules.forecaster,
        td_s=usual_td_s([one.trigger_s for one in load.queries]) if rules.td_s is None else rules.td_s,
        cooldown_s=rules.cooldown_s,
    )


def replay(load: Load, policy: str | int, rules: Rules) -> Outcome:
    """The load under a policy, or on so many executors all the time."""
    now = [0.0]
    if isinstance(policy, int):
        fixed = replace(rules, bounds=Bounds(policy, policy), forecaster=None)
        first, options = policy, replace(played_options(load, DEFAULT_POLICY, fixed), mode="advise")
    else:
        first, options = _first(load, rules), played_options(load, policy, rules)
    executors = SimulatedExecutors(first, slots_each=load.slots_each, join_s=rules.join_s, now=lambda: now[0])
    keeper = Keeper(executors, options)
    queries = [
        SimulatedQuery(one.name, one.trigger_s, one.cost, one.came, one.state_partitions) for one in load.queries
    ]
    for one in queries:
        keeper.add(one)
    seconds, timeline = _play(load, keeper, executors, queries, now)
    return _outcome(str(policy), seconds, timeline, keeper, queries)


def _play(
    load: Load, keeper: Keeper, executors: SimulatedExecutors, queries: Sequence[SimulatedQuery], now: list[float]
) -> tuple[float, list[tuple[float, int]]]:
    """Executor-seconds up to the end of the load, and when their number changed."""
    timeline = [(0.0, executors.count())]
    spent_s, due_s = 0.0, keeper.options.td_s
    while now[0] < load.seconds + AFTER_S and (now[0] < load.seconds or any(one.unfinished for one in queries)):
        now[0] += STEP_S
        count = executors.count()
        spent_s += count * STEP_S if now[0] <= load.seconds else 0.0
        for one, slots in shared_slots(queries, executors.slots()):
            one.advance(now[0], slots)
        if now[0] >= due_s:
            keeper.step(now[0])
            due_s += keeper.options.td_s
        if executors.count() != timeline[-1][1]:
            timeline.append((now[0], executors.count()))
    keeper.monitor.collect(now[0])
    return spent_s, timeline


def shared_slots(queries: Sequence[SimulatedQuery], slots: int) -> list[tuple[SimulatedQuery, int]]:
    """The slots that each query has now: those whose batches run share them evenly, as Spark's fair scheduler does."""
    running = sum(one.running() is not None for one in queries)
    sharing = [running + (one.running() is None) for one in queries]  # one that begins now is one more
    return [(one, max(1, slots // number) if slots else 0) for one, number in zip(queries, sharing, strict=True)]


def _outcome(
    policy: str,
    seconds: float,
    timeline: Sequence[tuple[float, int]],
    keeper: Keeper,
    queries: Sequence[SimulatedQuery],
) -> Outcome:
    sums = [one.delays for one in keeper.monitor.states.values()]
    histogram = sums[0].histogram
    for one in sums[1:]:
        histogram.merge(one.histogram)
    left = sum(one.unfinished for one in queries)
    return Outcome(
        policy=policy,
        executor_seconds=seconds,
        rows=histogram.count + left,
        late=sum(one.late for one in sums) + left,
        p50_ms=histogram.percentile_ms(0.5),
        p99_ms=histogram.percentile_ms(0.99),
        changes=0 if keeper.kept is None else keeper.kept.changes,
        executors=tuple(timeline),
    )


def _first(load: Load, rules: Rules) -> int:
    """As many executors as the mean load needs."""
    slots = sum(one.came(load.seconds) / max(load.seconds, 1.0) * one.cost.by_row_s for one in load.queries)
    return rules.bounds.executors(math.ceil(1.5 * slots), load.slots_each)


def policies() -> list[str]:
    """Those that follow a load."""
    return [name for name in POLICIES.distinct if name not in NOT_PLAYED]


def fewest(load: Load, rules: Rules) -> Outcome | None:
    """The least constant number of executors that keeps the promise; None if the most do not."""
    low, high, found = rules.bounds.least, rules.bounds.most, None
    while low <= high:
        middle = (low + high) // 2
        tried = replay(load, middle, rules)
        if tried.late_ratio <= rules.promise.late:
            found, high = tried, middle - 1
        else:
            low = middle + 1
    return found
