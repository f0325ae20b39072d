"""A query and its executors on paper: batches by the clock, work on slots that come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.attached.model.cost import Cost
from penstock.attached.model.progress import Batch
from penstock.attached.model.query import POLLED_S

IDLE_SAYS_S = 10.0  # Spark's word that nothing came


class SimulatedExecutors:
    """Executors of `slots_each` slots, each of which comes `join_s` after it was asked for, and leaves at once.

    >>> now = [0.0]
    >>> executors = SimulatedExecutors(2, slots_each=4, join_s=12.0, now=lambda: now[0])
    >>> executors.request(3); executors.slots()
    8
    >>> now[0] = 12.0
    >>> executors.slots(), executors.ids()
    (12, ('0', '1', '2'))
    """

    def __init__(self, first: int, *, slots_each: int, join_s: float, now: Callable[[], float]) -> None:
        self.id = "simulated"
        self.slots_each = slots_each
        self.join_s = join_s
        self.seconds = 0.0  # of all that are there
        self._now = now
        self._there = {str(number): 0.0 for number in range(first)}
        self._coming: list[float] = []  # when
        self._count = first

    @property
    def executors(self) -> SimulatedExecutors:
        """They can be asked for here."""
        return self

    def ids(self) -> tuple[str, ...]:
        """Those that are there."""
        while self._coming and self._coming[0] <= self._now():
            self._coming.pop(0)
            self._there[str(self._count)] = self._now()
            self._count += 1
        return tuple(self._there)

    def leaving(self) -> frozenset[str]:
        """None: who leaves is gone."""
        return frozenset()

    def request(self, total: int) -> None:
        """Have so many; those that have not come yet are the first not to come."""
        missing = total - len(self.ids())
        self._coming = self._coming[: max(0, missing)]
        self._coming += [self._now() + self.join_s] * (missing - len(self._coming))

    def decommission(self, executor: str) -> None:
        """Let one leave."""
        del self._there[executor]

    def slots(self) -> int:
        """Those that are there."""
        return len(self.ids()) * self.slots_each

    def count(self) -> int:
        """The executors that are there."""
        return len(self.ids())

    def idle_first(self, executors: Sequence[str]) -> list[str]:
        """The newest first."""
        return sorted(executors, key=int, reverse=True)

    def ended(self) -> str | None:
        """Never."""
        return None


@dataclass(slots=True)
class _Running:
    start_s: float
    rows: int
    fixed_s: float  # left of what no slot can shorten
    work_s: float  # left, in slot-seconds
    done_s: float = 0.0  # slot-seconds so far


class SimulatedQuery:
    """A query of known cost: `came` says how many rows have come by a time, `tasks` how many slots it can use.

    >>> query = SimulatedQuery("clicks", 2.0, Cost(by_row_s=0.01, by_batch_s=0.0, fixed_s=0.5), lambda s: int(100 * s))
    >>> query.advance(9.0, slots=2)
    >>> [(one.number, one.start_s, one.rows, round(one.seconds, 3)) for one in query.batches()]
    [(0, 2.0, 200, 1.5), (1, 4.0, 200, 1.5), (2, 6.0, 200, 1.5)]
    """

    def __init__(
        self, name: str, trigger_s: float, cost: Cost, came: Callable[[float], int], tasks: int | None = None
    ) -> None:
        self.name = name
        self.trigger_s = trigger_s
        self.restarts = 0
        self._cost = cost
        self._came = came
        self._tasks = tasks
        self._now_s = 0.0
        self._taken = 0
        self._number = 0
        self._due_s = trigger_s
        self._heard_s = 0.0
        self._running: _Running | None = None
        self._ended: list[Batch] = []

    def batches(self) -> Sequence[Batch]:
        """Those that have ended since this was last asked."""
        found, self._ended = self._ended, []
        return found

    def running(self) -> float | None:
        """Offsets are rows."""
        return None if self._running is None else float(self._running.rows)

    def absence(self) -> str | None:
        """It is there."""
        return None

    @property
    def unfinished(self) -> int:
        """Rows that have come and are in no batch that has ended."""
        return self._came(self._now_s) - self._taken + (self._running.rows if self._running else 0)

    def advance(self, until_s: float, slots: int) -> None:
        """Go on until then, on so many slots."""
        usable = min(slots, self._tasks) if self._tasks else slots
        while self._now_s < until_s:
            if self._running is None:
                self._begin(until_s)
            else:
                self._go_on(self._running, until_s, usable)

    def _begin(self, until_s: float) -> None:
        """Start the next batch when it is due and rows are there, or let time pass."""
        if self._due_s > until_s:
            self._now_s = until_s
            return
        self._now_s = max(self._now_s, self._due_s)
        rows = self._came(self._now_s) - self._taken
        if rows <= 0:
            self._due_s = self._next_tick_s(self._now_s) if self.trigger_s else self._now_s + POLLED_S
            self._say_idle()
            return
        self._taken += rows
        work_s = self._cost.spread * self._cost.work_s(rows)
        self._running = _Running(self._now_s, rows, self._cost.fixed_s, work_s)

    def _go_on(self, one: _Running, until_s: float, slots: int) -> None:
        fixed_s = min(one.fixed_s, until_s - self._now_s)
        one.fixed_s, self._now_s = one.fixed_s - fixed_s, self._now_s + fixed_s
        if one.fixed_s > 0 or slots < 1:
            self._now_s = until_s
            return
        spent_s = min(one.work_s / slots, until_s - self._now_s)
        one.work_s, one.done_s = one.work_s - spent_s * slots, one.done_s + spent_s * slots
        self._now_s += spent_s
        if one.work_s <= 1e-9:
            self._end(one)

    def _end(self, one: _Running) -> None:
        seconds, self._running = self._now_s - one.start_s, None
        self._keep(one.start_s, seconds, one.rows, one.done_s / self._cost.spread)
        self._number += 1
        self._due_s = max(self._now_s, self._next_tick_s(one.start_s)) if self.trigger_s else self._now_s

    def _next_tick_s(self, time_s: float) -> float:
        """Triggers are at multiples of their interval; who misses one begins at once."""
        return (math.floor(time_s / self.trigger_s + 1e-9) + 1) * self.trigger_s

    def _say_idle(self) -> None:
        if self._now_s - self._heard_s >= IDLE_SAYS_S:
            self._keep(self._now_s, 0.0, 0, None)

    def _keep(self, start_s: float, seconds: float, rows: int, core_s: float | None) -> None:
        self._heard_s = start_s + seconds
        self._ended.append(
            Batch(
                number=self._number,
                start_s=start_s,
                planned_s=start_s,
                seconds=seconds,
                rows=rows,
                offsets=float(rows),
                core_s=core_s,
                tasks=self._tasks,
            )
        )
