"""A query as the core sees it: an operator whose replicas are task slots, with input, backlog and execution time."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from penstock.attached.model.cost import Cost, CostModel
from penstock.attached.model.delay import Delays, DelaySum
from penstock.attached.model.demand import Pace, Promise, out_of_reach, pace_of, row_time_s
from penstock.attached.model.progress import Batch
from penstock.metrics.snapshot import OperatorLoad

POLLED_S = 0.1  # without a trigger Spark looks for data so often, at least
SILENT_S = 60.0  # a query that says nothing for so long is not to be judged by what it said before
SILENT_PERIODS = 3
REMEMBERED = 1000  # arrivals; of those only the last few seconds count


@dataclass(frozen=True, slots=True)
class _Arrival:
    rows: float
    seconds: float  # since the batch before was planned


class QueryState:
    """Learns a query's batches, and says how it is doing.

    >>> query = QueryState("clicks", 2.0, Promise(10.0))
    >>> for number in range(3):
    ...     start_s = 100.0 + 2 * number
    ...     query.learn(Batch(number=number, start_s=start_s, planned_s=start_s, seconds=1.0, rows=200, slots=2))
    >>> query.rate(4.0), query.backlog(105.0), query.delays.rows, query.delays.late
    (100.0, 0.0, 400, 0)
    """

    def __init__(self, name: str, trigger_s: float, promise: Promise) -> None:
        self.name = name
        self.trigger_s = trigger_s
        self.promise = promise
        self.pace: Pace = pace_of(trigger_s, promise, f"query '{name}'")
        self.delays = DelaySum(promise.target_s)
        self.processed = 0  # rows so far
        self.last: Batch | None = None  # with or without rows
        self.outside: float | None = None  # rows that wait at the source, as somebody else says; goes before its word
        self._costs = CostModel(promise.late)
        self._arrivals: deque[_Arrival] = deque(maxlen=REMEMBERED)
        self._running: _Arrival | None = None  # what the batch that runs has, if that is known
        self._rows_an_offset: float | None = None
        self._new = DelaySum(promise.target_s)

    # ── learning ────────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(self, batch: Batch) -> None:
        """Take in the next batch; one that began before the last ended, as after a restart, only counts its rows."""
        before, self.last = self.last, batch
        self.processed += batch.rows
        self._running = None
        if batch.rows > 0 and batch.offsets is not None and batch.offsets > 0:
            self._rows_an_offset = batch.rows / batch.offsets
        self._costs.learn(batch)
        if before is None or batch.planned_s <= before.planned_s:
            return
        came = batch.rows + (batch.waiting or 0.0) - (before.waiting or 0.0)
        self._arrivals.append(_Arrival(max(0.0, came), batch.planned_s - before.planned_s))
        if batch.rows > 0:
            self._count(self._delays(before, batch))

    def see_running(self, offsets: float | None) -> None:
        """A batch runs that goes on by so many offsets: what it has came since the last was planned."""
        self._running = None
        if offsets is not None and offsets >= 0 and self.last is not None and self._rows_an_offset is not None:
            length_s = self.next_begins_s(self.last) - self.last.planned_s
            if length_s > 0:
                self._running = _Arrival(offsets * self._rows_an_offset, length_s)

    def next_begins_s(self, last: Batch) -> float:
        """When the batch after this one begins: when it has ended, or at the next tick of the trigger."""
        return max(last.end_s, last.start_s + self.trigger_s)

    def forget_place(self) -> None:
        """The next batch is of another run: what lies between is not known."""
        self.last = None

    def _delays(self, before: Batch, batch: Batch) -> Delays:
        """Rows came since Spark last looked for some; if the source held more than a batch, they are older by that."""
        since_s = before.planned_s
        looks_s = max(self.trigger_s, POLLED_S)
        if before.end_s <= batch.start_s - looks_s:  # nothing was there when it looked in between
            since_s = max(since_s, batch.start_s - looks_s)
        rate = self.rate(self.pace.period_s)
        older_s = (before.waiting or 0.0) / rate if rate > 0 else 0.0
        return Delays(batch.rows, batch.end_s - batch.planned_s + older_s, batch.end_s - since_s + older_s)

    def _count(self, delays: Delays) -> None:
        self.delays.add(delays)
        self._new.add(delays)

    def taken_delays(self) -> DelaySum:
        """Those of the rows since this was last asked."""
        found, self._new = self._new, DelaySum(self.promise.target_s)
        return found

    # ── judging ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def cost(self) -> Cost | None:
        """What its batches cost, as far as is known."""
        return self._costs.cost

    def rate(self, over_s: float) -> float:
        """Rows per second, over the last batches that make up so many seconds."""
        rows = seconds = 0.0
        for one in (*filter(None, (self._running,)), *reversed(self._arrivals)):
            rows, seconds = rows + one.rows, seconds + one.seconds
            if seconds >= over_s:
                break
        return rows / seconds if seconds > 0 else 0.0

    def backlog(self, now_s: float) -> float:
        """Rows that wait beyond what one batch a period takes in: at the source, and behind batches that take too long.

        The batch that runs has what came since the one before was planned; what comes while it runs waits, too, and is
        too much once it takes longer than it may.
        """
        if self.last is None:
            return 0.0
        last, outside = self.last, self.outside if self.outside is not None else self.last.waiting or 0.0
        if last.rows <= 0:
            return max(0.0, outside)
        began_s = self.next_begins_s(last)
        too_full_s = max(0.0, began_s - last.planned_s - self.pace.period_s)
        too_long_s = max(0.0, now_s - began_s - self.pace.within_s)
        return max(0.0, outside) + self.rate(self.pace.period_s) * (too_full_s + too_long_s)

    def execution_time_s(self, over_s: float) -> float | None:
        """Slot-seconds that one row takes up if rows are to be on time; None while nothing is measured."""
        cost = self.cost
        return None if cost is None else row_time_s(cost, self.pace, self.rate(over_s))

    @property
    def most_slots(self) -> int | None:
        """Slots beyond which more do not help: the partitions of its state."""
        return self.last.state_partitions if self.last else None

    def doubt(self, now_s: float) -> str | None:
        """Why its numbers are not to be trusted; None if they are."""
        if self.last is None:
            return "no batch has ended yet"
        if not self._arrivals and self._running is None:
            return "one batch has ended: how fast rows come is not known yet"
        silent_s, longest_s = now_s - self.last.end_s, max(SILENT_S, SILENT_PERIODS * self.pace.longest_s)
        if silent_s <= longest_s:
            return None
        return f"no progress for {silent_s:.3g} s; not to be trusted after {longest_s:g} s"

    def note(self) -> str | None:
        """What a user should know of it."""
        cost = self.cost
        return out_of_reach(cost, self.pace) if cost is not None else None

    def load(self, now_s: float, over_s: float, active: tuple[int, ...], pool: int) -> OperatorLoad:
        """The query as an operator, over the last so many seconds."""
        rate, cost = self.rate(over_s), self.cost
        rows = round(rate * over_s)
        outside = self.outside if self.outside is not None else (self.last.waiting if self.last else None) or 0.0
        work_s = cost.work_s(rate * self.pace.period_s) / self.pace.period_s if cost is not None and rate > 0 else 0.0
        busy = min(1.0, work_s / max(1, len(active)))
        return OperatorLoad(
            name=self.name,
            received_by={source_of(self.name): rows},
            processed=rows,
            backlog=_whole(self.backlog(now_s)),
            active=active,
            pool=pool,
            execution_time_s=self.execution_time_s(over_s),
            busy_share=dict.fromkeys(active, busy),
            state_bytes=self.last.state_bytes if self.last else 0,
            outside=_whole(outside),
        )


def source_of(query: str) -> str:
    """What a query's input is called beside it."""
    return f"{query} (source)"


def _whole(rows: float) -> int:
    return round(rows) if 0 <= rows < math.inf else 0
