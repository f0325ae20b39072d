"""Optimal: the timetable that costs least of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.common.checks import whole
from penstock.policy.planning.ahead import Ahead, Draft, Need
from penstock.policy.planning.planners import optimal, shortfall
from penstock.policy.planning.timetable import Counts, Limits, Prices, checked_price


@dataclass(eq=False, kw_only=True)
class Optimal(Ahead):
    """The timetable of least W that serves the need, by dynamic programming; with a price on lateness, of least sum.

        min_n  W(n) + lateness · Σ short_t      short_t = max(0, needed_t + short_{t−1} − working_t)
                                                working_t = min(n_{t−delay}, …, n_t)

    What is short in one interval is needed in the next, also where the pool or the delay leaves it undone.

    `delay`: intervals until a replica that is ordered works. `lateness`: the price of one replica short for one
    interval; without it a replica is short only where none could be there in time. `replica`, `up`, `down` and
    `route` are the prices of W, and `move` that of each megabyte of state that a change moves, 0 unless set. The other
    options are those of `Ahead`: `horizon`, `predict`, `catch_up`, `utilisation`.

    >>> from penstock.forecast.base import Forecast
    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 40}, [load("clean", {"in": 40}, execution_time_s=0.025)])
    >>> comes = Forecast("drift", {"clean": (40.0, 40.0, 120.0)})
    >>> Optimal(horizon=3).plan(seen, comes).timetables["clean"]
    (1, 1, 3)
    >>> Optimal(horizon=3, delay=1).plan(seen, comes).timetables["clean"]
    (1, 3, 3)
    >>> Optimal(horizon=3, lateness=9_000).plan(seen, comes).timetables["clean"]
    (1, 1, 1)

    The cost is that of Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep
    neural network", NPC 2019, equation 5; its optimum goes beyond the paper.
    """

    name: ClassVar[str] = "optimal"

    replica: float = 8000.0
    up: float = 5000.0
    down: float = 5000.0
    route: float = 100.0
    move: float = 0.0
    delay: int = 0
    lateness: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"policy '{self.name}'", "delay", self.delay, least=0)
        checked_price("move", self.move)
        self._prices = Prices(replica=self.replica, up=self.up, down=self.down, route=self.route)
        # Checked, loaded and compiled now: the loop that asks for the first plan has no time to.
        optimal([1, 1], 1, self._prices, self._limits(most=None))

    def draft(self, need: Need, start: int) -> Draft:
        """The optimum within the pool, beside a timetable that follows the need."""
        prices = self._prices.with_state(self.move, need.state_bytes)
        plain = Limits(most=need.pool).served(need.unbounded[1:], start)
        timetable = optimal(need.unbounded, start, prices, self._limits(need.pool))
        if self.delay and self.lateness is None:  # it is earlier than the need, and so not to be compared
            return Draft(timetable, plain)
        saved = self._whole(plain, need, start, prices) - self._whole(timetable, need, start, prices)
        return Draft(timetable, plain, saved)

    def _limits(self, most: int | None) -> Limits:
        return Limits(most=most, delay=self.delay, lateness=self.lateness)

    def _whole(self, timetable: Counts, need: Need, start: int, prices: Prices) -> float:
        """W, and what is paid for being late."""
        cost = prices.cost(timetable.tolist(), start)
        if not self.lateness:
            return cost
        short = shortfall(need.unbounded, timetable, start, delay=self.delay)
        return cost + self.lateness * float(short.sum())
