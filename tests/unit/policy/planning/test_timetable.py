from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.policy.planning.timetable import MOST_PRICE, Prices

PAPER = Prices()


@pytest.mark.parametrize(
    ("timetable", "start", "expected"),
    [
        ([], 3, 0),
        ([3, 3, 3], 3, 9 * 8000),  # nothing changes
        ([4], 3, 4 * 8000 + 5000 + 100),  # the first change is charged too
        ([2], 3, 2 * 8000 + 5000 + 100),
        ([1, 4, 4, 2], 1, 11 * 8000 + 3 * 5000 + 2 * 5000 + 2 * 100),
    ],
)
def test_the_papers_prices_by_hand(timetable, start, expected):
    assert PAPER.cost(timetable, start) == expected


def test_up_and_down_are_not_mixed_up():
    assert Prices(replica=0, up=7, down=0, route=0).cost([3, 1], start=1) == 14
    assert Prices(replica=0, up=0, down=7, route=0).cost([3, 1], start=0) == 14
    assert Prices(replica=0, up=0, down=0, route=7).cost([3, 1, 1], start=0) == 14


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 50))
def test_there_and_back_costs_the_same_both_ways_where_up_is_down(timetable, start):
    """Played backwards, rises become falls: with equal prices for both, the changes cost the same."""
    prices = Prices(replica=0, up=3, down=3, route=2)
    there = [start, *timetable]
    back = there[::-1]
    assert prices.cost(there[1:], there[0]) == prices.cost(back[1:], back[0])


@pytest.mark.parametrize("name", ["replica", "up", "down", "route"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "8000", True, None, 2 * MOST_PRICE])
def test_a_price_is_a_number_of_at_least_0(name, value):
    with pytest.raises(InputError, match=rf"prices: {name} must be a number from 0 to 1e\+12; got {value!r}"):
        Prices(**{name: value})
