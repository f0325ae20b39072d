from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.base import Supply
from penstock.policy.replay.replay import Copy
from penstock.policy.replay.rules import LatelySeen
from penstock.policy.replay.workers import STEP_S, WorkerRules, WorkersPast, _appended, _workers

COPY = Copy(np.array([0.02, 0.03]), np.array([64.0, 64.0]), np.zeros(2), 0.05)  # a slot for each 20 events per second


def supply(joining_s=60.0, **more):
    return Supply(slots=4, joining_s=joining_s, seats=1, **more)


def played(rates, joining_s=60.0, **more):
    """A past under these rates, 5 s each, and what it wants at the end."""
    past, offer = WorkersPast(STEP_S, 0.01, 2.0), supply(joining_s, **more)
    for number, rate in enumerate(rates, start=1):
        past.learn(number * STEP_S, rate * STEP_S, STEP_S, COPY, offer)
    return past, past.slots(len(rates) * STEP_S, rates[-1], 0.0, COPY, offer)


def test_rules_by_hand():
    """A minute and a half: 200, but 500 for 5 s; now 100."""
    rules, seen = WorkerRules(), LatelySeen(STEP_S, 14_400.0)
    rates = [200.0] * 8 + [500.0] + [200.0] * 8 + [100.0]
    for number, rate in enumerate(rates, start=1):
        seen.add(number * STEP_S, rate)
    sizes = dict(zip(map(rules.text, range(len(rules))), rules.sizes(seen, 90.0, 100.0), strict=True))
    assert sizes["the last rate"] == 100
    assert sizes["the mean of a minute"] == pytest.approx((2 * 200 + 500 + 8 * 200 + 100) / 12)
    assert sizes["2 × the largest rate of 30 s"] == 400
    assert sizes["0.7 × the last rate, at least 0.75 of the largest of four hours"] == 375
    assert sizes["3.5 × the largest rate of 3600 s"] == 1.25 * 500


def test_an_even_load_needs_no_spare_slots():
    """200 events per second are 4 and 6 replicas, and the source has a slot."""
    _, (slots, why) = played([200.0] * 720)
    assert 11 <= slots <= 13
    assert why.startswith("to be ready, 60 s from now, when a worker that is asked for has joined, for ")


def test_bursts_that_come_faster_than_a_worker_joins_are_met_beforehand():
    """Five minutes at 200, then half a minute at 400, again and again: 21 slots must be there before."""
    past, (slots, _) = played(([200.0] * 60 + [400.0] * 6) * 12)
    _, (there, _) = past, past.slots(66 * 12 * STEP_S, 200.0, 0.0, COPY, supply())
    assert slots >= 21
    assert there >= 20


def test_workers_that_join_at_once_are_not_kept_for_bursts():
    past, _ = played(([200.0] * 60 + [240.0] * 6) * 12, joining_s=1.0)
    slots, _ = past.slots(66 * 12 * STEP_S + 150, 200.0, 0.0, COPY, supply(1.0))
    assert slots <= 13


def test_what_waits_needs_slots_as_well():
    past, (slots, _) = played([200.0] * 200, joining_s=12.0)
    more, _ = past.slots(1000.0, 200.0, 1200.0, COPY, supply(12.0))
    assert more - slots == pytest.approx(100 * 0.05, abs=1)


def test_before_anything_has_come_the_last_rate_counts():
    past = WorkersPast(STEP_S, 0.01, 2.0)
    assert past.slots(0.0, 200.0, 0.0, COPY, supply())[0] == 11


def test_slots_that_are_to_be_spare_are_kept_beyond_what_the_last_rate_needs():
    """An even load let all of them go, and the first jump found nothing."""
    past, (slots, why) = played([200.0] * 200, spare=5)
    assert slots == 1 + 10 + 5
    assert "and 5 slots beyond the last rate" in why
    assert past.slots(1000.0, 200.0, 600.0, COPY, supply(spare=5))[0] == 1 + 12 + 5  # what waits is no spare slot


def test_the_last_worker_that_is_not_wanted_stays():
    past, (slots, _) = played([200.0] * 200, spare=5)
    wanted = [past.slots(1000.0, 200.0, 0.0, COPY, supply(spare=5, workers=there))[0] for there in (3, 4, 5, 6, 9)]
    assert wanted == [slots, slots, 20, 20, 20]


