from __future__ import annotations

from penstock.metrics.utilisation import booked, used
from penstock.testing.loads import load


def test_utilisation_is_processed_times_execution_time_over_td_and_at_most_one():
    one = load("a", {"in": 90}, execution_time_s=0.05, processed_by={0: 10, 1: 30, 2: 50}, replicas=3)
    found = used(one, (0, 1, 2, 5), interval_s=2.0)
    assert found.by_replica == {0: 0.25, 1: 0.75, 2: 1.0, 5: 0.0}
    assert found.step == 0.025


def test_a_replica_that_is_to_rest_is_left_out():
    one = load("a", {"in": 40}, execution_time_s=0.05, processed_by={0: 20, 1: 20}, replicas=2)
    assert used(one, (0,), interval_s=2.0).by_replica == {0: 0.5}


def test_without_an_execution_time_there_is_none():
    assert used(load("a", {"in": 1}), (0,), 1.0) is None


def test_booked_is_what_waits_over_what_an_interval_can_do():
    one = load("a", {"in": 90}, execution_time_s=0.05, queued_by={0: 10, 1: 30, 2: 50}, replicas=3)
    found = booked(one, (0, 1, 2, 5), interval_s=2.0)
    assert found.by_replica == {0: 0.25, 1: 0.75, 2: 1.0, 5: 0.0}


def test_booked_counts_in_whole_rounds_of_the_senders():
    """Four senders, 3 and 9 waiting: 0 and 2 rounds, so nobody sees the three."""
    one = load("a", {"in": 90}, execution_time_s=0.05, queued_by={0: 3, 1: 9}, replicas=2)
    assert booked(one, (0, 1), 2.0, 4).by_replica == {0: 0.0, 1: 0.2}
