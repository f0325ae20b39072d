from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.policy.guards.cooldown import Cooldown
from penstock.policy.static import Static
from penstock.testing.loads import load, snapshot


def at(time_s, replicas):
    return snapshot({"in": 1}, [load("a", {"in": 1}, replicas=replicas)], time_s=time_s)


def wants(policy, count):
    policy.policy = Static(count)
    return policy


def test_the_first_change_is_free():
    assert Cooldown(Static(2), scale_in_s=60).plan(at(0, 5)).replicas == {"a": 2}


def test_scale_in_waits_after_a_change_that_was_carried_out():
    policy = Cooldown(Static(5), scale_in_s=30)
    policy.plan(at(0, 1))
    held = wants(policy, 2).plan(at(10, 5)).targets["a"]
    assert held.replicas == 5
    assert held.reason == "static; scale-in waits until 30 s after the last change, 10 s ago"
    assert policy.plan(at(29, 5)).replicas == {"a": 5}
    assert policy.plan(at(30, 5)).replicas == {"a": 2}


def test_scale_out_has_a_time_of_its_own():
    policy = Cooldown(Static(2), scale_in_s=100, scale_out_s=10)
    policy.plan(at(0, 1))
    assert wants(policy, 4).plan(at(5, 2)).replicas == {"a": 2}
    assert policy.plan(at(10, 2)).replicas == {"a": 4}


def test_a_plan_that_was_not_carried_out_does_not_count_as_a_change():
    """The actuator failed, the guard believed it had not, and the next try had to wait."""
    policy = Cooldown(Static(5), scale_out_s=60)
    policy.plan(at(0, 1))
    assert policy.plan(at(10, 1)).replicas == {"a": 5}


def test_a_clock_that_goes_back_does_not_make_the_wait_longer():
    policy = Cooldown(Static(5), scale_in_s=30)
    policy.plan(at(1000, 1))
    wants(policy, 2).plan(at(1010, 5))
    assert policy.plan(at(100, 5)).replicas == {"a": 5}
    assert policy.plan(at(130, 5)).replicas == {"a": 2}


@pytest.mark.parametrize("option", ["scale_in_s", "scale_out_s"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_times_are_at_least_zero(option, value):
    with pytest.raises(InputError, match=f"{option} must be a number of at least 0; got"):
        Cooldown(Static(1), **{option: value})
