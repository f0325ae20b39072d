from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.base import share_slots
from penstock.policy.guards.bounded import Bounded
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot

THREE = [load("a", {"in": 1}, pool=8, replicas=2), load("b", {"a": 1}, pool=8), load("c", {"b": 1}, pool=8)]


def test_the_pool_is_the_limit_and_the_reason_says_so():
    target = Bounded(Static(9)).plan(snapshot({"in": 1}, THREE)).targets["a"]
    assert (target.replicas, target.reason) == (8, "static; the pool has 8")


def test_enough_slots_change_nothing():
    plan = Bounded(Static(4), slots=12).plan(snapshot({"in": 1}, THREE))
    assert plan == Static(4).plan(snapshot({"in": 1}, THREE))


def test_slots_that_do_not_suffice_are_shared_by_need_and_said():
    plan = Bounded(Static({"a": 2, "b": 9, "c": 5}), slots=9).plan(snapshot({"in": 1}, THREE))
    assert plan.replicas == {"a": 1, "b": 5, "c": 3}
    assert plan.notes == ("9 slots do not suffice for 15 replicas: shared by need",)
    assert plan.targets["c"].reason == "static; 9 slots are shared by need, 15 were wanted"


def test_fewer_slots_than_operators_leave_one_each_and_say_so():
    plan = Bounded(Static(4), slots=2).plan(snapshot({"in": 1}, THREE))
    assert plan.replicas == {"a": 1, "b": 1, "c": 1}
    assert plan.notes == ("2 slots do not suffice: 3 operators cannot go below 3 replicas",)


def test_on_an_incomplete_snapshot_nobody_gets_smaller_for_the_slots():
    """Sharing by need took replicas from an operator with bad numbers, to give them to one that wanted more."""
    seen = snapshot({"in": 1}, THREE, incomplete={"b": "stale"})
    plan = Bounded(Static({"a": 2, "b": 1, "c": 8}), slots=7).plan(seen)
    assert plan.replicas == {"a": 2, "b": 1, "c": 4}


def test_slots_must_be_at_least_one():
    with pytest.raises(InputError, match="slots must be whole and at least 1; got 0"):
        Bounded(Static(1), slots=0)


wanted = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.integers(1, 40), min_size=1)


@given(wanted, st.integers(1, 400))
@settings(max_examples=150)
def test_sharing_uses_every_slot_and_gives_nobody_more_than_wanted(wanted, slots):
    given_ = share_slots(wanted, dict.fromkeys(wanted, 1), slots)
    assert all(1 <= given_[name] <= wanted[name] for name in wanted)
    assert sum(given_.values()) == max(len(wanted), min(slots, sum(wanted.values())))
    for one in wanted:
        for other in wanted:
            assert wanted[one] < wanted[other] or given_[one] >= given_[other] - 1
