"""A factor on what a policy wants, whatever it goes by."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.base import Plan, SizesWorkers, Supply, Target, initial_replicas, inside
from penstock.policy.ds2 import Ds2
from penstock.policy.guards import Headroom, guarded
from penstock.policy.incremental import Incremental
from penstock.policy.psps import Psps
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot


class Keeps:
    """Keeps what it sees."""

    def plan(self, snapshot, forecast=None):
        return Plan({name: Target(one.replicas, "stays") for name, one in snapshot.operators.items()})


def settled(policy, busy, *, steps=60):
    """The replicas that a policy comes to where so many replicas' time is taken, evenly shared."""
    replicas = initial_replicas(policy, {"clean": 64}, 5.0)["clean"]
    for number in range(steps):
        shares = {one: min(1.0, busy / replicas) for one in range(replicas)}
        done = round(500 * min(1.0, replicas / busy))
        one = load("clean", {"in": 500}, done, replicas=replicas, busy_share=shares, execution_time_s=busy / 100)
        plan = policy.plan(snapshot({"in": 500}, [one], time_s=5.0 * number, interval_s=5.0, td_s=5.0))
        replicas = max(1, min(64, plan.replicas["clean"]))
    return replicas


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), "2"])
def test_a_factor_is_a_number_above_0(factor):
    with pytest.raises(InputError, match="guard 'headroom': factor must be"):
        Headroom(Static(2), factor)


def test_a_policy_that_keeps_what_is_there_is_not_given_more_each_time():
    policy, replicas, found = Headroom(Keeps(), 1.5), 4, []
    for number in range(5):
        seen = snapshot({"in": 9}, [load("clean", {"in": 9}, replicas=replicas)], time_s=float(number))
        replicas = policy.plan(seen).replicas["clean"]
        found.append(replicas)
    assert found == [6, 6, 6, 6, 6]


@pytest.mark.parametrize("make", [Psps, Ds2, Incremental])
def test_what_policies_come_to_grows_by_the_factor(make):
    plain, doubled = (settled(policy, 5.6) for policy in (make(), Headroom(make(), 2.0)))
    assert plain > 5
    assert abs(doubled - 2 * plain) <= 2  # one that goes by steps may stay one step apart


def test_it_begins_with_its_headroom_and_says_why():
    policy = guarded(Headroom(Static(4), 1.25))
    assert initial_replicas(policy, {"clean": 64}, 5.0) == {"clean": 5}
    target = policy.plan(snapshot({"in": 9}, [load("clean", {"in": 9}, replicas=5)])).targets["clean"]
    assert (target.replicas, target.reason.split("; ")[-1]) == (5, "1.25 × 4")


def test_a_factor_of_1_changes_nothing():
    seen = snapshot({"in": 500}, [load("clean", {"in": 500}, replicas=3, execution_time_s=0.02)], td_s=5.0)
    assert Headroom(Psps(), 1.0).plan(seen) == Psps().plan(seen)


class Sizes(Keeps):
    """Wants ten slots for replicas, beside those of sources."""

    def slots_ahead(self, supply):
        return supply.seats + 10, "ten are wanted"


def test_slots_that_workers_are_to_have_grow_by_the_factor_as_well():
    """Replicas were multiplied and the slots for them were not, so on workers every headroom came to the same."""
    policy = guarded(Headroom(Sizes(), 2.2))
    first = next(one for one in inside(pickle.loads(pickle.dumps(policy))) if isinstance(one, SizesWorkers))
    supply = Supply(slots=4, joining_s=60.0, seats=2)
    assert first.slots_ahead(supply) == (24, "ten are wanted; 2.2 × 10")
    assert Headroom(Sizes(), 1.0).slots_ahead(supply) == (12, "ten are wanted")


def test_who_does_not_size_workers_does_not_with_headroom():
    assert not isinstance(Headroom(Psps(), 2.0), SizesWorkers)


@given(
    replicas=st.integers(1, 20),
    factor=st.floats(0.3, 4.0),
    shares=st.lists(st.floats(0.0, 1.0), min_size=20, max_size=20),
)
def test_the_work_that_is_shown_is_that_of_all(replicas, factor, shares):
    shown = []

    class Sees(Keeps):
        def plan(self, snapshot, forecast=None):
            shown.append(snapshot.operators["clean"])
            return super().plan(snapshot)

    policy = Headroom(Sees(), factor)
    for _ in range(3):
        busy = dict(enumerate(shares[:replicas]))
        one = load("clean", {"in": 9}, replicas=replicas, busy_share=busy, queued_by=dict.fromkeys(busy, 4))
        replicas = max(1, min(20, policy.plan(snapshot({"in": 9}, [one])).replicas["clean"]))
        assert sum(shown[-1].busy_share.values()) == pytest.approx(sum(busy.values()))
        assert set(shown[-1].active) <= set(one.active)