def test_rules_are_played_with_the_spare_slots():
    """Else those that keep more would seem dearer than they are, and the others later."""
    past, _ = played([200.0] * 200, spare=5)
    assert past._asked[past.rule].tolist() == [5.0] * past._asked.shape[1]  # 16 slots, and one worker more
    assert past._asked.min() >= 4


def test_most_workers_bound_every_rule():
    assert _workers(np.array([5.0, 500.0]), supply(most=8)).tolist() == [2, 8]


def test_asked_for_and_there_by_hand():
    """Wanted by one rule, a column a step, where a worker joins in two: 2, 2, 5, 3, 3, 3."""
    wanted, asked, there = np.zeros((1, 0)), np.zeros((1, 0)), []
    for one in (2.0, 2.0, 5.0, 3.0, 3.0, 3.0):
        wanted = _appended(wanted, np.array([one]), 2)
        asked = _appended(asked, wanted.max(axis=1), 3)
        there.append((asked[0, -1], asked[0].min()))
    assert there == [(2, 2), (2, 2), (5, 2), (5, 2), (3, 3), (3, 3)]


def test_another_joining_time_is_taken_up():
    past, _ = played([200.0] * 100, joining_s=60.0)
    for number, joining_s in enumerate((12.0, 180.0, 1.0)):
        past.learn((101 + number) * STEP_S, 1000.0, STEP_S, COPY, supply(joining_s))
        assert past._asked.shape[1] == 1 + max(1, round(joining_s / STEP_S + 0.4))


def test_what_it_keeps_is_small():
    past, _ = played([200.0] * 50, joining_s=180.0)
    size = len(pickle.dumps(past))
    for number in range(50, 150):
        past.learn(number * STEP_S, 1000.0, STEP_S, COPY, supply(180.0))
    assert abs(len(pickle.dumps(past)) - size) < 32
    assert size < 400_000


def test_the_reason_says_what_the_rule_beside_it_would_have_come_to():
    """It named the rule, and not what it came to, nor what any other would have cost and been late with."""
    past, (_, why) = played(([200.0] * 60 + [400.0] * 6) * 12)
    assert past.rule != 0
    late = r"\d[\d.]* %"
    told = rf": it would have been late with {late}; the last rate, as `psps` has it, would have cost {late} less"
    assert re.search(told + rf" and been late with {late}$", why)


def test_where_psps_does_best_the_next_best_is_told():
    past, (_, why) = played([200.0] * 720)
    past.rule = 0
    past._choose()
    why = past.slots(3600.0, 200.0, 0.0, COPY, supply())[1]
    assert past._beside != 0 or past.rule != 0
    assert "would have cost" in why


@given(st.lists(st.sampled_from([10.0, 100.0, 400.0, 3000.0]), min_size=2, max_size=60), st.floats(0.0, 5000.0))
@settings(max_examples=20, deadline=None)
def test_where_the_promise_is_not_kept_slots_are_within_those_of_the_peak(rates, waiting):
    """Never dearer than sized for the largest rate so far, but for what waits."""
    past, _ = played(rates, joining_s=180.0)
    slots, why = past.slots(len(rates) * STEP_S, rates[-1], waiting, COPY, supply(180.0))
    largest = max(rates) + waiting / 180
    if "within what the largest rate so far needs" in why:
        assert slots <= 1 + COPY.sized(np.array([largest]))[0][0]
    else:
        assert past._kept


def test_where_nothing_keeps_the_promise_it_is_within_the_peak():
    """Jumps, and workers of three minutes: nothing is there in time, and more than the peak is no help."""
    past, _ = played(([10.0] * 30 + [400.0] * 6) * 6 + [10.0] * 3, joining_s=180.0)
    past.rule = next(n for n in range(len(past._rules)) if past._rules.text(n) == "3.5 × the largest rate of 3600 s")
    past._late[:] = past._events
    assert past.slots(1095.0, 10.0, 0.0, COPY, supply(180.0))[0] == 1 + COPY.sized(np.array([400.0]))[0][0]
