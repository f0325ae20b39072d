from __future__ import annotations

import pytest

from penstock.policy.parts.skew import Skew, hot_part, uneven_need
from penstock.testing.loads import load, snapshot


def counted(processed_by, queued_by=(), *, keyed=True, incomplete=False):
    queues = dict(enumerate(queued_by or [0] * len(processed_by)))
    one = load(
        "count",
        {"in": sum(processed_by)},
        processed_by=dict(enumerate(processed_by)),
        queued_by=queues,
        replicas=len(processed_by),
        keyed=keyed,
    )
    return snapshot({"in": sum(processed_by)}, [one], incomplete={"count": "stale"} if incomplete else {})


def learnt(*intervals):
    skew = Skew()
    for one in intervals:
        found = skew.learn(one)
    return found


def test_the_hot_part_by_hand():
    """Half of all events are of one key, the rest is even over four replicas: 0.5 + 0.5 / 4 = 0.625 of them."""
    assert learnt(*[counted([500, 100, 100, 100])] * 2) == {"count": hot_part(500, 200, 4)}
    assert hot_part(625, 250, 4) == 0.5


def test_what_waits_counts_as_well_as_what_is_done():
    """The busiest does no more than the others: its queue grows."""
    found = learnt(*[counted([100, 100, 100, 100], [300 * n, 0, 0, 0]) for n in range(5)])
    assert found == {"count": pytest.approx(hot_part(400, 175, 4))}


def test_even_keys_have_none():
    assert learnt(*[counted([100, 108, 96, 101])] * 5) == {}


def test_operators_without_keys_have_none():
    assert learnt(*[counted([500, 100, 100, 100], keyed=False)] * 5) == {}


def test_a_few_events_say_nothing():
    assert learnt(*[counted([5, 1, 1, 1])] * 3) == {}


def test_other_replicas_are_counted_anew_and_what_is_known_holds_until_then():
    skew = Skew()
    for _ in range(3):
        known = skew.learn(counted([500, 100, 100, 100]))
    assert skew.learn(counted([500, 100, 100, 100, 100])) == known
    assert skew.learn(counted([100, 100, 100, 100, 100])) == {}


def test_numbers_that_are_not_to_be_trusted_are_not_learnt():
    skew = Skew()
    for _ in range(3):
        known = skew.learn(counted([100, 100]))
    assert skew.learn(counted([900, 0], incomplete=True)) == known == {}


def test_an_operator_that_is_gone_is_forgotten():
    skew = Skew()
    for _ in range(3):
        skew.learn(counted([500, 100]))
    assert skew.learn(snapshot({"in": 0}, [])) == {}


def test_the_need_of_uneven_keys_keeps_the_busiest_from_having_too_much():
    for need, hot in ((3.0, 0.1), (5.0, 0.05), (2.0, 0.2)):
        replicas = uneven_need(need, hot)
        assert (hot + (1 - hot) / replicas) * need <= 1 + 1e-9
    assert uneven_need(20.0, 0.3) == 40.0
