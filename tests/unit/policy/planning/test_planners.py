"""Worked examples of every planner; needed[0] is the epoch that just ended, start the replicas that run."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.policy.planning.planners import cba, improved, optimal, shortfall, spea, srea
from penstock.policy.planning.timetable import Limits, Prices


def prices(replica=1, up=0, down=0, route=0):
    return Prices(replica=replica, up=up, down=down, route=route)


class TestTheBaselines:
    def test_srea_knows_the_current_load_only(self):
        assert srea([3, 9, 1, 9]).tolist() == [3, 3, 3]

    def test_spea_serves_the_epoch_and_the_next(self):
        assert spea([9, 1, 4, 2, 2, 5]).tolist() == [4, 4, 2, 5, 5]

    def test_spea_of_a_single_epoch(self):
        assert spea([9, 4]).tolist() == [4]


class TestStep2JoinsChanges:
    """To join two changes spares one re-routing, and costs the replicas that run one epoch longer."""

    def test_an_increase_goes_one_epoch_earlier_where_another_change_stands(self):
        assert improved([2, 3, 3], 1, prices(route=5)).tolist() == [3, 3, 3]

    def test_not_where_the_replicas_cost_more_than_the_re_routing(self):
        assert improved([2, 9, 9], 1, prices(route=5)).tolist() == [2, 9, 9]

    def test_not_where_no_other_change_stands_there(self):
        assert improved([1, 1, 3], 1, prices(route=5)).tolist() == [1, 1, 3]

    def test_a_decrease_goes_one_epoch_later_where_another_change_stands(self):
        assert improved([3, 2, 1, 1], 3, prices(route=5)).tolist() == [3, 3, 1, 1]

    def test_not_where_it_costs_more(self):
        assert improved([9, 2, 1, 1], 9, prices(route=5)).tolist() == [9, 2, 1, 1]

    def test_a_staircase_is_joined_step_by_step(self):
        """2 3 4 from 1: the 4 joins the 3, then both join the 2; each move is weighed by itself."""
        assert improved([2, 3, 4], 1, prices(route=5)).tolist() == [4, 4, 4]
        assert improved([2, 3, 4], 1, prices(replica=3, route=5)).tolist() == [2, 4, 4]
        assert improved([3, 2, 1], 4, prices(route=5)).tolist() == [4, 4, 1]

    def test_an_equal_price_moves_nothing(self):
        assert improved([2, 7, 7], 1, prices(route=5)).tolist() == [2, 7, 7]


class TestStep3KeepsThroughDips:
    """A dip of 3 replicas for 2 epochs: to keep them costs 6 p and spares 3 starts, 3 stops and 2 re-routings."""

    DIP = (4, 1, 1, 4)

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (prices(replica=1, up=1, down=1, route=0), [4, 1, 1, 4]),  # 6 against 6: it stays
            (prices(replica=1, up=1, down=1, route=0.01), [4, 4, 4, 4]),  # 6 against 6.02: both re-routings count
            (prices(replica=1, up=2, down=0.5, route=0), [4, 4, 4, 4]),
            (prices(replica=1, up=0.5, down=0.5, route=1), [4, 1, 1, 4]),
            (prices(replica=8000, up=5000, down=5000, route=100), [4, 1, 1, 4]),  # 48,000 against 30,200
        ],
    )
    def test_where_it_is_cheaper(self, given, expected):
        assert improved(self.DIP, 4, given).tolist() == expected

    def test_with_the_papers_prices_a_dip_of_one_epoch_is_kept(self):
        assert improved([4, 1, 4], 4, Prices()).tolist() == [4, 4, 4]

    def test_only_what_both_have_in_common_is_kept(self):
        assert improved([6, 1, 3], 6, Prices()).tolist() == [6, 3, 3]
        assert improved([3, 1, 6], 3, Prices()).tolist() == [3, 3, 6]
        assert improved([6, 1, 1, 3], 6, prices(up=2, down=2)).tolist() == [6, 3, 3, 3]
        assert improved([3, 1, 1, 6], 3, prices(up=2, down=2)).tolist() == [3, 3, 3, 6]

    def test_a_dip_below_the_running_number_begins_with_the_timetable(self):
        assert improved([1, 4], 4, Prices()).tolist() == [4, 4]

    def test_a_dip_inside_a_dip(self):
        """5 2 1 5: first the lower one is filled, or the whole at once; what counts is that nothing is left to gain."""
        assert improved([5, 2, 1, 5], 5, prices(replica=1, up=5, down=5)).tolist() == [5, 5, 5, 5]

    def test_a_bump_in_a_dip_does_not_grow(self):
        """5 1 5 1 5 with a cheap replica: the valleys are filled, the bump stays at 5."""
        assert improved([5, 1, 5, 1, 5], 5, prices(replica=1, up=5, down=5)).tolist() == [5] * 5


class TestCba:
    def test_the_three_steps_together(self):
        """SPEA has 3 6 6 2 5 5. The dip to 2 lasts one epoch: to keep 5 costs 3 · 8,000, and spares 3 · 10,000 + 100.

        To bring the increase to 6 forward would cost 3 · 8,000 for a re-routing of 100.
        """
        needed = [3, 3, 3, 6, 2, 2, 5]
        assert spea(needed).tolist() == [3, 6, 6, 2, 5, 5]
        planned = cba(needed, 3, Prices())
        assert planned.tolist() == [3, 6, 6, 5, 5, 5]
        saved = Prices().cost(spea(needed), 3) - Prices().cost(planned, 3)
        assert saved == 3 * 10_000 + 100 - 3 * 8_000

    def test_free_replicas_are_never_stopped_between(self):
        assert cba([1, 7, 1, 1, 3], 1, prices(replica=0, up=1, down=1)).tolist() == [7, 3, 3, 3]


class TestOptimal:
    def test_follows_the_need_where_changes_are_free(self):
        assert optimal([1, 3, 1, 5, 2], 1, prices()).tolist() == [3, 1, 5, 2]

    def test_keeps_the_peak_where_replicas_are_free(self):
        assert optimal([1, 3, 1, 5, 2], 1, prices(replica=0, up=1, down=1)).tolist() == [3, 3, 5, 5]

    def test_one_change_instead_of_three(self):
        """2 3 4 5 from 1: to 5 at once runs 6 more and spares three changes; to 3 and then 5 runs 2 more for two."""
        assert optimal([1, 2, 3, 4, 5], 1, prices(route=5)).tolist() == [5, 5, 5, 5]  # 25, 26 in two
        assert optimal([1, 2, 3, 4, 5], 1, prices(route=3)).tolist() == [3, 3, 5, 5]  # 22, 23 at once
        assert optimal([1, 2, 3, 4, 5], 1, prices(route=0.5)).tolist() == [2, 3, 4, 5]  # 16, 17 in two

    def test_it_stays_where_nothing_is_gained(self):
        assert optimal([4, 4, 3, 4], 4, prices(replica=2, up=1, down=1)).tolist() == [4, 4, 4]

    def test_what_the_pool_cannot_do_is_done_in_the_next_epochs(self):
        """9 with a pool of 4 leave 5 to the next epoch; it was forgotten, and two replicas were planned there."""
        assert optimal([1, 9, 2, 1, 1], 1, Prices(), Limits(most=4)).tolist() == [4, 4, 4, 1]
        assert shortfall([1, 9, 2, 1, 1], [4, 4, 4, 1], 1).tolist() == [5, 3, 0, 0]

    def test_at_least(self):
        assert optimal([0, 0, 0], 0, Prices(), Limits(least=2)).tolist() == [2, 2]
        assert optimal([0, 0, 0], 0, Prices(), Limits(least=0)).tolist() == [0, 0]

    def test_a_start_outside_of_the_bounds_is_left_at_once(self):
        assert optimal([1, 1, 1], 9, prices(down=100), Limits(most=4)).tolist() == [4, 4]
        assert optimal([1, 1, 1], 0, prices(up=100), Limits(least=2)).tolist() == [2, 2]

    def test_with_a_delay_it_orders_earlier(self):
        assert optimal([1, 1, 1, 1, 4], 1, Prices(), Limits(delay=2)).tolist() == [1, 4, 4, 4]

    def test_what_cannot_be_there_in_time_is_done_as_soon_as_it_can(self):
        """7 of 9 are short in the first epoch, and needed in the second."""
        planned = optimal([2, 9, 2, 2], 2, Prices(), Limits(delay=1))
        assert planned.tolist() == [9, 9, 2]
        assert shortfall([2, 9, 2, 2], planned, 2, delay=1).tolist() == [7, 0, 0]

    def test_a_decrease_within_the_delay_would_make_it_later(self):
        """4 run and work; to stop one and start it again would leave 3 in the second epoch."""
        assert optimal([4, 3, 4, 4], 4, Prices(), Limits(delay=1)).tolist() == [4, 4, 4]

    def test_a_delay_beyond_the_horizon_keeps_what_is_needed(self):
        assert optimal([5, 3, 9, 1], 5, Prices(), Limits(delay=9)).tolist() == [5, 5, 5]  # 4 are left to the last
        assert optimal([5, 3, 5, 1], 5, Prices(), Limits(delay=9)).tolist() == [5, 5, 1]

    @pytest.mark.parametrize(
        ("lateness", "expected"),
        [(15_101, [1, 3, 1]), (15_099, [1, 2, 2]), (7_034, [1, 2, 2]), (7_033, [1, 1, 1]), (0, [1, 1, 1])],
    )
    def test_short_where_that_is_cheaper(self, lateness, expected):
        """In time it takes 2 · (8,000 + 5,000 + 5,000) and two re-routings, 36,200; one epoch late 21,100 and L.

        Never takes 4 L, as what is short in one epoch is short in the next.
        """
        assert optimal([1, 1, 3, 1], 1, Prices(), Limits(lateness=lateness)).tolist() == expected


def test_a_large_pool_takes_no_longer():
    planned = optimal([1, 1_000_000, 3, 70_000], 1, Prices(), Limits(most=600_000))
    assert planned.tolist() == [600_000, 400_003, 70_000]
    late = optimal([1, 1_000_000, 3, 70_000], 1, Prices(), Limits(most=600_000, delay=2, lateness=1e6))
    assert late.tolist() == [600_000, 600_000, 600_000]


@pytest.mark.parametrize("plan", [srea, spea, lambda needed: cba(needed, 1, Prices())])
@pytest.mark.parametrize(
    ("needed", "message"),
    [
        ([1], "needed must have epoch 0 and at least one more; got 1"),
        ([], "needed must have epoch 0 and at least one more; got 0"),
        ([1, -1], "replicas must be from 0 to 1,000,000; got -1"),
        ([1, 2_000_000], "replicas must be from 0 to 1,000,000; got 2000000"),
        ([1.0, 2.5], r"replicas must be whole numbers in one row; got \[1.0, 2.5\]"),
        (np.ones((2, 2), np.int64), "replicas must be whole numbers in one row"),
    ],
)
def test_needs_that_cannot_be(plan, needed, message):
    with pytest.raises(InputError, match=f"planner: {message}"):
        plan(needed)


@pytest.mark.parametrize("start", [-1, 1.5, True, 2_000_000])
def test_a_start_that_cannot_be(start):
    for plan in (cba, optimal):
        with pytest.raises(InputError, match=f"planner: start must be whole, from 0 to 1,000,000; got {start}"):
            plan([1, 1], start, Prices())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least": -1}, "limits: least must be whole and at least 0; got -1"),
        ({"least": 3, "most": 2}, "limits: most must be whole and at least 3; got 2"),
        ({"delay": 1.5}, "limits: delay must be whole and at least 0; got 1.5"),
        ({"lateness": -1}, "prices: lateness must be a number from 0"),
        ({"lateness": 1, "delay": 3}, "limits: delay must be at most 2 where lateness has a price; got 3"),
    ],
)
def test_limits_that_cannot_be(given, message):
    with pytest.raises(InputError, match=message):
        Limits(**given)
