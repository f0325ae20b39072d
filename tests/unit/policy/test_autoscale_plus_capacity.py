"""UtilCPU and the working interval, worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.autoscale_plus import CpuRules, Need
from penstock.testing.loads import load, snapshot


def test_two_replicas_on_one_core():
    """λ 0.3, reserved 0.5, n 2; the mean of 0.9 and 0.2 is 0.55, so the other one uses 0.55 and 0.45 / 2 is free.

    0.3 · 0.9 + 0.225 = 0.495 for the busy one, 0.3 · 0.5 + 0.225 = 0.375 for the other: 0.375 is the least.
    """
    one = load("a", {"in": 1}, replicas=2, busy_share={0: 0.9, 1: 0.2, 2: 0.0})
    rules = CpuRules(weight=0.3, reserved=0.5, per_core=2)
    assert rules.usable_by(one, snapshot({"in": 1}, [one])) == pytest.approx(0.375)
    assert [rules.usable(used, others=0.55) for used in (0.9, 0.2)] == pytest.approx([0.495, 0.375])


def test_a_core_of_its_own_is_usable_in_full():
    """0.3 · max(used, 1) + (1 − 0) / 1 is above 1."""
    one = load("a", {"in": 1}, replicas=2, busy_share={0: 1.0, 1: 0.0})
    rules = CpuRules(weight=0.3, reserved=1.0, per_core=1)
    assert rules.usable_by(one, snapshot({"in": 1}, [one])) == 1.0


def test_a_core_that_others_use_up_leaves_what_is_reserved():
    assert CpuRules(weight=0.3, reserved=0.25, per_core=4).usable(used=0.1, others=1.2) == pytest.approx(0.075)


def test_other_operators_use_the_cores_too():
    """Mean of 0.2 and 0.6 is 0.4; 0.5 · 0.5 + 0.6 / 2 = 0.55."""
    loads = [load("a", {"in": 1}, busy_share={0: 0.2}), load("b", {"a": 1}, busy_share={0: 0.6})]
    rules = CpuRules(weight=0.5, reserved=0.5, per_core=2)
    assert rules.usable_by(loads[0], snapshot({"in": 1}, loads)) == pytest.approx(0.55)


@pytest.mark.parametrize(
    ("work", "replicas", "what"),
    [
        (10.1, 34, "scales out"),  # 10.1 / 0.3 = 33.7
        (10.0, 10, "stays"),
        (8.0, 10, "stays"),
        (7.9, 10, "but keeps 10"),  # 7.9 / 0.3 = 26.3 would be more
        (3.0, 10, "but keeps 10"),  # 3 / 0.3 = 10
        (2.9, 10, "but keeps 10"),  # 9.67, so 10
        (2.6, 9, "scales in"),  # 8.67
        (0.0, 1, "scales in"),
    ],
)
def test_the_working_interval_of_ten_replicas_with_the_papers_parameters(work, replicas, what):
    verdict = Need(work, usable=1.0, counted=0.3).verdict(10, 0.8)
    assert verdict.replicas == replicas
    assert what in verdict.reason


@pytest.mark.parametrize(("work", "replicas"), [(10.1, 11), (8.0, 10), (7.9, 8), (7.0, 7), (0.1, 1)])
def test_with_a_weight_of_one_there_is_no_margin(work, replicas):
    assert Need(work, usable=1.0, counted=1.0).verdict(10, 0.8).replicas == replicas


def test_a_small_beta_scales_in_late():
    assert Need(2.0, usable=1.0, counted=1.0).verdict(10, 0.1).replicas == 10
    assert Need(0.9, usable=1.0, counted=1.0).verdict(10, 0.1).replicas == 1


def test_half_a_core_makes_twice_as_many():
    """1.2 / 0.5 = 2.4 > 2, although 1.2 is below it."""
    assert Need(1.2, usable=0.5, counted=0.5).verdict(2, 0.8).replicas == 3


def test_a_product_a_hair_off_a_bound_is_on_it():
    assert 100 * 0.07 > 7
    assert "stays" in Need(100 * 0.07, 1.0, 0.3).verdict(7, 0.8).reason
    assert 0.8 * 3 > 2.4
    assert "stays" in Need(2.4, 1.0, 1.0).verdict(3, 0.8).reason


@given(st.floats(0, 1e6), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(1, 500), st.floats(0.01, 1))
def test_a_scale_out_adds_a_scale_in_takes_away_and_what_is_new_suffices(work, usable, part, now, below):
    need = Need(work, usable, counted=usable * part)
    verdict = need.verdict(now, below)
    assert verdict.replicas >= 1
    if "scales out" in verdict.reason:
        assert verdict.replicas > now
    if "scales in" in verdict.reason:
        assert verdict.replicas < now
    if verdict.replicas != now:
        assert verdict.replicas >= math.floor(work / need.counted * (1 - 1e-8))
        assert verdict.replicas == 1 or verdict.replicas - 1 < work / need.counted
