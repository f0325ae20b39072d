from __future__ import annotations

import pytest

from penstock.policy.parts.busy import mean_busy_share
from penstock.testing.loads import load


def test_the_mean_of_the_active_replicas():
    """(0.9 + 0.3) / 2; replica 2 of the pool is not active."""
    assert mean_busy_share(load("a", {}, replicas=2, busy_share={0: 0.9, 1: 0.3, 2: 1.0})) == pytest.approx(0.6)


def test_a_replica_that_nothing_is_known_of_was_idle():
    assert mean_busy_share(load("a", {}, replicas=3, busy_share={0: 0.9})) == pytest.approx(0.3)


@pytest.mark.parametrize("more", [{}, {"busy_share": {0: 0.5}, "replicas": 0}])
def test_nothing_measured_is_not_idle(more):
    assert mean_busy_share(load("a", {}, **more)) is None
