from __future__ import annotations

import pytest

from penstock.forecast.base import Forecast
from penstock.policy.parts.expected import Expected, Shares, SourceRates, distrusted, foreseen, kept
from penstock.testing.loads import load, snapshot


def test_source_rates_are_per_second():
    assert SourceRates().learn(snapshot({"x": 60, "y": 0}, [], interval_s=3.0)) == {"x": 20.0, "y": 0.0}


def test_a_bad_source_or_an_interval_without_length_keeps_the_rate_last_known():
    rates = SourceRates()
    rates.learn(snapshot({"x": 60}, [], interval_s=3.0))
    assert rates.learn(snapshot({"x": 9000}, [], incomplete={"x": "went back"})) == {"x": 20.0}
    assert rates.learn(snapshot({"x": 5}, [], interval_s=0.0)) == {"x": 20.0}
    assert SourceRates().learn(snapshot({"x": 5}, [], interval_s=0.0)) == {"x": 0.0}


def test_foreseen_says_where_it_takes_the_last_rate():
    rates, notes = foreseen({"x": 20.0, "y": 5.0}, Forecast("given", {"x": (30.0,)}))
    assert rates == {"x": 30.0, "y": 5.0}
    assert notes == ("no forecast for source 'y' yet: takes its last value",)
    assert foreseen({"x": 20.0}, None)[0] == {"x": 20.0}


def test_shares_are_measured_or_last_known_or_declared():
    shares = Shares()
    start = [load("a", {"in": 0}, 0), load("b", {"a": 0}, 0, declared_shares={"a": 5.0}), load("c", {"a": 0}, 0)]
    assert shares.learn(snapshot({"in": 0}, start)) == {"a": {"in": 1.0}, "b": {"a": 5.0}, "c": {"a": 1.0}}
    seen = [load("a", {"in": 50}, 40), load("b", {"a": 20}), load("c", {"a": 10})]
    assert shares.learn(snapshot({"in": 50}, seen)) == {"a": {"in": 1.0}, "b": {"a": 0.5}, "c": {"a": 0.25}}
    assert shares.learn(snapshot({"in": 0}, start))["b"] == {"a": 0.5}


def test_dead_letters_of_a_source_are_measured_and_what_it_sends_is_not():
    shares = Shares()
    rejects = {"declared_shares": {"in": 0.0}}
    start = [load("a", {"in": 0}, 0), load("rejects", {"in": 0}, 0, **rejects)]
    assert shares.learn(snapshot({"in": 0}, start)) == {"a": {"in": 1.0}, "rejects": {"in": 0.0}}
    seen = [load("a", {"in": 40}, 40), load("rejects", {"in": 10}, 10, **rejects)]
    assert shares.learn(snapshot({"in": 40}, seen)) == {"a": {"in": 1.0}, "rejects": {"in": 0.25}}


def test_shares_are_not_learnt_from_either_side_of_a_bad_stream():
    for bad in ("a", "b"):
        seen = snapshot({"in": 50}, [load("a", {"in": 50}), load("b", {"a": 500})], incomplete={bad: "stale"})
        assert Shares().learn(seen)["b"] == {"a": 1.0}


def test_an_interval_without_length_keeps_the_replicas():
    target = Expected(10.0, 2.0, 10.0).target(load("a", {"in": 1}, execution_time_s=0.1, replicas=3), td_s=0.0)
    assert target.replicas == 3
    assert target.reason == "keeps 3: expects 12 events (10 new, 1 of 10 entering; 2 backlog) in an interval of 0 s"


def test_keeping_is_never_less_than_one():
    assert kept(load("a", {}, replicas=0), "for now").replicas == 1


def test_only_bad_numbers_are_distrusted():
    one = load("a", {"in": 1}, replicas=2)
    assert distrusted(one, snapshot({"in": 1}, [one])) is None
    target = distrusted(one, snapshot({"in": 1}, [one], incomplete={"a": "stale"}))
    assert target is not None
    assert (target.replicas, target.reason) == (2, "keeps 2: numbers are not to be trusted (stale)")


@pytest.mark.parametrize(("new", "waiting", "replicas"), [(0, 0, 1), (10, 0, 1), (10, 0.5, 2), (70, 0, 7)])
def test_replicas_for_what_is_expected(new, waiting, replicas):
    assert Expected(new, waiting, new).target(load("a", {}, execution_time_s=0.1), 1.0).replicas == replicas
