"""What the arena's report is made from: the results of several policies on the same input, and them over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from penstock.report.draw import GREY, POLICIES, thinned
from penstock.simulator.arena import ranked
from penstock.simulator.history import History
from penstock.simulator.result import SimulationResult
from penstock.simulator.run import ORACLE
from penstock.simulator.scenario import Scenario

MOST_LINES = len(POLICIES)
TAIL, TAIL_INTERVALS = 0.25, 10  # of the trace's length, or so many intervals, are drawn after its end


@dataclass(frozen=True, kw_only=True)
class ArenaReport:
    """One contest: a scenario, and what each policy made of it; the results in any order."""

    scenario: Scenario
    results: Sequence[SimulationResult]

    @cached_property
    def named(self) -> dict[str, SimulationResult]:
        """All results in the order of the ranking, by policy; numbered where one comes again."""
        found: dict[str, SimulationResult] = {}
        for one in ranked(self.results):
            again = sum(other.policy == one.policy for other in found.values())
            found[f"{one.policy} ({again + 1})" if again else one.policy] = one
        return found

    @cached_property
    def drawn(self) -> dict[str, str]:
        """Those that get a plot over time, with their colours: the first of the ranking, and then the oracle."""
        oracle = [ORACLE] if ORACLE in self.named else []
        rivals = [name for name, one in self.named.items() if one.policy != ORACLE][: MOST_LINES - len(oracle)]
        return {**dict(zip(rivals, POLICIES, strict=False)), **dict.fromkeys(oracle, GREY)}

    @property
    def end_s(self) -> float:
        """How long is drawn: until all is processed, but not for long after the trace."""
        length_s, contest = self.scenario.input.duration_s, self.scenario.contest
        latest_s = length_s + contest.first_step_s + max(TAIL * length_s, TAIL_INTERVALS * contest.td_s)
        return min(latest_s, max([length_s, *(self.named[name].history.times_s[-1] for name in self.rivals)]))

    @cached_property
    def levels(self) -> dict[str, pd.DataFrame]:
        """The policies over time, in few points; results without intervals have none."""
        histories = {name: self.named[name].history for name in self.drawn}
        return {name: _levels(one, self.end_s) for name, one in histories.items() if one.times_s}

    @property
    def rivals(self) -> list[str]:
        """Those that have a panel; the oracle, if it is alone."""
        known = [name for name in self.drawn if self.named[name].history.times_s]
        return [name for name in known if name != ORACLE] or known

    @property
    def input(self) -> pd.DataFrame:
        """The rates of the trace."""
        trace = self.scenario.input
        edges_s = np.arange(len(trace.rates) + 1) * trace.step_s
        return thinned(pd.DataFrame({"start_s": edges_s[:-1], "end_s": edges_s[1:], "rate": trace.rates}))


def _levels(history: History, end_s: float) -> pd.DataFrame:
    """A simulation's intervals: mean of active replicas, and the greatest latency, NaN where no event left."""
    ends_s, latency_ms = np.array(history.times_s), 1000 * np.array(history.latency_s)
    levels = {
        "start_s": ends_s - history.lengths_s,
        "end_s": ends_s,
        "replicas": np.nan_to_num(history.total_replicas),
        "latency_ms": np.where(np.isfinite(latency_ms) & (latency_ms > 0), latency_ms, np.nan),
    }
    return thinned(pd.DataFrame(levels)[ends_s <= end_s * (1 + 1e-9)], greatest=("latency_ms",))
