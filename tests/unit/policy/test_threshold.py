from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.threshold import Threshold
from penstock.testing.loads import load, snapshot


def target(*busy, policy=None, **more):
    one = load("split", {"in": 9}, replicas=len(busy), busy_share=dict(enumerate(busy)), **more)
    return (policy or Threshold()).plan(snapshot({"in": 9}, [one])).targets["split"]


@pytest.mark.parametrize(
    ("busy", "replicas"),
    [
        ((0.71,), 2),  # above S_out = 0.7
        ((0.7,), 1),
        ((0.1, 0.75), 3),  # one that is overloaded is enough
        ((0.3, 0.22), 1),  # 0.52 / 1 < 0.75 · 0.7 = 0.525
        ((0.3, 0.23), 2),
        ((0.35, 0.35, 0.34), 2),  # 1.04 / 2 = 0.52
        ((0.35, 0.35, 0.35), 3),  # 1.05 / 2 = 0.525
        ((0.0,), 1),
        ((0.0,) * 5, 4),  # one at a time
    ],
)
def test_the_papers_thresholds(busy, replicas):
    assert target(*busy).replicas == replicas


def test_the_one_that_goes_is_one_of_the_two_most_used():
    policy = Threshold(seed=1)
    gone = {({0, 1, 2} - set(target(0.1, 0.3, 0.2, policy=policy).which)).pop() for _ in range(50)}
    assert gone == {1, 2}


def test_reasons():
    assert target(0.9).reason == "a replica is busy 0.9 of the time, above 0.7: one more"
    assert target(0.2).reason == "the replica is busy 0.2 of the time, up to 0.7: keeps it"
    assert target(0.5, 0.3).reason == "replicas are busy 0.8 together: 1 would be at 0.8, from 0.525 on: keeps 2"


def test_what_is_not_known_keeps_the_replicas():
    unknown = snapshot({"in": 1}, [load("split", {"in": 1}, replicas=3)])
    assert Threshold().plan(unknown).targets["split"].reason == "keeps 3: no busy share measured yet"
    stale = snapshot({"in": 1}, [load("split", {"in": 1}, busy_share={0: 1.0})], incomplete={"split": "stale"})
    assert Threshold().plan(stale).replicas == {"split": 1}


@given(total=st.floats(0.0, 8.0), replicas=st.integers(1, 12))
def test_at_a_constant_load_a_step_is_not_taken_back(total, replicas):
    """An even load: after a step in, no replica is above S_out, so that the next step is not out again."""
    after = target(*[total / replicas] * replicas).replicas
    if after < replicas:
        assert target(*[total / after] * after).replicas <= after


@pytest.mark.parametrize("options", [{"out": 0}, {"c": -1}, {"out": float("nan")}])
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError, match="policy 'e2df'"):
        Threshold(**options)
