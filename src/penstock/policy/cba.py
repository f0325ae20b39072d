"""CBA: plan over the whole horizon, and change replicas where that pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.planning.ahead import Ahead, Draft, Need
from penstock.policy.planning.planners import improved, spea
from penstock.policy.planning.timetable import Prices, checked_price


@dataclass(eq=False, kw_only=True)
class Cba(Ahead):
    """The Cost-Balance-Algorithm of BGElasor: SPEA's timetable, with changes joined and dips kept where W falls.

        W(n) = p Σ n_t + Σ (p_up · rises + p_down · falls + p_route · [n_{t+1} ≠ n_t] + p_move · MB moved)

    `replica`, `up`, `down` and `route` are the prices; `move`, of each megabyte of state that a change moves, goes
    beyond the paper, and is 0 unless set. `planning.planners.cba` has the steps. The other options are
    those of `Ahead`: `horizon`, `predict`, `catch_up`, `utilisation`.

    Beyond the paper, where the forecaster knows how sure it is, replicas that run are let go only where the `level`
    quantile of the load does without them: `Prices.level` has what follows from the prices. `lateness` is that of one
    replica short for one interval; 0 plans as the paper does.

    >>> from penstock.forecast.base import Forecast
    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 200}, [load("clean", {"in": 200}, execution_time_s=0.025, replicas=5)])
    >>> plan = Cba(horizon=3).plan(seen, Forecast("drift", {"clean": (80.0, 80.0, 200.0)}))
    >>> plan.timetables["clean"], plan.targets["clean"].reason
    ((5, 5, 5), 'expects 80/s next, at most 200/s in 3 intervals, of 25 ms each: needs 2 (2 to 5 in that time); \
keeps 5 through the dip (saves 6,200)')

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network", NPC
    2019, §3.3.
    """

    name: ClassVar[str] = "cba"

    replica: float = 8000.0
    up: float = 5000.0
    down: float = 5000.0
    move: float = 0.0
    route: float = 100.0
    lateness: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_price("move", self.move)
        self._prices = Prices(replica=self.replica, up=self.up, down=self.down, route=self.route)
        self._level = self._prices.level(self.lateness)
        improved([1], 1, self._prices)  # loads and compiles now: the loop that asks for the first plan has no time to

    @property
    def level(self) -> float | None:
        """The quantile of the load up to which what runs is worth keeping; None for none."""
        return self._level

    def draft(self, need: Need, start: int) -> Draft:
        """CBA's timetable, beside SPEA's."""
        plain, prices = spea(need.replicas), self._prices.with_state(self.move, need.state_bytes)
        timetable = improved(plain, start, prices)
        saved = prices.cost(plain.tolist(), start) - prices.cost(timetable.tolist(), start)
        return Draft(timetable, plain, saved)
