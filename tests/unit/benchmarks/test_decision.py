"""What a decision takes, of the papers' policy and of ours."""

from __future__ import annotations

import pytest
from decision import POLICIES, chain, measure, wide


@pytest.mark.parametrize("policy", POLICIES)
def test_both_policies_are_measured(policy: str) -> None:
    for shape, make in (("chain", chain), ("wide", wide)):
        one = measure(policy, shape, make(3), 1)
        assert (one.policy, one.shape, one.operators) == (policy, shape, 3)
        assert min(one.plan_ms, one.step_ms, one.core) > 0


def test_ours_is_among_them() -> None:
    assert "penstock" in POLICIES
