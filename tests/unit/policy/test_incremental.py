from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.incremental import Incremental
from penstock.testing.loads import load, snapshot


def seen(*busy, **more):
    one = load("a", {"in": 10}, replicas=len(busy), busy_share=dict(enumerate(busy)) | {60: 0.0}, **more)
    return snapshot({"in": 10}, [one])


def target(*busy, **more):
    return Incremental().plan(seen(*busy, **more)).targets["a"]


@pytest.mark.parametrize(
    ("busy", "replicas"),
    [((0.81,), 2), ((1.0, 1.0, 1.0), 4), ((0.8,), 1), ((0.3, 0.3), 2), ((0.2, 0.2), 1), ((0.0,), 1), ((0.29,) * 5, 4)],
)
def test_one_step_at_a_time_between_the_thresholds(busy, replicas):
    assert target(*busy).replicas == replicas


def test_the_mean_of_the_active_replicas_decides():
    """(1.0 + 0.7) / 2 = 0.85 is above 0.8; the inactive replica 60 of the pool does not count."""
    got = target(1.0, 0.7)
    assert got.replicas == 3
    assert got.reason == "replicas are busy 0.85 of the time, above 0.8: one more"
    assert target(1.0, 0.5).replicas == 2


def test_the_queue_does_not_count():
    assert target(0.1, 0.1, backlog=100_000).replicas == 1


def test_one_stays():
    assert target(0.01).reason == "replicas are busy 0.01 of the time, below 0.3, but one stays"


def test_a_busy_share_that_was_not_measured_keeps_the_replicas():
    got = Incremental().plan(snapshot({"in": 10}, [load("a", {"in": 10}, replicas=3)])).targets["a"]
    assert (got.replicas, got.reason) == (3, "keeps 3: no busy share measured yet")


def test_numbers_not_to_be_trusted_keep_the_replicas():
    doubtful = snapshot({"in": 1}, [load("a", {"in": 1}, busy_share={0: 1.0})], incomplete={"a": "stale"})
    got = Incremental().plan(doubtful).targets["a"]
    assert (got.replicas, got.reason) == (1, "keeps 1: numbers are not to be trusted (stale)")


def test_each_operator_alone():
    loads = [load("a", {"in": 9}, busy_share={0: 0.9}), load("b", {"a": 9}, replicas=2, busy_share={0: 0.1, 1: 0.1})]
    assert Incremental().plan(snapshot({"in": 9}, loads)).replicas == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"high": 1.5}, "high must be above 0 and at most 1; got 1.5"),
        ({"low": "few"}, "low must be above 0 and at most 1; got 'few'"),
        ({"low": True}, "low must be above 0 and at most 1; got True"),
        ({"low": 0.9}, "low must be below high; got low 0.9 and high 0.8"),
    ],
)
def test_thresholds_are_shares_in_order(options, told):
    with pytest.raises(InputError, match=f"policy 'incremental': {told}"):
        Incremental(**options)


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1))
def test_never_more_than_one_step_and_busier_never_means_fewer(replicas, one, other):
    low, high = (target(*[busy] * replicas).replicas for busy in sorted((one, other)))
    assert low <= high
    assert {low, high} <= {max(1, replicas - 1), replicas, replicas + 1}


@given(st.integers(1, 40), st.floats(0.01, 40))
def test_a_step_is_not_taken_back_while_the_input_stays(replicas, work):
    """`work` is in replicas' time; its busy share is work / replicas."""
    steps = [replicas]
    for _ in range(60):
        steps.append(target(*[min(1.0, work / steps[-1])] * steps[-1]).replicas)
    changes = [after - before for before, after in pairwise(steps) if after != before]
    assert len(set(changes)) <= 1
