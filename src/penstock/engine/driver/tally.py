"""The tally of all counters: every event counts once, even when it is done again.

Counters are cumulative within an attempt, per replica. When an attempt dies, they count as of its last checkpoint, and
those of the next attempt are added. A micro-batch that is done again takes the place of its first try; finished ones
are added up. Each shift is counted by itself.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass

import msgspec

from penstock.engine.protocol.messages import Report, Reports
from penstock.engine.protocol.progress import shift_of
from penstock.metrics.counters import OperatorCounters, ReplicaCounters, RunCounters, held_by, total
from penstock.topology import ReplicaId, Topology

KEPT_BATCHES = 64  # batches that a late report may still change
ROUND_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where a replica was last heard of."""

    host: str
    pid: int
    batch: int
    executor: str | None = None  # if Spark has been asked, and says so


class _OfShift:
    """The open batches of one shift, and where its replicas sit."""

    def __init__(self) -> None:
        self.batches: dict[int, dict[ReplicaId, ReplicaCounters]] = {}
        self.generations: dict[int, int] = {}  # of each open batch
        self.settled_before = 0
        self.places: dict[ReplicaId, ReplicaPlace] = {}
        self.committed: dict[ReplicaId, ReplicaCounters] = {}  # as of the last checkpoint of the attempt
        self.ended: dict[ReplicaId, bool] = {}  # source slots, and whether they have read all,
        self.still: dict[ReplicaId, bool] = {}  # and whether they stand still
        self.first_generation = 0  # what earlier ones say counts no more

    def enter(self, report: Report, process: tuple[str, int]) -> None:
        """Take one report, unless a later generation does its batch again, or it has been added up."""
        batch, replica = report.batch, (report.operator, report.replica)
        if report.generation < self.first_generation:
            return
        newest = max((g for b, g in self.generations.items() if b <= batch), default=0)
        if batch < self.settled_before or report.generation < newest:
            return
        # a restart does this batch and all later ones again
        for later in [b for b, g in self.generations.items() if b >= batch and g < report.generation]:
            del self.batches[later], self.generations[later]
        self.generations[batch] = report.generation
        self.batches.setdefault(batch, {})[replica] = report.counters
        self.places[replica] = ReplicaPlace(*process, batch)
        self.ended[replica], self.still[replica] = report.ended, report.still

    def settle(self, before: int, into: dict[ReplicaId, ReplicaCounters]) -> None:
        """Add up the batches before that one; they change no more."""
        for batch in [b for b in self.batches if b < before]:
            for replica, counters in self.batches.pop(batch).items():
                _settled(counters, into[replica])
            self.generations.pop(batch, None)
            self.settled_before = max(self.settled_before, batch + 1)

    def end(self, into: dict[ReplicaId, ReplicaCounters]) -> None:
        """The attempt is over: what it had done by its last checkpoint counts."""
        for replica, counters in self.committed.items():
            _settled(counters, into[replica])
        for kept in (self.batches, self.generations, self.committed, self.ended, self.still):
            kept.clear()


def _settled(counters: ReplicaCounters, into: ReplicaCounters) -> None:
    """Add what changes no more; what is now is the next one's. Others may have been handed these counters."""
    into.add(msgspec.structs.replace(counters, queued=0, lag=0, state_bytes=0, state_keys=0, held={}))


