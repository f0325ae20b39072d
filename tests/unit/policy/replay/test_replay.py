from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.parts.skew import uneven_need
from penstock.policy.replay.replay import COPIED, Copy, Replay, copied, late_if_pulled, late_share
from penstock.testing.loads import load, snapshot


def copy_of(*work_s, pool=64.0, hot=0.0):
    return Copy(np.array(work_s), np.full(len(work_s), pool), np.full(len(work_s), hot), sum(work_s))


def played(sizes, rates, copy=None, *, slack_s=1.0):
    """One rule for each size, under the same rates, a second each; a replica does one event a second."""
    copy, replay = copy or copy_of(1.0, pool=1e4), Replay(len(sizes))
    for rate in rates:
        replay.decide(copy, np.array(sizes, dtype=float), 1.0)
        replay.play(rate, 1.0, slack_s)
    return replay


class TestCopy:
    def test_the_slowest_operator_is_the_capacity(self):
        replicas, capacity = copy_of(0.01, 0.03).sized(np.array([100.0]))
        assert (replicas.tolist(), capacity.tolist()) == ([4.0], pytest.approx([100.0]))

    def test_a_pool_bounds_both(self):
        replicas, capacity = copy_of(0.1, pool=4.0).sized(np.array([1000.0]))
        assert (replicas.tolist(), capacity.tolist()) == ([4.0], pytest.approx([40.0]))

    def test_a_hot_part_takes_more_replicas_and_bounds_the_capacity(self):
        copy = copy_of(0.02, hot=0.1)
        replicas, capacity = copy.sized(np.array([200.0, 600.0]))
        assert replicas.tolist() == [6.0, 24.0]  # instead of 4 and 12
        assert capacity.tolist() == pytest.approx([1 / (0.02 * (0.1 + 0.9 / 6)), 1 / (0.02 * (0.1 + 0.9 / 24))])

    @given(st.floats(0, 400), st.floats(0, 1))
    def test_sizes_uneven_keys_as_the_plan_does(self, rate, hot):
        replicas, _ = copy_of(0.02, pool=1e6, hot=hot).sized(np.array([rate]))
        assert replicas[0] == pytest.approx(max(1, math.ceil(uneven_need(0.02 * rate, hot) - 1e-9)), abs=1)

    def test_of_a_topology_it_has_what_each_event_costs_and_the_longest_way(self):
        loads = [
            load("a", {"in": 100}, execution_time_s=0.01),
            load("b", {"a": 50}, execution_time_s=0.2),
            load("c", {"a": 50}, execution_time_s=0.02),
            load("d", {"b": 5, "c": 5}),
        ]
        shares = {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.1}
        copy = copied(snapshot({"in": 100}, loads), shares, {"c": 0.3})
        assert copy.work_s.tolist() == pytest.approx([0.1, 0.01, 0.01])
        assert sorted(copy.hot.tolist()) == [0, 0, 0.3]
        assert copy.through_s == pytest.approx(0.21)

    def test_without_an_execution_time_there_is_none(self):
        assert copied(snapshot({"in": 1}, [load("a", {"in": 1})]), {"a": 1.0}, {}) is None

    def test_of_very_many_operators_it_has_those_with_most_to_do(self):
        loads = [load(f"o{n}", {"in": 1}, execution_time_s=0.001 * (1 + n % 500)) for n in range(1000)]
        copy = copied(snapshot({"in": 1}, loads), {one.name: 1.0 for one in loads}, {})
        assert len(copy.work_s) == COPIED
        assert copy.work_s.max() == pytest.approx(0.5)

    def test_what_may_be_waited_for_is_the_target_without_the_way(self):
        assert copy_of(0.2).slack_s(2.0) == pytest.approx(2.0 - 0.3 - 0.05)
        assert copy_of(5.0).slack_s(2.0) == pytest.approx(0.2)


class TestPulled:
    def test_the_copy_knows_what_part_of_the_work_waits_for_any_replica(self):
        loads = [
            load("a", {"in": 100}, execution_time_s=0.03, pulled=True),
            load("b", {"a": 100}, execution_time_s=0.01, keyed=True),
        ]
        assert copied(snapshot({"in": 100}, loads), {"a": 1.0, "b": 1.0}, {}).pulled == pytest.approx(0.75)

    def test_what_is_left_is_done_by_those_that_are_added(self):
        """A second at five times the rate, and 1.5 s to wait: in their queues 62 of 100 wait for longer."""
        bound, pulled = (Replay(1) for _ in range(2))
        for replay, part in ((bound, 0.0), (pulled, 1.0)):
            for rate in (100.0, 20.0):
                replay.decide(copy_of(0.05), np.array([20.0]), 1.0)
                replay.play(rate, 1.0, 1.5, part)
        assert bound._late[0] == pytest.approx(62.5, rel=0.001)
        assert pulled._late[0] == 0

    @given(st.floats(0, 300), st.floats(1, 500), st.floats(0, 500), st.floats(0.5, 5))
    def test_with_the_same_capacity_it_is_as_late_as_in_a_queue(self, queued, capacity, rate, slack_s):
        given = np.array([queued]), np.array([capacity]), rate, 1.0
        exact, points = late_share(*given, slack_s), late_if_pulled(*given, np.array([capacity]), slack_s)
        assert points[0] == pytest.approx(exact[0], abs=0.101)


