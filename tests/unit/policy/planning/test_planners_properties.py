"""What all planners keep to on any need, and the optimum against all timetables there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.policy.planning.planners import cba, held, improved, optimal, shortfall, spea, srea
from penstock.policy.planning.timetable import MOST_DELAY, MOST_PRICE, Limits, Prices

from .timetables import (
    at_most,
    check_cheapest_with_lateness,
    check_cheapest_within_bounds,
    costs,
    every_timetable,
    late,
    prices_of_lateness,
    small_needs,
    two_bounds,
    whole_prices,
)

amounts = st.one_of(
    st.just(0.0), st.integers(0, 20).map(float), st.floats(0, 1e5), st.sampled_from([1e-12, 1e-3, 1e9, MOST_PRICE])
)
all_prices = st.builds(Prices, replica=amounts, up=amounts, down=amounts, route=amounts)
needs = st.lists(st.integers(0, 30), min_size=2, max_size=30)
starts = st.integers(0, 40)
small_prices = st.builds(Prices, **whole_prices)


@given(needed=needs, start=starts, prices=all_prices)
def test_optimal_costs_no_more_than_cba_and_cba_no_more_than_spea(needed, start, prices):
    costs = [
        prices.cost(planned, start)
        for planned in (optimal(needed, start, prices), cba(needed, start, prices), spea(needed))
    ]
    if min(needed[1:]) >= 1:  # else the optimum keeps one replica where the others keep none
        assert at_most(costs[0], costs[1])
    assert at_most(costs[1], costs[2])
    free = prices.cost(optimal(needed, start, prices, Limits(least=0)), start)
    assert at_most(free, costs[1])


@given(needed=needs, start=starts, prices=all_prices)
def test_every_timetable_serves_the_need(needed, start, prices):
    for planned in (spea(needed), cba(needed, start, prices), optimal(needed, start, prices)):
        assert len(planned) == len(needed) - 1
        assert planned.dtype == np.int64
        assert (planned >= needed[1:]).all()
        assert planned.max() <= max(1, start, *needed[1:])
    assert (srea(needed) == needed[0]).all()


@given(needed=needs, start=starts, prices=all_prices)
def test_cba_has_nothing_left_to_improve(needed, start, prices):
    planned = cba(needed, start, prices)
    assert improved(planned, start, prices).tolist() == planned.tolist()
    assert (planned >= spea(needed)).all()


@given(needed=needs, start=starts, prices=all_prices)
def test_the_same_again_and_the_input_as_it_was(needed, start, prices):
    given_needs = np.array(needed)
    before = given_needs.copy()
    for plan in (cba, optimal):
        assert plan(given_needs, start, prices).tolist() == plan(needed, start, prices).tolist()
    assert (given_needs == before).all()


@given(needed=small_needs, start=st.integers(0, 5), prices=small_prices, bounds=two_bounds)
@settings(max_examples=60)
def test_no_timetable_within_the_bounds_is_cheaper(needed, start, prices, bounds):
    check_cheapest_within_bounds(needed, start, prices, bounds)


@given(needed=small_needs, start=st.integers(0, 4), prices=small_prices, delay=st.integers(0, 6))
@settings(max_examples=60)
def test_with_a_delay_none_is_less_late_and_none_as_late_is_cheaper(needed, start, prices, delay):
    planned = optimal(needed, start, prices, Limits(least=0, most=4, delay=delay))
    every = every_timetable(len(needed) - 1, 0, 4)
    short, cost = late(needed, every, start, delay), costs(prices, every, start)
    assert shortfall(needed, planned, start, delay=delay).sum() == short.min()
    assert prices.cost(planned, start) == cost[short == short.min()].min()


@given(
    needed=small_needs,
    start=st.integers(0, 4),
    prices=small_prices,
    delay=st.integers(0, MOST_DELAY),
    lateness=prices_of_lateness,
)
@settings(max_examples=60)
def test_with_a_price_on_lateness_no_timetable_costs_less_in_all(needed, start, prices, delay, lateness):
    check_cheapest_with_lateness(needed, start, prices, delay, lateness)


@given(
    needed=needs,
    start=starts,
    prices=st.builds(Prices, **dict.fromkeys(("replica", "up", "down", "route"), st.floats(1, 1e3))),
)
@example(
    needed=[0, 21, 13, 19, 11, 17, 0, 13],
    start=0,
    prices=Prices(replica=105.55651810975161, up=1.0, down=1.0, route=664.5187591053952),
)
def test_a_high_price_on_lateness_is_as_good_as_none_allowed(needed, start, prices):
    strict = optimal(needed, start, prices)
    priced = optimal(needed, start, prices, Limits(lateness=1e9))
    assert shortfall(needed, priced, start).sum() == shortfall(needed, strict, start).sum()
    assert prices.cost(priced, start) == pytest.approx(prices.cost(strict, start))  # several may cost the same


@given(timetable=needs, careful=needs, start=starts)
def test_what_is_held_was_there_and_may_be_needed(timetable, careful, start):
    careful = (careful * 30)[: len(timetable) + 1]
    found = held(timetable, careful, start)
    before = np.concatenate(([start], found[:-1]))
    assert (found >= timetable).all()
    more = found > timetable
    assert (found <= before)[more].all()
    assert (found <= careful[1:])[more].all()
    assert (found >= np.minimum(before, careful[1:])).all()


@given(prices=all_prices, lateness=st.one_of(st.none(), amounts), more=amounts)
def test_a_higher_price_on_lateness_never_lowers_the_level(prices, lateness, more):
    level = prices.level(lateness)
    assert level is None or 0.5 < level < 1
    if lateness is not None and level is not None:
        assert prices.level(min(lateness + more, MOST_PRICE)) >= level
