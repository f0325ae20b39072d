"""Keys that are not even: an operator that counts by key, of which one comes far more often than the others."""

from __future__ import annotations

import pytest

from penstock.simulator import Scenario, simulate
from penstock.topology import Topology
from penstock.workload import constant

EVENTS = tuple({"word": "hot" if n % 10 == 0 else f"word {n}"} for n in range(500))


class Counts:
    """Counts by key."""

    def process(self, event: dict[str, str], state: dict[str, int]) -> None:
        state["count"] = state.get("count", 0) + 1


@pytest.fixture
def scenario() -> Scenario:
    topology = Topology("words")
    words = topology.source("words")
    topology.operator("count", Counts(), inputs=words, key="word", execution_time_ms=20.0, pool=16, selectivity=0.0)
    return Scenario(topology, constant(200.0, duration_s=240.0), events=EVENTS).changed(td_s=1.0)


def test_the_busiest_replica_is_relieved_where_psps_takes_keys_for_even(scenario: Scenario) -> None:
    """A tenth of 200 events per second is of one key: 0.4 of a replica's time, beside its share of the rest."""
    ours, psps = simulate(scenario, "penstock"), simulate(scenario, "psps")
    assert psps.late_ratio > 0.2
    assert ours.late_ratio == 0
    assert ours.changes_per_minute["count"] < 3  # of 7 or 8 replicas, those that are there
