from __future__ import annotations

from penstock.policy.base import Plan, Target
from penstock.policy.guards import guarded
from penstock.policy.guards.refuse_incomplete import RefuseIncomplete
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot


def seen(incomplete, replicas=4):
    loads = [load("a", {"in": 1}, replicas=replicas), load("b", {"a": 1}, replicas=replicas)]
    return snapshot({"in": 1}, loads, incomplete=incomplete)


def test_a_complete_snapshot_passes():
    assert RefuseIncomplete(Static(2)).plan(seen({})) == Static(2).plan(seen({}))


def test_nothing_is_scaled_in_and_the_reason_is_given():
    plan = RefuseIncomplete(Static(2)).plan(seen({"b": "last heard of 12 s ago"}))
    assert plan.replicas == {"a": 4, "b": 4}
    assert plan.targets["a"].reason == "static; not scaled in while other operators' numbers are missing"
    assert plan.targets["b"].reason == "holds 4: numbers are not to be trusted (last heard of 12 s ago)"
    assert plan.notes[0].endswith("the first: last heard of 12 s ago): nothing is scaled in")


def test_operators_with_good_numbers_may_still_be_scaled_out():
    assert RefuseIncomplete(Static(7)).plan(seen({"b": "stale"})).replicas == {"a": 7, "b": 4}


def test_the_last_plan_is_held_where_it_was_not_carried_out_yet():
    policy = RefuseIncomplete(Static(6))
    policy.plan(seen({}))
    assert policy.plan(seen({"a": "stale", "b": "stale"})).replicas == {"a": 6, "b": 6}


def test_a_scale_in_that_was_planned_but_not_carried_out_is_not_made_up_for():
    policy = RefuseIncomplete(Static(2))
    policy.plan(seen({}))
    assert policy.plan(seen({"a": "stale", "b": "stale"})).replicas == {"a": 4, "b": 4}


def test_a_bad_source_stops_every_scale_in():
    assert RefuseIncomplete(Static(2)).plan(seen({"in": "went back"})).replicas == {"a": 4, "b": 4}


def test_a_policy_does_not_see_a_snapshot_in_which_nothing_is_good():
    class Failing:
        def plan(self, snapshot, forecast=None):
            raise AssertionError("asked")

    assert RefuseIncomplete(Failing()).plan(seen({"a": "x", "b": "x"})).replicas == {"a": 4, "b": 4}


def test_slots_and_cooldown_do_not_turn_a_hold_into_a_scale_in():
    plan = guarded(Static(9), slots=10, scale_in_s=5).plan(seen({"b": "stale"}))
    assert plan.replicas == {"a": 6, "b": 4}


def test_held_operators_lose_the_choice_of_replicas():
    class Picky:
        def plan(self, snapshot, forecast=None):
            return Plan({name: Target(1, "picky", which=(3,)) for name in snapshot.operators})

    assert RefuseIncomplete(Picky()).plan(seen({"b": "stale"})).targets["a"].which is None