class TestLateShare:
    @pytest.mark.parametrize(
        ("queued", "capacity", "rate", "late"),
        [
            (0.0, 100.0, 100.0, 0.0),  # just enough
            (0.0, 50.0, 100.0, 0.5),  # waits 1 s after one of two seconds
            (150.0, 100.0, 50.0, 0.5),  # waits 1 s again after one second
            (150.0, 100.0, 100.0, 1.0),  # 1.5 s all the time
            (50.0, 100.0, 100.0, 0.0),
            (300.0, 100.0, 0.0, 1.0),
        ],
    )
    def test_by_hand(self, queued, capacity, rate, late):
        found = late_share(np.array([queued]), np.array([capacity]), rate, 2.0, 1.0)
        assert found.tolist() == pytest.approx([late])

    @given(st.floats(0, 500), st.floats(1, 500), st.floats(0, 500), st.floats(0.2, 60), st.floats(0.1, 5))
    def test_is_what_many_points_of_the_interval_say(self, queued, capacity, rate, length_s, slack_s):
        found = late_share(np.array([queued]), np.array([capacity]), rate, length_s, slack_s)[0]
        points = (np.arange(2000) + 0.5) / 2000 * length_s
        waits = np.maximum(0.0, queued + (rate - capacity) * points) / capacity
        assert found == pytest.approx((waits > slack_s).mean(), abs=2e-3)


class TestReplay:
    def test_the_cheapest_that_keeps_the_promise(self):
        """Steady at 100: with a size of 50 there is always half a second's work waiting."""
        assert played([50, 100, 150], [100.0] * 60, slack_s=0.4).choose(0.01).rule == 1

    def test_a_burst_that_is_too_much_for_the_cheap_one(self):
        replay = played([100, 300], [100.0] * 30 + [300.0] * 3 + [100.0] * 30)
        verdict = replay.choose(0.01)
        assert (verdict.rule, verdict.kept) == (1, True)
        assert verdict.first_late == pytest.approx(0.5 * 300 / 6900, rel=0.01)  # half a second
        assert verdict.first_saves == pytest.approx(1 - replay._cost[0] / replay._cost[1])
        assert replay.choose(0.5).rule == 0

    def test_where_none_keeps_it_the_least_late_counts(self):
        verdict = played([10, 20, 40], [100.0] * 60, slack_s=0.7).choose(0.005)
        assert (verdict.rule, verdict.kept) == (2, False)

    def test_it_stays_where_it_is_nearly_as_cheap(self):
        """With 100 replicas or 101, one in a hundred is no reason to change."""
        replay = played([101, 100], [99.5] * 60)
        assert replay.choose(0.01).rule == 0
        replay = played([104, 100], [99.5] * 60)
        assert replay.choose(0.01).rule == 1

    def test_old_bursts_fade(self):
        replay = played([100, 300], [300.0] * 5 + [100.0] * 5)
        assert replay.choose(0.01).rule == 1
        for _ in range(600):
            replay.play(100.0, 60.0, 1.0)
        assert replay.choose(0.01).rule == 0

    def test_to_begin_anew_forgets_what_waits(self):
        replay = played([50], [150.0] * 10, copy_of(1.0, pool=100.0))
        assert replay._queued[0] == 550
        replay.begin_anew(0.2)
        assert replay._queued[0] == 0
        assert replay._events == pytest.approx(300, rel=0.01)

    @given(st.lists(st.floats(0, 1000), min_size=1, max_size=30))
    def test_more_room_is_never_later_and_never_cheaper(self, rates):
        replay = played([100, 200, 400, 800], rates)
        assert (np.diff(replay._late) <= 1e-9).all()
        replay.decide(copy_of(1.0, pool=1e4), np.array([100.0, 200.0, 400.0, 800.0]), 1.0)
        assert (np.diff(replay._replicas) >= 0).all() or replay._queued.any()
