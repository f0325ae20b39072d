"""SPEA: size every operator for the next interval and the one after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.planning.ahead import Ahead, Draft, Need
from penstock.policy.planning.planners import spea


@dataclass(eq=False, kw_only=True)
class Spea(Ahead):
    """BGElasor's Simple Proactive Elasticity Algorithm: replicas are there one interval before they are needed.

        n_t = max(needed_t, needed_{t+1})      needed_t = ⌈(rate_t + backlog_t) · et / utilisation⌉, from 1 to the pool

    The options are those of `Ahead`: `horizon`, `predict`, `catch_up`, `utilisation`.

    >>> from penstock.forecast.base import Forecast
    >>> from penstock.testing.loads import load, snapshot
    >>> seen = snapshot({"in": 90}, [load("clean", {"in": 90}, execution_time_s=0.025, replicas=3)])
    >>> plan = Spea(horizon=4).plan(seen, Forecast("drift", {"clean": (100.0, 200.0, 200.0, 40.0)}))
    >>> plan.timetables["clean"], plan.targets["clean"].reason
    ((5, 5, 5, 1), 'expects 100/s next, at most 200/s in 4 intervals, of 25 ms each: needs 3 (1 to 5 in that time); \
takes 5 early')

    Mu et al., "BGElasor: elastic-scaling framework for distributed streaming processing with deep neural network", NPC
    2019, §4.3.
    """

    name: ClassVar[str] = "spea"

    def draft(self, need: Need, start: int) -> Draft:  # noqa: ARG002
        """SPEA's timetable, whatever runs."""
        return Draft(spea(need.replicas), need.replicas[1:])