class Tally:
    """Reports in, RunCounters out; safe to use from several threads."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._sinks = frozenset(topology.sinks)
        self._order = tuple(topology.in_order())
        self._lock = threading.Lock()
        self._settled: dict[ReplicaId, ReplicaCounters] = defaultdict(ReplicaCounters)
        self._shifts: dict[int, _OfShift] = defaultdict(_OfShift)  # by shift
        self._closed: set[int] = set()  # shifts whose reports count no more
        self._heard: dict[tuple[str, int], float] = {}  # when each process was last heard of
        self.current = 0  # the shift whose replicas are meant when one asks where they are

    def enter(self, reports: Reports, now_s: float) -> None:
        """Take what one process reported."""
        with self._lock:
            process = (reports.host, reports.pid)
            for report in reports.reports:
                shift = shift_of(report.batch)
                if shift not in self._closed:
                    counted = self._shifts[shift]
                    counted.enter(report, process)
                    counted.settle(max(counted.batches, default=0) - KEPT_BATCHES, self._settled)
            self._heard[process] = now_s

    def close(self, shift: int) -> None:
        """The shift is over: what its replicas had counted at its last checkpoint is final."""
        with self._lock:
            self._closed.add(shift)
            if (counted := self._shifts.pop(shift, None)) is not None:
                counted.end(self._settled)

    def discard(self, shift: int) -> None:
        """Nothing that the shift's replicas said counts."""
        with self._lock:
            self._closed.add(shift)
            self._shifts.pop(shift, None)

    def commit(self, shift: int, counters: Mapping[ReplicaId, ReplicaCounters | None]) -> None:
        """What its replicas had counted at a checkpoint that is committed."""
        with self._lock:
            given = {one: counted for one, counted in counters.items() if counted is not None}
            self._shifts[shift].committed |= given  # those that it was not of have counted nothing since

    def restart(self, shift: int, generation: int) -> None:
        """The shift begins again, from its last checkpoint, in that generation."""
        with self._lock:
            self._shifts[shift].end(self._settled)
            self._shifts[shift].first_generation = generation

    def sent_by(self, shift: int, slot: ReplicaId) -> int:
        """How many events a source's slot has sent in the present attempt, or left out, as far as heard."""
        with self._lock:
            counted = [batch[slot] for batch in self._shifts[shift].batches.values() if slot in batch]
            return _done(counted)

    def delivered(self) -> int:
        """How many events sinks have processed or dropped in all, each counted once."""
        with self._lock:
            found = [one for (name, _), one in self._settled.items() if name in self._sinks]
            for shift in self._shifts.values():
                for batch in shift.batches.values():
                    found += [one for (name, _), one in batch.items() if name in self._sinks]
            return _done(found)

    def ended(self, shift: int) -> bool:
        """Whether all source slots of a shift say that no event will come any more."""
        with self._lock:
            slots = [over for (name, _), over in self._shifts[shift].ended.items() if name in self._topology.sources]
            return bool(slots) and all(slots)

    def still(self, shift: int, slot: ReplicaId) -> bool:
        """Whether a source's slot says that it has sent all that it had polled, and polls no more."""
        with self._lock:
            return self._shifts[shift].still.get(slot, False)

    def places(self) -> dict[ReplicaId, ReplicaPlace]:
        """Where each operator's replica of the current shift was last heard of."""
        with self._lock:
            places = self._shifts[self.current].places
            return {key: place for key, place in places.items() if key[0] in self._topology.operators}

    def process_of(self, replica: ReplicaId) -> int | None:
        """The process in which a replica, or a slot of a source, of the current shift was last heard of."""
        with self._lock:
            place = self._shifts[self.current].places.get(replica)
            return None if place is None else place.pid

    def heard(self, generation: int) -> set[ReplicaId]:
        """The replicas that have reported in this generation."""
        with self._lock:
            return {
                replica
                for counted in self._shifts.values()
                for batch, of in counted.generations.items()
                if of == generation
                for replica in counted.batches.get(batch, {})
            }

    def counters(
        self,
        now_s: float,
        active: Mapping[str, tuple[int, ...]],
        restarts: int = 0,
        pools: Mapping[str, tuple[int, ...]] | None = None,
    ) -> RunCounters:
        """The run as a whole, as of the latest reports; its pools are those declared, unless others are at work."""
        with self._lock:
            sums = self._sums()
            places = self._shifts[self.current].places
            heard = {replica: self._heard[at.host, at.pid] for replica, at in places.items()}
        by_name: dict[str, dict[int, ReplicaCounters]] = defaultdict(dict)
        for (name, number), counters in sums.items():
            by_name[name][number] = counters
        sent: dict[str, int] = defaultdict(int)
        for counters in sums.values():
            for receiver, count in counters.sent.items():
                sent[receiver] += count
        held = held_by({name: replicas.values() for name, replicas in by_name.items()})
        operators: dict[str, OperatorCounters] = {}
        for name in self._order:
            backlog = sent[name] - _done(by_name[name].values())
            age = max((now_s - heard.get((name, r), now_s) for r in active[name]), default=0.0)
            pool = tuple(range(self._topology[name].pool)) if pools is None else pools[name]
            operators[name] = OperatorCounters(
                by_name[name], active[name], len(pool), max(backlog, 0), age, pool, held.get(name, {})
            )
        entered = {name: total(by_name[name].values()) for name in self._topology.sources}
        sources = {name: one.processed for name, one in entered.items()}
        lag = {name: one.lag for name, one in entered.items()}
        dropped = {name: one.dropped for name, one in entered.items()}
        missing = frozenset(n for n in operators if any((n, r) not in heard for r in active[n]))
        source_age_s: dict[str, float] = {}
        for (name, _), heard_s in heard.items():
            if name in sources:
                source_age_s[name] = max(source_age_s.get(name, 0.0), now_s - heard_s)
        return RunCounters(now_s, sources, operators, restarts, missing, source_age_s, lag, dropped)

    def _sums(self) -> dict[ReplicaId, ReplicaCounters]:
        """What each replica has counted in all: what it said last, unless there is more than that."""
        parts: dict[ReplicaId, list[ReplicaCounters]] = {one: [counters] for one, counters in self._settled.items()}
        for shift in self._shifts.values():
            for batch in shift.batches.values():
                for replica, counters in batch.items():
                    parts.setdefault(replica, []).append(counters)
        settled = self._settled  # which goes on being added to
        return {
            replica: copy(several[0]) if len(several) == 1 and replica not in settled else total(several)
            for replica, several in parts.items()
        }


def _done(replicas: Iterable[ReplicaCounters]) -> int:
    """Events that were processed or dropped."""
    return sum([one.processed + sum(one.dropped.values()) for one in replicas])


class Drain:
    """Two rounds of reports that agree: all that was sent was processed or dropped.

    One round is not enough: a sender may have reported before it sent, a receiver after it processed. `counters` asks
    for a round and gives None if not all answered. What the last round saw is kept, so that short waits get on, too.
    """

    def __init__(self, counters: Callable[[], RunCounters | None]) -> None:
        self._counters = counters
        self._seen: tuple[int, int] | None = None

    def wait(self, deadline: float) -> bool:
        """Wait for that; False if the time is over first, but not before another round."""
        while True:
            seen, self._seen = self._seen, self._round()
            if seen is not None and seen == self._seen:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(ROUND_EVERY_S)

    def _round(self) -> tuple[int, int] | None:
        """What was sent and processed in all, if nothing is in between."""
        now = self._counters()
        if now is None or any(one.backlog for one in now.operators.values()):
            return None
        return sum(now.sources.values()), sum(
            replica.processed for one in now.operators.values() for replica in one.replicas.values()
        )
