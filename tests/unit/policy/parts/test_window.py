from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.parts.window import Largest, merged
from penstock.testing.loads import load, snapshot


def test_a_value_counts_for_the_length_and_not_longer():
    wishes = Largest(10)
    assert [wishes.add(time_s, value) for time_s, value in ((0, 9), (9.9, 1), (10, 1))] == [9, 9, 1]


def test_without_length_only_the_last_value_counts():
    wishes = Largest(0)
    assert [wishes.add(0, 5), wishes.add(0, 2)] == [5, 2]


def test_a_clock_that_goes_back_keeps_no_value_longer():
    wishes = Largest(10)
    wishes.add(1000, 9)
    assert wishes.add(5, 1) == 9
    assert wishes.add(14, 1) == 9
    assert wishes.add(15, 1) == 1


steps = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), min_size=1, max_size=60)


@given(steps, st.integers(1, 40))
def test_it_is_the_maximum_of_the_window_in_no_more_places_than_values(taken, length_s):
    wishes, seen, now_s = Largest(length_s), [], 0
    for pause_s, value in taken:
        now_s += pause_s
        seen.append((now_s, value))
        assert wishes.add(now_s, value) == max(one for at_s, one in seen if now_s - at_s < length_s)
        assert len(wishes._kept) <= 8


def test_merged_adds_up_counts_and_weighs_busy_shares_by_length():
    one = snapshot({"in": 30}, [load("a", {"in": 30}, 20, backlog=10, busy_share={0: 1.0})], interval_s=1.0)
    two = snapshot({"in": 60}, [load("a", {"in": 60}, 70, busy_share={0: 0.5, 1: 0.25})], time_s=4.0, interval_s=3.0)
    both = merged([one, two])
    assert (both.time_s, both.interval_s, both.source_input) == (4.0, 4.0, {"in": 90})
    load_ = both.operators["a"]
    assert (load_.received_by, load_.processed, load_.backlog) == ({"in": 90}, 90, 0)
    assert load_.busy_share == pytest.approx({0: (1 + 1.5) / 4, 1: 0.75 / 4})


def test_merged_bears_operators_that_came_later_and_intervals_without_length():
    one = snapshot({"in": 30}, [load("a", {"in": 30})], interval_s=0.0)
    two = snapshot({"in": 30}, [load("a", {"in": 30}, busy_share={0: 1.0}), load("b", {"a": 5})], interval_s=0.0)
    both = merged([one, two])
    assert both.operators["a"].processed == 60
    assert both.operators["a"].busy_share == {}
    assert both.operators["b"].processed == 5
