from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.execute import choose_replicas, execute
from penstock.policy.base import Plan, Target
from penstock.testing.loads import load, snapshot


class Calls:
    def __init__(self):
        self.replicas = []
        self.used = None

    def set_replicas(self, operator, replicas):
        self.replicas.append((operator, replicas))

    def publish_utilisation(self, utilisation):
        self.used = utilisation


@given(st.sets(st.integers(0, 9), min_size=1), st.integers(1, 10))
@settings(max_examples=60)
def test_as_many_as_asked_for_with_the_fewest_changes(active, count):
    chosen = choose_replicas(tuple(active), count, pool=10)
    assert len(set(chosen)) == len(chosen) == count
    assert set(chosen) <= set(range(10))
    assert len(set(chosen) ^ active) == abs(count - len(active))


def test_only_what_changes_is_set():
    calls = Calls()
    seen = snapshot({"in": 1}, [load("a", {"in": 1}, replicas=2), load("b", {"a": 1}, replicas=2)])
    assert execute(calls, seen, Plan({"a": Target(2, "same"), "b": Target(3, "more")})) == {}
    assert calls.replicas == [("b", (0, 1, 2))]


def test_a_plan_may_say_which():
    calls = Calls()
    seen = snapshot({"in": 1}, [load("a", {"in": 1}, replicas=2)])
    execute(calls, seen, Plan({"a": Target(2, "moved to another worker", which=(1, 5))}))
    assert calls.replicas == [("a", (1, 5))]


def test_utilisation_of_operators_with_bad_numbers_is_not_published():
    calls = Calls()
    loads = [load("a", {"in": 1}, execution_time_s=0.1), load("b", {"a": 1}, execution_time_s=0.1)]
    seen = snapshot({"in": 1}, loads, incomplete={"b": "stale"})
    execute(calls, seen, Plan({"a": Target(1, "x"), "b": Target(1, "x")}))
    assert set(calls.used) == {"a"}


def test_of_a_pool_with_gaps_only_replicas_that_are_there_are_chosen():
    """After a run was laid out anew with other pools, a plan asked for replicas that no longer were."""
    calls = Calls()
    seen = snapshot({"in": 1}, [load("a", {"in": 1}, active=(1,), pool=3, there=(1, 4, 3))])
    execute(calls, seen, Plan({"a": Target(3, "more")}))
    assert calls.replicas == [("a", (1, 3, 4))]
