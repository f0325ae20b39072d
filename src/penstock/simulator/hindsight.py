"""Hindsight: replica-seconds that no run can do without if it keeps its promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from penstock.simulator.kernels.arrays import ONE_OF, TABLE, Floats, Ints
from penstock.simulator.plant.model import Model, OperatorModel
from penstock.simulator.prepare import Prepared

_ROUNDING = 1e-9


def hindsight(prepared: Prepared, late: float) -> float:
    """A lower bound on the replica-seconds of every run in which at most a share `late` of the events is late.

        Σ_i end + max over 0 ≤ λ_i ≤ 1 of  Σ_i λ_i · (W_i − R_i) − (the ⌊late · n⌋ largest of Σ_i λ_i · w_i,e)

    w_i,e is the work that source event e makes at operator i, W_i the sum of it, and R_i the most of it that one
    replica can do by the end of the input, each event between its arrival and the target after it. Proof:

    1. All work of an event that is on time is done between its arrival and the target after it, on replicas that are
       paid meanwhile; and one replica of every operator is paid until the input ends, at work or not.
    2. So operator i pays end + X_i, where X_i is at least the work that is done beside that replica or after the end.
       Of the work of events on time, that replica does at most R_i: X_i ≥ max(0, W_i − late work − R_i).
    3. The late work of all operators is that of the same events, of which there are at most ⌊late · n⌋. Weighted by any
       λ it is at most that of the largest, and Σ X_i ≥ Σ λ_i · X_i.

    R_i is exact: who serves the oldest first, and drops what is too old, wastes least. So for one operator the bound is
    the optimum where all events are alike and replicas come and go at any time. What a run draws depends on the policy;
    there work counts as far as it is certain. The λ that are tried are 0 and 1.

    >>> from penstock.simulator.prepare import prepare
    >>> from penstock.simulator import Scenario
    >>> from penstock.topology import Topology
    >>> from penstock.workload import constant
    >>> topology = Topology("one", pool=8)
    >>> clean = topology.operator("clean", str.strip, inputs=topology.source("in"), execution_time_ms=30.0)
    >>> prepared = prepare(Scenario(topology, constant(100.0, duration_s=60.0)))
    >>> round(hindsight(prepared, late=0.0), 6), round(hindsight(prepared, late=0.01), 6)
    (180.0, 178.2)
    """
    load = load_of(prepared)
    most_late = math.floor(late * len(load.rows) * (1 + _ROUNDING) + _ROUNDING)
    return bound_s(load, prepared.scenario.contest.target_s, most_late)


class Load(NamedTuple):
    """Source events in order of arrival, and the work that they make."""

    times_s: Floats
    rows: Ints  # of each, its row in the table
    table: Floats  # seconds of work by distinct event and operator
    end_s: float  # of the input


def load_of(prepared: Prepared) -> Load:
    """All arrivals, as every run of the scenario has them."""
    arrivals, values = prepared.arrivals(), prepared.model.values
    times, rows, base = [], [], 0
    for source in prepared.model.sources:
        times.append(arrivals[source].pull(math.inf))
        rows.append(base + np.arange(len(times[-1])) % values[source])
        base += values[source]
    together, end_s = np.concatenate(times), max(one.end_s for one in arrivals.values())
    order = np.argsort(together, kind="stable")
    return Load(together[order], np.concatenate(rows)[order], work_of(prepared.model), end_s)


def bound_s(load: Load, target_s: float, most_late: int) -> float:
    """The bound for a load of which so many events may be late."""
    operators = range(load.table.shape[1])
    excess = np.array([_excess_s(load, number, target_s) for number in operators])
    weights, best_s = np.ones(len(excess)), 0.0
    while (found_s := _dual_s(weights, excess, load, most_late)) > best_s or (weights == 1).all():
        best_s = max(best_s, found_s)
        fewer = [weights * (np.arange(len(weights)) != one) for one in np.flatnonzero(weights)]
        weights = max(fewer, key=lambda tried: _dual_s(tried, excess, load, most_late))
        if not weights.any():
            break
    return len(excess) * load.end_s + best_s


def work_of(model: Model) -> Floats:
    """Seconds of work that one event makes at each operator, by its source and value: a row each, a column each.

    Rows of the sources come one after another. Where something is drawn it is the least that can come of it.
    """
    names = list(model.operators)
    made: dict[str, Floats] = {}  # by operator: what one event that it gets makes there and below, by value
    for name in reversed(names):
        made[name] = _below(model.operators[name], names, made)
    found = []
    for source, edges in model.sources.items():
        values = np.arange(model.values[source])
        parts = [_of(made[edge.receiver], values + edge.base) for edge in edges]
        found.append(np.sum(parts, axis=0) if parts else np.zeros((len(values), len(names))))
    return np.concatenate(found)


def _below(one: OperatorModel, names: list[str], made: Mapping[str, Floats]) -> Floats:
    """What one event at this operator makes here and below, by value; one row where all are alike."""
    work, tabled = one.work, one.work.rules[0] == TABLE
    found = np.zeros((work.counts.shape[1] if tabled else len(work.service), len(names)))
    if not work.rules[1]:  # an exponential time may be as short as it likes
        found[:, names.index(one.operator.name)] = work.service
    for place, edge in enumerate(one.outputs):
        below, stream = made[edge.receiver], int(work.stream[place])
        if tabled:
            first, several = work.first[place].astype(np.int64), work.counts[stream].astype(np.int64)
            if len(below) == 1:
                found += several[:, np.newaxis] * below
            else:
                sums = np.concatenate([np.zeros((1, len(names))), np.cumsum(below, axis=0)])
                found += sums[first + several] - sums[first]
        else:
            share = float(work.share[stream])
            sure = int(share >= 1.0) if work.rules[0] == ONE_OF else math.floor(share)
            found += sure * below.min(axis=0)
    return found


def _of(table: Floats, values: Ints) -> Floats:
    """The rows of these values; the one row where all are alike."""
    return table[np.minimum(values, len(table) - 1)]


def _excess_s(load: Load, operator: int, target_s: float) -> float:
    """W − R of one operator."""
    work_s = load.table[load.rows, operator]
    return max(0.0, float(work_s.sum()) - float(done_by_one(load.times_s, work_s, target_s, load.end_s)))


@njit(cache=True)
def done_by_one(times_s: Any, work_s: Any, target_s: float, end_s: float) -> float:
    """The most work that one replica can do in time, of events in order of arrival: R."""
    free, done = 0.0, 0.0
    for place in range(len(times_s)):
        start = max(free, times_s[place])
        spent = min(work_s[place], min(times_s[place] + target_s, end_s) - start)
        if spent > 0.0:
            free = start + spent
            done += spent
    return done


def _dual_s(weights: Floats, excess: Floats, load: Load, most_late: int) -> float:
    """Σ λ_i · (W_i − R_i), less the most work of events that may be late."""
    weighted, counts = load.table @ weights, np.bincount(load.rows, minlength=len(load.table))
    order = np.argsort(-weighted)
    before = np.cumsum(counts[order]) - counts[order]
    taken = np.clip(most_late - before, 0, counts[order])
    return float(weights @ excess) - float(taken @ weighted[order])
