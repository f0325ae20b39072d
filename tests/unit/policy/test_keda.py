from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.keda import Keda
from penstock.testing.loads import load, snapshot


def at(time_s, backlog, replicas=1, **more):
    given = {"execution_time_s": 0.1, "pool": 10, **more}
    return snapshot({"in": 1}, [load("a", {"in": 1}, backlog=backlog, replicas=replicas, **given)], time_s=time_s)


@pytest.mark.parametrize(
    ("backlog", "replicas"), [(0, 1), (50, 1), (56, 2), (100, 2), (101, 3), (500, 10), (10**6, 10)]
)
def test_one_replica_for_what_one_does_in_five_seconds(backlog, replicas):
    """With 100 ms an event one replica does 50 in 5 s; the pool has 10."""
    assert Keda().plan(at(0, backlog)).replicas == {"a": replicas}


def test_the_pool_is_said():
    reason = Keda().plan(at(0, 600)).targets["a"].reason
    assert reason == "600 events wait, of 100 ms each: 12 replicas do them in 5 s; the pool has 10"


@pytest.mark.parametrize(("backlog", "before", "after"), [(220, 4, 4), (221, 4, 5), (450, 10, 10), (449, 10, 9)])
def test_within_ten_percent_it_keeps_what_is_there(backlog, before, after):
    """Four replicas are for 200 events and ten for 500; as Kubernetes has it, a tenth more or less changes nothing."""
    assert Keda(cooldown_s=0).plan(at(0, backlog, replicas=before)).replicas == {"a": after}
    assert Keda(cooldown_s=0, tolerance=0).plan(at(0, backlog, replicas=before)).replicas == {"a": -(-backlog // 50)}


def test_that_it_keeps_them_is_said():
    reason = Keda().plan(at(0, 210, replicas=4)).targets["a"].reason
    assert reason.endswith("4.2 replicas do them in 5 s; within 10% of what 4 are for")


def test_the_threshold_can_be_set():
    assert Keda(seconds=2).plan(at(0, 100)).replicas == {"a": 5}


def test_scale_out_is_at_once_and_scale_in_to_the_largest_wish_of_the_cooldown():
    policy = Keda(cooldown_s=300)
    assert policy.plan(at(0, 400)).replicas == {"a": 8}
    assert policy.plan(at(30, 200, replicas=8)).replicas == {"a": 8}
    assert policy.plan(at(299, 0, replicas=8)).replicas == {"a": 8}
    assert policy.plan(at(300, 0, replicas=8)).replicas == {"a": 4}
    assert policy.plan(at(330, 0, replicas=4)).replicas == {"a": 1}


def test_what_holds_a_scale_in_is_said():
    policy = Keda()
    policy.plan(at(0, 400))
    held = policy.plan(at(30, 0, replicas=8)).targets["a"]
    assert held.replicas == 8
    assert held.reason.endswith("0 replicas do them in 5 s; scale-in waits until it has wished for fewer for 300 s")


def test_the_replicas_at_the_start_count_as_a_wish():
    policy = Keda(cooldown_s=300)
    assert policy.plan(at(60, 0, replicas=6)).replicas == {"a": 6}
    assert policy.plan(at(359, 0, replicas=6)).replicas == {"a": 6}
    assert policy.plan(at(360, 0, replicas=6)).replicas == {"a": 1}


def test_an_old_wish_does_not_scale_out():
    """Eight were wished for but a guard gave three: with less to do it does not ask for eight again."""
    policy = Keda()
    policy.plan(at(0, 400))
    assert policy.plan(at(30, 100, replicas=3)).replicas == {"a": 3}
    assert policy.plan(at(60, 200, replicas=3)).replicas == {"a": 4}


def test_without_a_cooldown_it_follows_the_backlog():
    policy = Keda(cooldown_s=0)
    assert [policy.plan(at(t, backlog, 5)).replicas["a"] for t, backlog in enumerate((400, 100, 0))] == [8, 2, 1]


def test_each_operator_has_its_own_backlog_and_wishes():
    policy = Keda()
    loads = [load(name, {"in": 1}, backlog=backlog, execution_time_s=0.1) for name, backlog in (("a", 400), ("b", 0))]
    assert policy.plan(snapshot({"in": 1}, loads)).replicas == {"a": 8, "b": 1}


def test_an_unknown_execution_time_keeps_the_replicas():
    target = Keda().plan(at(0, 400, replicas=3, execution_time_s=None)).targets["a"]
    assert (target.replicas, target.reason) == (3, "keeps 3: 400 events wait, of unknown execution time")


def test_bad_numbers_keep_the_replicas_and_are_no_wish():
    policy = Keda(cooldown_s=10)
    load_ = load("a", {"in": 1}, backlog=4000, execution_time_s=0.1, replicas=3)
    assert policy.plan(snapshot({"in": 1}, [load_], time_s=0.0, incomplete={"a": "stale"})).replicas == {"a": 3}
    assert policy.plan(at(10, 0, replicas=3)).replicas == {"a": 1}


@pytest.mark.parametrize(
    ("options", "rule"),
    [({"seconds": 0}, "seconds must be a number above 0; got 0"), ({"cooldown_s": "long"}, "cooldown_s must .*'long'")],
)
def test_bad_options(options, rule):
    with pytest.raises(InputError, match=f"policy 'keda': {rule}"):
        Keda(**options)


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 1000)), min_size=1, max_size=40))
def test_within_the_pool_and_never_below_what_the_backlog_asks_for(steps):
    policy, replicas, now_s = Keda(), 1, 0
    for pause_s, backlog in steps:
        now_s += pause_s
        planned = policy.plan(at(now_s, backlog, replicas)).replicas["a"]
        kept = abs(backlog / 50 / replicas - 1) <= 0.1 + 1e-9
        assert (replicas if kept else min(10, max(1, -(-backlog // 50)))) <= planned <= 10
        replicas = planned
