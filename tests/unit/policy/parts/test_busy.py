from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.policy.parts.busy import TrueRates, mean_busy_share, thresholds
from penstock.testing.loads import load, snapshot


def test_the_mean_of_the_active_replicas():
    """(0.9 + 0.3) / 2; replica 2 of the pool is not active."""
    assert mean_busy_share(load("a", {}, replicas=2, busy_share={0: 0.9, 1: 0.3, 2: 1.0})) == pytest.approx(0.6)


def test_a_replica_that_nothing_is_known_of_was_idle():
    assert mean_busy_share(load("a", {}, replicas=3, busy_share={0: 0.9})) == pytest.approx(0.3)


@pytest.mark.parametrize("more", [{}, {"busy_share": {0: 0.5}, "replicas": 0}])
def test_nothing_measured_is_not_idle(more):
    assert mean_busy_share(load("a", {}, **more)) is None


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.6, 0.5)])
def test_thresholds_in_order(low, high):
    with pytest.raises(InputError, match=f"policy 'p': low must be below high; got low {low} and high {high}"):
        thresholds("p", low, high)


def test_thresholds_that_are_right_come_back():
    assert thresholds("p", 0.3, 0.8) == (0.3, 0.8)


def seen(processed, busy_share, **more):
    return snapshot({"in": processed}, [load("a", {"in": processed}, busy_share=busy_share)], **more)


def test_events_over_the_busy_time_of_all_replicas():
    assert TrueRates().learn(seen(30, {0: 0.5, 1: 0.25}, interval_s=2.0)) == {"a": 20.0}


def test_what_is_not_measured_stays_as_last_known():
    rates = TrueRates()
    assert rates.learn(seen(0, {0: 0.0})) == {"a": None}
    rates.learn(seen(30, {0: 0.5}))
    assert rates.learn(seen(0, {0: 0.0})) == {"a": 60.0}
    assert rates.learn(seen(0, {0: 1.0})) == {"a": 60.0}  # one long event, not finished
    assert rates.learn(seen(99, {})) == {"a": 60.0}
    assert rates.learn(seen(99, {0: 0.5}, interval_s=0.0)) == {"a": 60.0}
    assert rates.learn(seen(99, {0: 0.5}, incomplete={"a": "stale"})) == {"a": 60.0}


def test_operators_that_are_gone_are_forgotten():
    rates = TrueRates()
    rates.learn(seen(30, {0: 0.5}))
    assert rates.learn(snapshot({}, [])) == {}
    assert rates.learn(seen(0, {})) == {"a": None}
