from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.dstream import DStream
from penstock.testing.loads import load, snapshot


def minute(received, replicas=1, length_s=60.0, **more):
    given = {"execution_time_s": 0.1, **more}
    loads = [load("a", {"in": received}, replicas=replicas, **given)]
    return snapshot({"in": received}, loads, interval_s=length_s, td_s=length_s)


@pytest.mark.parametrize(
    ("ratio", "after"), [(0.0, 3), (0.3, 3), (0.31, 4), (0.89, 4), (0.9, 5), (1.49, 5), (1.5, 6), (2.5, 7), (4.2, 8)]
)
def test_the_rule(ratio, after):
    """Four replicas have 240 s of time in a minute, so for 2400 events; a half is rounded up."""
    assert DStream().plan(minute(round(2400 * ratio), replicas=4)).replicas == {"a": after}


def test_one_replica_stays():
    target = DStream().plan(minute(0)).targets["a"]
    assert (target.replicas, target.reason) == (
        1,
        "its events took 0 of its replicas' time in the last 60 s: keeps 1",
    )


def test_between_checks_it_keeps_what_is_there():
    policy = DStream()
    plans = [policy.plan(minute(1000, replicas=2, length_s=20.0)) for _ in range(6)]
    assert [plan.replicas["a"] for plan in plans] == [2, 2, 5, 2, 2, 5]  # a ratio of 2.5 at every third
    assert plans[0].targets["a"].reason == "keeps 2: looks again in 40 s"


def test_the_ratio_is_over_the_whole_time_since_the_last_check():
    policy = DStream()
    for received in (0, 0):
        policy.plan(minute(received, length_s=20.0))
    assert policy.plan(minute(600, length_s=20.0)).replicas == {"a": 2}  # 60 s of work in a minute
    for _ in range(2):
        policy.plan(minute(0, replicas=2, length_s=20.0))
    assert policy.plan(minute(0, replicas=2, length_s=20.0)).replicas == {"a": 1}  # nothing of it was carried over


def test_an_interval_that_is_a_little_short_counts_as_a_minute():
    assert DStream().plan(minute(6000, length_s=59.9)).replicas == {"a": 11}


def test_replicas_that_changed_in_between_count_with_their_time():
    policy = DStream()
    policy.plan(minute(600, replicas=1, length_s=30.0))
    target = policy.plan(minute(600, replicas=3, length_s=30.0)).targets["a"]
    assert target.replicas == 4  # 120 s of work in 30 + 90 s
    assert target.reason == "its events took 1 of its replicas' time in the last 60 s, at 0.9 or more: adds 1"


def test_an_unknown_execution_time_keeps_the_replicas():
    target = DStream().plan(minute(6000, replicas=3, execution_time_s=None)).targets["a"]
    assert (target.replicas, target.reason) == (3, "keeps 3: no execution time known since the last check")


def test_bad_numbers_do_not_count():
    policy = DStream()
    wrong = snapshot(
        {"in": 1}, [load("a", {"in": 10**6}, execution_time_s=1)], interval_s=30.0, incomplete={"a": "stale"}
    )
    policy.plan(wrong)
    assert policy.plan(minute(100, replicas=2, length_s=30.0)).replicas == {"a": 1}  # 10 s of work in 60 s
    assert DStream(every_s=30).plan(wrong).targets["a"].reason == "keeps 1: numbers are not to be trusted (stale)"


def test_an_interval_without_length_changes_nothing():
    assert DStream().plan(minute(10, length_s=0.0)).replicas == {"a": 1}


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"every_s": 0}, "every_s must be a number above 0; got 0"),
        ({"up": "high"}, "up must be a number above 0; got 'high'"),
        ({"down": -1}, "down must be a number of at least 0; got -1"),
        ({"up": 0.5, "down": 0.5}, "down must be below up, 0.5; got 0.5"),
    ],
)
def test_bad_options(options, rule):
    with pytest.raises(InputError, match=f"policy 'dstream': {rule}"):
        DStream(**options)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 20))
def test_more_input_never_means_fewer_replicas(received, more, replicas):
    less, plenty = (DStream().plan(minute(count, replicas)).replicas["a"] for count in (received, received + more))
    assert 1 <= less <= plenty
