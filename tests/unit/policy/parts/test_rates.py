from __future__ import annotations

from penstock.policy.parts.rates import TrueRates
from penstock.testing.loads import load, snapshot


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
