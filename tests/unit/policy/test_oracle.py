from __future__ import annotations

import math
import pickle

import pytest

from penstock.errors import InputError
from penstock.policy.base import Starts, initial_replicas
from penstock.policy.guards import guarded
from penstock.policy.oracle import Oracle, make_oracle
from penstock.policy.psps import Psps
from penstock.policy.workload import Workload
from penstock.testing.loads import load, snapshot


class Jump:
    """10 events per second until 5 s, then 100."""

    def entering(self, start_s, end_s):
        return 10.0 * (min(end_s, 5) - min(start_s, 5)) + 100.0 * (max(end_s, 5) - max(start_s, 5))


def oracle(entering=None, shares=None, times_s=None):
    entering = Jump().entering if entering is None else entering
    return Oracle(Workload(100, 50, shares or {"a": 1.0, "b": 0.5}, times_s or {"a": 0.1, "b": 0.2}, entering))


def at(time_s, td_s=1.0):
    loads = [load("a", {"in": 10}, execution_time_s=0.1), load("b", {"a": 5}, execution_time_s=0.2)]
    return snapshot({"in": 10}, loads, time_s=time_s, td_s=td_s)


def test_it_knows_the_jump_before_it_comes():
    policy = oracle()
    assert policy.plan(at(4.0)).replicas == {"a": 1, "b": 1}
    assert policy.plan(at(5.0)).replicas == {"a": 10, "b": 10}
    assert Psps().plan(at(5.0)).replicas == {"a": 1, "b": 1}


def test_the_formula_to_the_digit():
    """From 4 s to 6 s 110 events enter; half reach b, with its own 7 and half of a's 20."""
    loads = [
        load("a", {"in": 10}, backlog=20, execution_time_s=0.1),
        load("b", {"a": 5}, backlog=7, execution_time_s=0.2),
    ]
    plan = oracle().plan(snapshot({"in": 10}, loads, time_s=4.0, td_s=2.0))
    assert [target.expected for target in plan.targets.values()] == pytest.approx([130, 72])
    assert plan.replicas == {"a": 7, "b": 8}  # 6.5 and 7.2
    assert plan.targets["b"].reason == (
        "expects 72 events (55 new, 0.5 of 110 entering; 17 backlog) of 200 ms each: 7.2 replicas"
    )


def test_what_waits_counts_down_a_diamond():
    loads = [
        load("o1", {"in": 100}, backlog=100, execution_time_s=0.01),
        load("o2", {"o1": 70}, execution_time_s=0.01),
        load("o3", {"o1": 30}, backlog=10, execution_time_s=0.01),
        load("o4", {"o2": 28, "o3": 30}, backlog=2, execution_time_s=0.1),
    ]
    plan = oracle(lambda start_s, end_s: 200.0).plan(snapshot({"in": 100}, loads))
    assert plan.targets["o4"].expected == pytest.approx((200 + 100) * 0.58 + 10 + 2)


def test_several_sources_share_what_enters_as_in_the_last_interval():
    loads = [load("a", {"x": 30}, execution_time_s=0.1), load("b", {"y": 90}, execution_time_s=0.1)]
    plan = oracle(lambda start_s, end_s: 200.0).plan(snapshot({"x": 30, "y": 90}, loads))
    assert [target.expected for target in plan.targets.values()] == pytest.approx([50, 150])


def test_several_sources_share_equally_when_nothing_entered():
    loads = [load("a", {"x": 0}, execution_time_s=0.1), load("b", {"y": 0}, execution_time_s=0.1)]
    plan = oracle(lambda start_s, end_s: 200.0).plan(snapshot({"x": 0, "y": 0}, loads))
    assert plan.replicas == {"a": 10, "b": 10}


def test_an_execution_time_that_is_not_measured_is_the_workloads():
    loads = [load("a", {"in": 10}, replicas=3), load("new", {"a": 10}, replicas=4)]
    plan = oracle(lambda start_s, end_s: 60.0).plan(snapshot({"in": 10}, loads))
    assert plan.replicas == {"a": 6, "new": 4}
    assert "unknown execution time: keeps 4" in plan.targets["new"].reason


def test_operators_with_bad_numbers_keep_what_they_have():
    seen = snapshot({"in": 10}, [load("a", {"in": 10}, execution_time_s=0.1, replicas=3)], incomplete={"a": "stale"})
    assert oracle().plan(seen).targets["a"].reason == "keeps 3: numbers are not to be trusted (stale)"


def test_it_starts_with_what_the_first_interval_needs():
    policy = oracle(lambda start_s, end_s: 30.0 * (end_s - start_s))
    assert isinstance(policy, Starts)
    assert policy.initial({"a": 64, "b": 2, "unknown": 4}, td_s=10.0) == {"a": 3, "b": 2, "unknown": 1}
    assert initial_replicas(guarded(policy), {"a": 64, "b": 64}, 10.0) == {"a": 3, "b": 3}
    with pytest.raises(InputError, match="policy 'oracle': td_s must be a number above 0; got 0"):
        policy.initial({"a": 64}, td_s=0)


def test_it_can_be_pickled_with_a_method_that_knows_the_future():
    copy = pickle.loads(pickle.dumps(oracle()))
    assert copy.plan(at(5.0)) == oracle().plan(at(5.0))


def test_it_needs_a_workload_that_knows_the_future():
    with pytest.raises(InputError, match="policy 'oracle': needs the workload's events, shares and execution times"):
        make_oracle()
    with pytest.raises(InputError, match="policy 'oracle': needs a workload that knows how many events enter"):
        make_oracle(Workload(100, 50, {"a": 1.0}, {"a": 0.1}))


@pytest.mark.parametrize("count", [-1.0, math.nan, math.inf])
def test_events_that_enter_are_a_number(count):
    policy = oracle(lambda start_s, end_s: count)
    with pytest.raises(InputError, match="events that enter from 4 to 5 s must be a number of at least 0; got"):
        policy.plan(at(4.0))
