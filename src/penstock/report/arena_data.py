"""What the arena's report is made from: the results of several policies on the same input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.report.data import finite
from penstock.simulator.arena import ORACLE, ranked
from penstock.simulator.result import SimulationResult
from penstock.simulator.scenario import Scenario
from penstock.workload import Trace

PEAK = "static:peak"
MOST_LINES = 6


@dataclass(frozen=True, kw_only=True)
class ArenaReport:
    """One contest: a scenario, and what each policy made of it; the results in any order.

    >>> from penstock.workload import constant
    >>> scenario = Scenario("dns", constant(5.0, 60.0)).changed(target_s=0.5)
    >>> contest = ArenaReport(scenario=scenario, results=[])
    >>> contest.target_ms, contest.rivals, contest.oracle
    (500.0, [], None)
    """

    scenario: Scenario
    results: Sequence[SimulationResult]

    @property
    def app(self) -> str:
        """The topology's name."""
        return self.scenario.name

    @property
    def trace(self) -> Trace:
        """What was played."""
        return self.scenario.input

    @property
    def target_ms(self) -> float:
        """An event that takes longer is late."""
        return 1000 * self.scenario.contest.target_s

    @property
    def rivals(self) -> list[SimulationResult]:
        """All in the order of the ranking, but the oracle, which nobody can run."""
        return [one for one in ranking(self.results) if not is_oracle(one)]

    @property
    def oracle(self) -> SimulationResult | None:
        """The oracle, if it is among the results."""
        return next(filter(is_oracle, self.results), None)

    @property
    def drawn(self) -> list[SimulationResult]:
        """Those that get a line in the plots over time: the first of the ranking, and then the oracle."""
        bound = [] if self.oracle is None else [self.oracle]
        return [*self.rivals[: MOST_LINES - len(bound)], *bound]


def ranking(results: Sequence[SimulationResult]) -> list[SimulationResult]:
    """The arena's order; those of which lateness or cost is not known come last."""
    known = [one for one in results if is_known(one)]
    return [*ranked(known), *(one for one in results if not is_known(one))]


def is_known(result: SimulationResult) -> bool:
    """Whether the result can be ranked at all: without events nothing is late, and nothing on time."""
    return finite(result.late_ratio) is not None and finite(result.replica_seconds) is not None


def meets(result: SimulationResult) -> bool:
    """Whether it is known to meet the target."""
    return is_known(result) and result.meets_target


def is_oracle(result: SimulationResult) -> bool:
    """Whether this is the oracle."""
    return result.policy == ORACLE
