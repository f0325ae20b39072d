"""What a run came to: one object for programs."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.control.declare import declared
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters
from penstock.metrics.latency import LatencyHistogram
from penstock.metrics.paper import overestimated_replicas, saved_resources, throughput_degradation
from penstock.metrics.rows import DecisionRow, IntervalRow
from penstock.metrics.shares import counted_edges, source_output
from penstock.metrics.table import BUSY_S
from penstock.policy.workload import Workload
from penstock.topology import Topology

_WHOLE = 0.9  # of td
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass
class Played:
    """Of every interval in which events entered: how many, how many left, and the replicas that were active.

    `draining_s` are the seconds in which others, which were active before, still had events queued. An interval that a
    jump has cut short counts together with what follows, up to `td_s`.
    """

    td_s: float = 0.0
    entered: list[int] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    replicas: list[float] = field(default_factory=list)
    lengths_s: list[float] = field(default_factory=list)
    draining_s: list[float] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)  # of replicas, by operator, in all intervals
    seconds: float = 0.0  # of all intervals
    _cut: list[IntervalRow] = field(default_factory=list)
    _cut_draining_s: float = 0.0

    def add(self, row: IntervalRow, decisions: Iterable[DecisionRow] = (), draining_s: float = 0.0) -> None:
        """Another interval has ended, and these decisions were made."""
        self.seconds += row.interval_s
        self._cut_draining_s += draining_s
        for one in decisions:
            made = one.before != one.after and one.failure is None
            self.changes[one.operator] = self.changes.get(one.operator, 0) + made
        self._cut.append(row)
        length_s = math.fsum(one.interval_s for one in self._cut)
        if length_s < _WHOLE * self.td_s:
            return
        rows, self._cut = self._cut, []
        draining_s, self._cut_draining_s = self._cut_draining_s, 0.0
        if entered := sum(one.entered for one in rows):
            self.entered.append(entered)
            self.left.append(math.fsum(one.source_output for one in rows))
            self.replicas.append(math.fsum(one.replicas * one.interval_s for one in rows) / (length_s or 1.0))
            self.lengths_s.append(length_s)
            self.draining_s.append(draining_s)

    @property
    def replica_seconds(self) -> float:
        """Of all replicas that were active or had events queued, as the simulator counts them."""
        return math.fsum(map(operator.mul, self.replicas, self.lengths_s)) + math.fsum(self.draining_s)

    def saved(self, r_over: float) -> float:
        """What was saved over so many replicas for all the time."""
        return saved_resources(self.replicas, r_over, self.lengths_s)


def draining_s(before: RunCounters, now: RunCounters) -> float:
    """How long replicas that are not active had events queued between two looks, together.

    Who still has some has had some all the time, as nothing new comes; who has none was busy with what it had.

    >>> active, idle = ReplicaCounters(busy_s=4.0, queued=3), ReplicaCounters(busy_s=1.0)
    >>> one, still = ReplicaCounters(busy_s=1.5), ReplicaCounters(busy_s=0.4, queued=2)
    >>> looks = [RunCounters(time_s, {}, {"clean": OperatorCounters(replicas, (0,), 4, 5)})
    ...          for time_s, replicas in ((10.0, {0: active, 1: idle, 2: idle}), (15.0, {0: active, 1: one, 2: still}))]
    >>> draining_s(*looks)
    5.5
    """
    length_s, table = now.time_s - before.time_s, now.table
    if not length_s > 0:
        return 0.0
    busy_s = np.minimum(table.of_replicas(table.growth(before.table)[0], BUSY_S), length_s)
    active = [
        replica in now.operators[name].active
        for name, columns in table.layout.operators.items()
        for replica in columns.replicas
    ]
    return float(np.where(table.queued > 0, length_s, busy_s)[~np.array(active, bool)].sum())


def summarise(
    topology: Topology, counters: RunCounters, played: Played, workload: Workload | None = None
) -> dict[str, Any]:
    """Events, latency, the papers' metrics and every operator; what is saved is known where the workload is."""
    told = declared(topology)
    edges = counted_edges(counters, told)
    done = {name: float(one.total.processed) for name, one in counters.operators.items()}
    events = sum(counters.sources.values())
    processed = round(source_output(counters.sources, done, edges, told))
    r_over = None
    if workload is not None:
        r_over = overestimated_replicas(workload.peak_rate, workload.shares, workload.execution_times_s)
    return {
        "events": events,
        "processed": processed,
        "repeated": sum(one.total.repeated for one in counters.operators.values()),
        "dropped": counters.dropped,
        "outside": dict(counters.lag),
        "latency_ms": _latency(counters.latency),
        "restarts": counters.restarts,
        "saved_resources": None
        if r_over is None
        else _number(saved_resources(played.replicas, r_over, played.lengths_s)),
        "throughput_degradation": _number(throughput_degradation(played.entered, played.left)),
        "processed_ratio": _number(processed / events if events else math.nan),
        "r_over": r_over,
        "replica_seconds": round(played.replica_seconds, 3),
        "changes_per_minute": {
            name: round(60 * count / played.seconds, 3) for name, count in played.changes.items() if played.seconds > 0
        },
        "operators": {name: _operator(one) for name, one in counters.operators.items()},
    }


def _operator(one: OperatorCounters) -> dict[str, Any]:
    total = one.total
    return {
        "active": list(one.active),
        "pool": one.pool,
        "received": total.received,
        "processed": total.processed,
        "emitted": total.emitted,
        "dropped": total.dropped,
        "repeated": total.repeated,
        "backlog": one.backlog,
        "held": one.held,
        "booked": one.booked,
        "busy_s": round(total.busy_s, 6),
        "cpu_s": round(total.cpu_s, 6),
        "execution_time_ms": None if one.execution_time_s is None else round(1000 * one.execution_time_s, 4),
        "latency_ms": _latency(total.latency),
        **_state(total),
        "replicas": {
            str(number): {"received": r.received, "processed": r.processed, "busy_s": round(r.busy_s, 6)}
            for number, r in sorted(one.replicas.items())
        },
    }


def _state(total: ReplicaCounters) -> dict[str, Any]:
    """Of an operator that keeps state: how much, and how long what moved had to wait."""
    if not total.state_keys and not total.groups_moved:
        return {}
    longest = {"max": _number(total.moving.max_ms) if total.moving.count else None}
    return {
        "state_bytes": total.state_bytes,
        "state_keys": total.state_keys,
        "groups_moved": total.groups_moved,
        "wait_ms": _latency(total.moving) | longest,
    }


def _latency(histogram: LatencyHistogram) -> dict[str, float | None]:
    found = {name: _number(histogram.percentile_ms(q)) for name, q in PERCENTILES.items()}
    return {"mean": _number(histogram.mean_ms)} | found


def _number(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
