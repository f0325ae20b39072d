from __future__ import annotations

from penstock.policy.base import Plan, Starts, initial_replicas
from penstock.policy.guards import Bounded, guarded
from penstock.policy.psps import Psps
from penstock.policy.static import Static

POOLS = {"a": 8, "b": 2}


class Greedy:
    """Wants too many of one, none of another, and knows nothing of the rest."""

    def initial(self, pools, td_s):
        return {"a": 0, "b": 99}

    def plan(self, snapshot, forecast=None):
        return Plan({})


def test_a_policy_that_does_not_say_starts_with_one_each():
    assert not isinstance(Psps(), Starts)
    assert initial_replicas(Psps(), POOLS, 1.0) == {"a": 1, "b": 1}


def test_static_starts_with_its_numbers_within_the_pools():
    assert initial_replicas(Static(4), POOLS, 1.0) == {"a": 4, "b": 2}
    assert initial_replicas(Static({"a": 3}), POOLS, 1.0) == {"a": 3, "b": 1}


def test_guards_are_looked_through():
    assert initial_replicas(guarded(Static(3)), POOLS, 1.0) == {"a": 3, "b": 2}
    assert initial_replicas(guarded(Psps()), POOLS, 1.0) == {"a": 1, "b": 1}


def test_whatever_a_policy_says_stays_between_one_and_the_pool():
    assert initial_replicas(Bounded(Greedy()), {**POOLS, "c": 5}, 1.0) == {"a": 1, "b": 2, "c": 1}


def test_no_operators():
    assert initial_replicas(Static(4), {}, 1.0) == {}
