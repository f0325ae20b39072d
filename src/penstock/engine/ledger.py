"""The driver's book of counters: every report is entered once, even when a batch is done again.

Counters are cumulative within a batch, per replica. When a batch is done again in a later generation of the query,
its new counters take the place of the old ones; finished batches are added up.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass

from penstock.engine.messages import Report, Reports
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters, total
from penstock.topology import Topology

KEPT_BATCHES = 64  # batches that a late report may still change

Replica = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica was last heard of."""

    host: str
    pid: int
    batch: int


class Ledger:
    """Reports in, RunCounters out; safe to use from several threads."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._lock = threading.Lock()
        self._settled: dict[Replica, ReplicaCounters] = defaultdict(ReplicaCounters)
        self._batches: dict[int, dict[Replica, ReplicaCounters]] = {}
        self._generations: dict[int, int] = {}  # of each open batch
        self._settled_before = 0
        self._oldest_generation = 0
        self._places: dict[Replica, Place] = {}
        self._heard: dict[tuple[str, int], float] = {}  # when each process was last heard of

    def enter(self, reports: Reports, now_s: float) -> None:
        """Take what one process reported."""
        with self._lock:
            process = (reports.host, reports.pid)
            for report in reports.reports:
                self._enter(report, process)
            self._heard[process] = now_s

    def _enter(self, report: Report, process: tuple[str, int]) -> None:
        batch, replica = report.batch, (report.operator, report.replica)
        newest = max((g for b, g in self._generations.items() if b <= batch), default=0)
        if batch < self._settled_before or report.generation < max(newest, self._oldest_generation):
            return
        # a restart does this batch and all later ones again
        for later in [b for b, g in self._generations.items() if b >= batch and g < report.generation]:
            del self._batches[later], self._generations[later]
        self._generations[batch] = report.generation
        self._batches.setdefault(batch, {})[replica] = report.counters
        self._places[replica] = Place(*process, batch)
        self._settle(max(self._batches) - KEPT_BATCHES)

    def _settle(self, before: int) -> None:
        for batch in [b for b in self._batches if b < before]:
            for replica, counters in self._batches.pop(batch).items():
                counters.queued = 0
                self._settled[replica].add(counters)
            self._generations.pop(batch, None)
            self._settled_before = max(self._settled_before, batch + 1)

    def close_generation(self, generation: int) -> None:
        """All that was counted is final; a batch that is done again from here on, in this generation, adds to it."""
        with self._lock:
            self._settle(max(self._batches, default=-1) + 1)
            self._settled_before, self._oldest_generation = 0, generation

    def newest(self, sender: str) -> dict[int, tuple[int, int]]:
        """For each slot of a source, its newest batch and how many events it has sent in it."""
        with self._lock:
            return {
                replica: (batch, counters.processed)
                for batch in sorted(self._batches)
                for (name, replica), counters in self._batches[batch].items()
                if name == sender
            }

    def places(self) -> dict[Replica, Place]:
        """Where each replica was last heard of."""
        with self._lock:
            return dict(self._places)

    def heard(self, generation: int) -> set[Replica]:
        """The replicas that have reported in this generation."""
        with self._lock:
            batches = [b for b, g in self._generations.items() if g == generation]
            return {replica for b in batches for replica in self._batches.get(b, {})}

    def counters(self, now_s: float, active: dict[str, tuple[int, ...]], restarts: int = 0) -> RunCounters:
        """The run as a whole, as of the latest reports."""
        with self._lock:
            sums = self._sums()
            heard = {replica: self._heard[at.host, at.pid] for replica, at in self._places.items()}
        by_name: dict[str, dict[int, ReplicaCounters]] = defaultdict(dict)
        for (name, number), counters in sums.items():
            by_name[name][number] = counters
        sent: dict[str, int] = defaultdict(int)
        for counters in sums.values():
            for receiver, count in counters.sent.items():
                sent[receiver] += count
        operators: dict[str, OperatorCounters] = {}
        for name in self._topology.in_order():
            done = total(by_name[name].values())
            backlog = sent[name] - done.processed - sum(done.dropped.values())
            age = max((now_s - heard.get((name, r), now_s) for r in active[name]), default=0.0)
            pool = self._topology[name].pool
            operators[name] = OperatorCounters(by_name[name], active[name], pool, max(backlog, 0), age)
        sources = {name: total(by_name[name].values()).processed for name in self._topology.sources}
        missing = frozenset(n for n in operators if any((n, r) not in heard for r in active[n]))
        return RunCounters(now_s, sources, operators, restarts, missing)

    def _sums(self) -> dict[Replica, ReplicaCounters]:
        sums: dict[Replica, ReplicaCounters] = defaultdict(ReplicaCounters)
        for replica, counters in self._settled.items():
            sums[replica].add(counters)
        for batch in self._batches.values():
            for replica, counters in batch.items():
                sums[replica].add(counters)
        return sums
