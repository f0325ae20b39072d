"""A price on state that moves: the share that a change moves, the optimum, and policies that change less often."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.planning.planners import cba, improved, optimal, spea
from penstock.policy.planning.timetable import MOST_DELAY, MOST_PRICE, Prices
from penstock.policy.registry import make_policy
from penstock.state.owners import first_owners, reassigned
from penstock.testing.loads import load, snapshot

from .timetables import (
    ROUNDING,
    at_most,
    check_cheapest_with_lateness,
    check_cheapest_within_bounds,
    prices_of_lateness,
    small_needs,
    two_bounds,
    whole_prices,
)

MOVING_ONLY = {"replica": 0, "up": 0, "down": 0, "route": 0, "moving": 1}
priced = st.builds(Prices, **whole_prices, moving=st.sampled_from([1, 6, 12, 24, 60]))


def moved_share(groups: int, before: int, after: int) -> float:
    owners = first_owners(groups, range(before))
    then = reassigned(owners, range(after))
    return sum(one != other for one, other in zip(owners, then, strict=True)) / groups


@pytest.mark.parametrize("before", range(1, 9))
@pytest.mark.parametrize("after", range(1, 9))
def test_the_share_that_moves_is_that_of_the_key_groups(before, after):
    """840 groups can be shared out evenly among 1 to 8 replicas."""
    assert Prices(**MOVING_ONLY).cost([after], before) == pytest.approx(moved_share(840, before, after))


@given(st.integers(1, 64), st.integers(1, 64))
def test_where_groups_cannot_be_shared_out_evenly_it_is_off_by_less_than_one_for_each_replica(before, after):
    found = Prices(**MOVING_ONLY).cost([after], before)
    assert abs(found - moved_share(128, before, after)) <= abs(after - before) / 128 + ROUNDING


@given(needed=small_needs, start=st.integers(0, 5), prices=priced, bounds=two_bounds)
@settings(max_examples=60)
def test_no_timetable_within_the_bounds_is_cheaper(needed, start, prices, bounds):
    check_cheapest_within_bounds(needed, start, prices, bounds)


@given(
    needed=small_needs,
    start=st.integers(0, 4),
    prices=priced,
    delay=st.integers(0, MOST_DELAY),
    lateness=prices_of_lateness,
)
@settings(max_examples=60)
def test_with_a_price_on_lateness_no_timetable_costs_less_in_all(needed, start, prices, delay, lateness):
    check_cheapest_with_lateness(needed, start, prices, delay, lateness)


@given(needed=st.lists(st.integers(1, 30), min_size=2, max_size=30), start=st.integers(1, 40), prices=priced)
def test_cba_lies_between_spea_and_the_optimum_and_has_nothing_left_to_improve(needed, start, prices):
    best, found, plain = (one for one in (optimal(needed, start, prices), cba(needed, start, prices), spea(needed)))
    assert at_most(prices.cost(best, start), prices.cost(found, start))
    assert at_most(prices.cost(found, start), prices.cost(plain, start))
    assert improved(found, start, prices).tolist() == found.tolist()


def planned(spec: str, state_bytes: int):
    """4 replicas run of which 1 is needed, until 4 are needed again."""
    seen = snapshot({"in": 10}, [load("a", {"in": 10}, execution_time_s=0.1, replicas=4, state_bytes=state_bytes)])
    return make_policy(spec).plan(seen, Forecast("drift", {"a": (10.0, 10.0, 10.0, 10.0, 40.0)}))


@pytest.mark.parametrize(("policy", "follows"), [("cba", (1, 1, 1, 4, 4)), ("optimal", (1, 1, 1, 1, 4))])
def test_much_state_is_kept_where_it_is(policy, follows):
    """To move 3/4 of 100 MB there and back costs 150 · price; to keep 3 replicas for 3 or 4 intervals up to 96,000."""
    assert planned(f"{policy}:5", 100_000_000).timetables["a"] == follows  # off unless asked for
    assert planned(f"{policy}:5,move=500", 0).timetables["a"] == follows
    assert planned(f"{policy}:5,move=500", 1_000_000).timetables["a"] == follows
    stays = planned(f"{policy}:5,move=500", 100_000_000)
    assert stays.timetables["a"] == (4, 4, 4, 4, 4)
    assert "keeps 4 through the dip (saves" in stays.targets["a"].reason


@pytest.mark.parametrize("policy", ["cba", "optimal"])
def test_the_price_is_checked_before_anything_is_planned(policy):
    with pytest.raises(InputError, match="prices: move must be a number from 0"):
        make_policy(f"{policy}:move=-1")


def test_a_great_deal_of_state_stays_countable():
    assert Prices().with_state(1e12, 10**15).moving == MOST_PRICE
    assert Prices().with_state(0.0, 10**15) == Prices()
