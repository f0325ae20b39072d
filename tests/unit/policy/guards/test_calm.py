"""Changes are bounded, and events are never made to wait for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.base import Plan, Target
from penstock.policy.cba import Cba
from penstock.policy.guards import Calm, RefuseIncomplete
from penstock.testing.loads import load, snapshot


class Wants:
    """Wants these replicas, one number after the other."""

    def __init__(self, *wishes):
        self.wishes = list(wishes)

    def plan(self, snapshot, forecast=None):
        return Plan(dict.fromkeys(snapshot.operators, Target(self.wishes.pop(0), "as wished")))


def played(wishes, *, td_s=0.2, per_minute=60.0, state_bytes=0):
    """What the guard makes of the wishes, each carried out."""
    guard, replicas, found = Calm(Wants(*wishes), per_minute=per_minute), 1, []
    for number in range(len(wishes)):
        now = load("clean", {"in": 1}, replicas=replicas, state_bytes=state_bytes)
        seen = snapshot({"in": 1}, [now], time_s=td_s * number, td_s=td_s, interval_s=td_s)
        replicas = guard.plan(seen).replicas["clean"]
        found.append(replicas)
    return found


def changes(replicas):
    return sum(one != two for one, two in zip([1, *replicas], replicas, strict=False))


def test_at_a_second_it_holds_nothing():
    wishes = [5, 3] * 300
    assert played(wishes, td_s=1.0) == wishes


def test_at_a_fifth_of_a_second_no_more_than_sixty_a_minute():
    replicas = played([5, 3] * 1500)  # ten minutes
    assert changes(replicas) <= 600 + 12
    assert changes(replicas) >= 560


def test_scale_out_is_never_held():
    wishes = [2, 1, 3, 1, 4, 1, 9, 1, 12, 1] * 20
    assert all(got >= wish for got, wish in zip(played(wishes, per_minute=6.0), wishes, strict=True))


def test_the_reason_is_told():
    guard = Calm(Wants(1, 1), per_minute=6.0)
    for number, replicas in enumerate((4, 3)):
        seen = snapshot({"in": 1}, [load("clean", {"in": 1}, replicas=replicas)], time_s=0.2 * number)
        target = guard.plan(seen).targets["clean"]
    assert target == Target(3, "as wished; scale-in waits: 6 changes a minute are enough")


@pytest.mark.parametrize(("state_bytes", "most"), [(0, 60.0), (1, 30.0), (9_000_000, 3.0), (10**9, 0.03)])
def test_state_that_moves_makes_changes_dearer(state_bytes, most):
    assert Calm(Wants()).rate(load("count", {"in": 1}, state_bytes=state_bytes)) == pytest.approx(most, rel=0.02)


def test_with_state_it_binds_at_a_second_too():
    assert changes(played([5, 3] * 300, td_s=1.0, state_bytes=9_000_000)) <= 2 * 30 + 2


def test_a_policy_that_prices_what_moves_weighs_it_itself():
    guard = Calm(RefuseIncomplete(Cba(horizon=4)))
    assert guard.rate(load("count", {"in": 1}, state_bytes=10**9)) == 60.0


def test_a_clock_that_goes_back_gives_no_allowance():
    guard = Calm(Wants(5, 1, 5, 1, 5), per_minute=6.0)
    for time_s, replicas in ((100.0, 1), (50.0, 5), (0.0, 1), (-50.0, 5)):
        plan = guard.plan(snapshot({"in": 1}, [load("clean", {"in": 1}, replicas=replicas)], time_s=time_s))
    assert plan.replicas == {"clean": 5}


def test_the_bound_is_checked():
    with pytest.raises(InputError, match="guard 'calm': per_minute must be a number above 0; got 0"):
        Calm(Wants(), per_minute=0)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=300), st.sampled_from((0.2, 0.5, 1.0)), st.integers(5, 120))
def test_in_any_time_changes_are_bounded(wishes, td_s, per_minute):
    replicas = played(wishes, td_s=td_s, per_minute=per_minute)
    ins = sum(two < one for one, two in zip([1, *replicas], replicas, strict=False))
    minutes = td_s * len(wishes) / 60
    assert ins <= per_minute * minutes + max(1.0, per_minute / 6) + 1
