"""What every registered policy, bare and in guards, has to keep to."""

from __future__ import annotations

import pickle

import pytest

from penstock.policy.base import Policy
from penstock.policy.guards import guarded
from penstock.policy.registry import POLICIES, make_policy
from penstock.policy.workload import Workload
from penstock.testing.loads import load, snapshot


def entering(start_s, end_s):
    return 80.0 * (end_s - start_s)


WORKLOAD = Workload(200, 50, {"a": 1.0, "b": 0.5}, {"a": 0.01, "b": 0.02}, entering)
SPECS = {
    "static": ["static:3", "static:peak", "static:mean"],
    # Windows shorter than the test, so that they fill up, and no wait after the changes of every interval.
    "flink": ["flink:short,stabilisation_s=0,window_s=10,down_interval_s=20"],
    "keda": ["keda:cooldown_s=20"],
    "autoscale_plus": ["autoscale_plus:iteration=3,settle=0", "autoscale_plus"],
    "dstream": ["dstream:every_s=5"],
    "cba": ["cba", "cba:4,predict=sources,catch_up=2"],
    "optimal": ["optimal", "optimal:4,lateness=9000,delay=1"],
}
ALL = [spec for name in POLICIES.names for spec in SPECS.get(name, [name])]


def make(spec, guards):
    options = {"workload": WORKLOAD} if "workload" in POLICIES.options(spec.partition(":")[0]) else {}
    policy = make_policy(spec, **options)
    return guarded(policy, slots=20, scale_in_s=5) if guards else policy


def counted(number, entered):
    return {"backlog": number % 7, "busy_share": {0: entered * 0.01, 1: 0.0}}


def intervals(count):
    for number in range(count):
        entered = 50 + (number * 37) % 100
        loads = [
            load("a", {"in": entered}, execution_time_s=0.01, replicas=1 + number % 3, **counted(number, entered)),
            load("b", {"a": entered // 2}, execution_time_s=0.02, replicas=2, busy_share={0: 0.5, 1: 0.25}),
        ]
        incomplete = {"b": "stale"} if number % 5 == 4 else {}
        yield snapshot({"in": entered}, loads, time_s=float(number), incomplete=incomplete)


@pytest.mark.parametrize("guards", [False, True], ids=["bare", "guarded"])
@pytest.mark.parametrize("spec", ALL)
class TestEveryPolicy:
    def test_is_a_policy_with_a_reason_for_every_operator(self, spec, guards):
        policy = make(spec, guards)
        assert isinstance(policy, Policy)
        for seen in intervals(6):
            plan = policy.plan(seen, None)
            assert plan.targets.keys() == seen.operators.keys()
            assert all(target.replicas >= 1 and target.reason for target in plan.targets.values())

    def test_same_input_same_plans(self, spec, guards):
        one, two = make(spec, guards), make(spec, guards)
        assert [one.plan(seen) for seen in intervals(20)] == [two.plan(seen) for seen in intervals(20)]

    def test_goes_on_the_same_after_pickling(self, spec, guards):
        policy = make(spec, guards)
        for seen in intervals(10):
            policy.plan(seen)
        copy = pickle.loads(pickle.dumps(policy))
        (*_, last) = intervals(11)
        assert copy.plan(last) == policy.plan(last)

    def test_memory_does_not_grow_with_time(self, spec, guards):
        policy = make(spec, guards)
        sizes = set()
        for number, seen in enumerate(intervals(300)):
            policy.plan(seen)
            if number >= 50 and number % 15 == 0:  # the pattern of intervals comes again
                sizes.add(len(pickle.dumps(policy)))
        assert max(sizes) - min(sizes) < 32  # numbers of another length, no more of them

    def test_bears_an_empty_topology(self, spec, guards):
        assert make(spec, guards).plan(snapshot({}, [])).targets == {}
