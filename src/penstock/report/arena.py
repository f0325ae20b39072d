"""What the arena's report is made from: the results of several policies on the same input, and them over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock.report.palette import GREY, POLICIES
from penstock.report.series import group_size, thinned
from penstock.report.verdict import is_oracle, ranking
from penstock.simulator.history import History
from penstock.simulator.result import SimulationResult
from penstock.simulator.scenario import Scenario
from penstock.workload import Trace

MOST_LINES = len(POLICIES)
MOST_RATES = 1200
# How much is drawn of the time after the trace, in which what still waits is processed:
TAIL = 0.25  # of the trace's length
TAIL_INTERVALS = 10  # or so many intervals, if that is longer


@dataclass(frozen=True, kw_only=True)
class ArenaReport:
    """One contest: a scenario, and what each policy made of it; the results in any order.

    >>> from penstock.workload import constant
    >>> contest = ArenaReport(scenario=Scenario("dns", constant(5.0, 60.0)), results=[])
    >>> contest.drawn, contest.oracle
    ({}, None)
    """

    scenario: Scenario
    results: Sequence[SimulationResult]

    @property
    def named(self) -> dict[str, SimulationResult]:
        """All results in the order of the ranking, by policy; numbered where one comes again."""
        found: dict[str, SimulationResult] = {}
        for one in ranking(self.results):
            again = sum(other.policy == one.policy for other in found.values())
            found[f"{one.policy} ({again + 1})" if again else one.policy] = one
        return found

    @property
    def oracle(self) -> SimulationResult | None:
        """The oracle, if it is among the results."""
        return next(filter(is_oracle, self.results), None)

    @property
    def drawn(self) -> dict[str, str]:
        """Those that get a plot over time, with their colours: the first of the ranking, and then the oracle."""
        oracle = [name for name, one in self.named.items() if is_oracle(one)][:1]
        rivals = [name for name, one in self.named.items() if not is_oracle(one)][: MOST_LINES - len(oracle)]
        return {**dict(zip(rivals, POLICIES, strict=False)), **dict.fromkeys(oracle, GREY)}

    def colour(self, name: str, otherwise: str) -> str:
        """The policy's colour, the same in every plot and table."""
        return self.drawn.get(name, otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySeries:
    """One policy over time."""

    name: str
    colour: str
    result: SimulationResult
    levels: pd.DataFrame  # mean of replicas, the greatest latency_ms (NaN where no event left) and backlog


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSeries:
    """The policies over time, with the input that all of them had; few points, however long the trace."""

    rivals: Sequence[PolicySeries]  # the oracle too, if it is alone
    oracle: PolicySeries | None  # beside others
    input: pd.DataFrame  # rate
    target_ms: float
    end_s: float
    grouped: int  # intervals that make one point
    longer_s: Mapping[str, float]  # when those ended that were at it longer than is drawn


def arena_series(report: ArenaReport) -> ArenaSeries:
    """All series of a contest; results without intervals have none."""
    named, trace, contest = report.named, report.scenario.input, report.scenario.contest
    found = {name: _intervals(named[name].history) for name in report.drawn if named[name].history.times_s}
    ends_s = {name: float(levels.end_s.iloc[-1]) for name, levels in found.items()}
    tail_s = max(TAIL * trace.duration_s, TAIL_INTERVALS * contest.td_s)
    latest_s = trace.duration_s + contest.first_step_s + tail_s
    end_s = max([trace.duration_s, *(min(one, latest_s) for one in ends_s.values())])
    cut = {name: levels[levels.end_s <= end_s * (1 + 1e-9)] for name, levels in found.items()}
    grouped = group_size(max(map(len, cut.values()), default=0))
    lines = [
        PolicySeries(
            name=name,
            colour=report.drawn[name],
            result=named[name],
            levels=thinned(levels, grouped, greatest=("latency_ms", "backlog")),
        )
        for name, levels in cut.items()
    ]
    rivals = [one for one in lines if not is_oracle(one.result)]
    return ArenaSeries(
        rivals=rivals or lines,
        oracle=next((one for one in lines if is_oracle(one.result)), None) if rivals else None,
        input=_input(trace),
        target_ms=1000 * contest.target_s,
        end_s=end_s,
        grouped=grouped,
        longer_s={name: one for name, one in ends_s.items() if one > end_s},
    )


def _intervals(history: History) -> pd.DataFrame:
    """A simulation's intervals: active replicas of all operators, mean latency and backlog."""
    end_s, latency_ms = np.array(history.times_s), 1000 * np.array(history.latency_s)
    return pd.DataFrame(
        {
            "start_s": end_s - history.lengths_s,
            "end_s": end_s,
            "replicas": np.nan_to_num(history.total_replicas),
            "latency_ms": np.where(np.isfinite(latency_ms) & (latency_ms > 0), latency_ms, np.nan),
            "backlog": np.array(history.backlog, np.float64),
        }
    )


def _input(trace: Trace) -> pd.DataFrame:
    edges_s = np.arange(len(trace.rates) + 1) * trace.step_s
    rates = pd.DataFrame({"start_s": edges_s[:-1], "end_s": edges_s[1:], "rate": trace.rates})
    return thinned(rates, group_size(len(rates), MOST_RATES))
