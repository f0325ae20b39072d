from __future__ import annotations

from penstock.metrics.utilisation import utilisation
from penstock.testing.loads import load


def test_utilisation_is_processed_times_execution_time_over_td_and_at_most_one():
    one = load("a", {"in": 90}, execution_time_s=0.05, processed_by={0: 10, 1: 30, 2: 50}, replicas=3)
    used = utilisation(one, (0, 1, 2, 5), interval_s=2.0)
    assert used.by_replica == {0: 0.25, 1: 0.75, 2: 1.0, 5: 0.0}
    assert used.step == 0.025


def test_a_replica_that_is_to_rest_is_left_out():
    one = load("a", {"in": 40}, execution_time_s=0.05, processed_by={0: 20, 1: 20}, replicas=2)
    assert utilisation(one, (0,), interval_s=2.0).by_replica == {0: 0.5}


def test_without_an_execution_time_there_is_none():
    assert utilisation(load("a", {"in": 1}), (0,), 1.0) is None
