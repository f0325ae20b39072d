from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.replay.rules import FAR_S, LatelySeen, Rules


def seen_of(rates, step_s=5.0):
    seen = LatelySeen(step_s)
    for number, rate in enumerate(rates, start=1):
        seen.add(number * step_s, rate)
    return seen


def test_every_rule_by_hand():
    """Four intervals of 5 s: 100, 300, 200, 80 events per second."""
    rules, seen = Rules(5.0), seen_of([100.0, 300.0, 200.0, 80.0])
    by_text = dict(zip(map(rules.text, range(len(rules))), rules.sizes(seen, 20.0, 80.0), strict=True))
    assert by_text["the last rate"] == 80
    assert by_text["the largest rate of 10 s"] == 200
    assert by_text["2 × the largest rate of 10 s"] == 400
    assert by_text["1.5 × the last rate, at least 0.5 of the largest of half an hour"] == 150
    assert by_text["6 × the largest rate of 320 s, at least 1 of the largest of half an hour"] == 1800


def test_a_rate_higher_than_any_interval_s_counts_for_all_windows():
    rules = Rules(5.0)
    assert rules.sizes(seen_of([100.0]), 5.0, 400.0).min() == 400


@pytest.mark.parametrize("step_s", [1.0, 2.0, 5.0, 60.0])
def test_windows_begin_with_one_step(step_s):
    rules = Rules(step_s)
    assert rules.windows_s[0] == step_s
    assert (np.diff(rules.windows_s) > 0).all()
    assert rules.text(0) == "the last rate"


def test_what_is_older_than_half_an_hour_is_forgotten():
    seen = LatelySeen(60.0)
    seen.add(0.0, 900.0)
    seen.add(60.0, 100.0)
    assert seen.largest(FAR_S - 1, np.array([FAR_S])) == [900]
    assert seen.largest(FAR_S, np.array([FAR_S])) == [100]


def test_a_clock_that_goes_back_keeps_nothing_for_longer():
    seen = LatelySeen(1.0)
    seen.add(1e9, 500.0)
    seen.add(10.0, 100.0)
    assert seen.largest(10.0 + FAR_S, np.array([FAR_S])) == [0]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.integers(1, 60))
def test_the_largest_is_that_of_a_list(rates, steps):
    window = np.array([float(steps)])
    assert seen_of(rates, 1.0).largest(float(len(rates)), window) == [max(rates[-steps:])]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_no_rule_is_below_the_last_rate_and_the_first_is_that(rates):
    sizes = Rules(1.0).sizes(seen_of(rates, 1.0), float(len(rates)), rates[-1])
    assert sizes[0] == rates[-1]
    assert (sizes >= rates[-1]).all()
