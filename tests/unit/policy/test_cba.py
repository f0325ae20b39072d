from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.cba import Cba
from penstock.policy.planning.planners import cba
from penstock.policy.planning.timetable import Prices
from penstock.policy.registry import make_policy
from penstock.testing.loads import load, snapshot


def planned(policy, rates, replicas=1, last=10):
    """The plan for one operator of 100 ms, so that 10 events a second take a replica."""
    seen = snapshot({"in": last}, [load("a", {"in": last}, execution_time_s=0.1, replicas=replicas)])
    return policy.plan(seen, Forecast("drift", {"a": tuple(map(float, rates))}))


def test_keeps_replicas_through_a_dip():
    """4 run, SPEA takes 1 4 4: to keep 3 for one interval costs 24,000, to start and stop them 30,200."""
    plan = planned(Cba(horizon=3), (10, 10, 40), replicas=4)
    assert plan.timetables["a"] == (4, 4, 4)
    assert plan.targets["a"].reason.endswith("needs 1 (1 to 4 in that time); keeps 4 through the dip (saves 6,200)")


def test_a_long_dip_does_not_pay():
    plan = planned(Cba(horizon=5), (10, 10, 10, 10, 40), replicas=4)
    assert plan.timetables["a"] == (1, 1, 1, 4, 4)
    assert plan.targets["a"].reason.endswith("needs 1 (1 to 4 in that time)")


def test_cheaper_replicas_are_kept_longer():
    plan = planned(make_policy("cba:5,replica=1000"), (10, 10, 10, 10, 40), replicas=4)
    assert plan.timetables["a"] == (4, 4, 4, 4, 4)
    assert plan.targets["a"].reason.endswith("keeps 4 through the dip (saves 21,200)")


def test_a_dip_further_ahead_is_told_too():
    plan = planned(Cba(horizon=5), (40, 40, 10, 10, 40), replicas=4)
    assert plan.timetables["a"] == (4, 4, 4, 4, 4)
    assert plan.targets["a"].reason.endswith(
        "needs 4 (1 to 4 in that time); in 3 intervals keeps 4 through the dip (saves 6,200)"
    )


def test_joined_changes():
    plan = planned(Cba(horizon=3, replica=1, up=0, down=0, route=5), (20, 20, 30))
    assert plan.timetables["a"] == (3, 3, 3)
    assert plan.targets["a"].reason.endswith("takes 3 early (saves 4)")


def test_plans_as_the_planner_does():
    rates = (30, 10, 60, 60, 20, 20, 20, 50)
    prices = Prices(replica=3, up=4, down=2, route=7)
    plan = planned(Cba(horizon=8, replica=3, up=4, down=2, route=7), rates, replicas=2)
    assert plan.timetables["a"] == tuple(cba([1, 3, 1, 6, 6, 2, 2, 2, 5], 2, prices))


def test_prices_are_checked():
    with pytest.raises(InputError, match="prices: route must be a number from 0"):
        Cba(route=-1)


class TestWhatMayComeBack:
    def planned(self, policy, high, replicas=5):
        """20/s are expected for three intervals; `high` is what is seldom exceeded."""
        seen = snapshot({"in": 50}, [load("a", {"in": 50}, execution_time_s=0.1, replicas=replicas)])
        return policy.plan(seen, Forecast("auto", {"a": (20.0,) * 3}, high={"a": tuple(map(float, high))}))

    def test_what_runs_goes_only_where_the_high_load_does_without_it(self):
        plan = self.planned(Cba(horizon=3), (40, 30, 30))
        assert plan.timetables["a"] == (4, 3, 3)
        assert plan.targets["a"].replicas == 4
        assert plan.targets["a"].reason.endswith("needs 2; keeps 4, as 40/s may come")

    def test_nothing_is_started_for_it(self):
        plan = self.planned(Cba(horizon=3), (90, 90, 90), replicas=2)
        assert plan.timetables["a"] == (2, 2, 2)
        assert plan.targets["a"].reason.endswith("needs 2")

    def test_no_more_is_kept_than_the_pool_has(self):
        seen = snapshot({"in": 50}, [load("a", {"in": 50}, execution_time_s=0.1, replicas=3, pool=3)])
        plan = Cba(horizon=1).plan(seen, Forecast("auto", {"a": (10.0,)}, high={"a": (900.0,)}))
        assert plan.timetables["a"] == (3,)

    def test_through_the_sources_where_those_are_forecast(self):
        seen = snapshot({"in": 50}, [load("a", {"in": 50}, execution_time_s=0.1, replicas=5)])
        comes = Forecast("auto", {"in": (20.0,), "a": (50.0,)}, high={"in": (30.0,)})
        assert Cba(horizon=1, predict="sources").plan(seen, comes).timetables["a"] == (3,)

    @pytest.mark.parametrize(
        ("options", "level"),
        [
            ({}, 1 - 8000 / 46_600),
            ({"lateness": 29_800}, 0.8),
            ({"lateness": 0}, None),
            ({"replica": 0}, 0.99),
            ({"replica": 0, "up": 0, "down": 0, "route": 0}, None),
        ],
    )
    def test_its_level_follows_from_its_prices(self, options, level):
        assert Cba(**options).level == (pytest.approx(level) if level else None)

    def test_the_price_of_lateness_is_checked(self):
        with pytest.raises(InputError, match="prices: lateness must be a number from 0"):
            make_policy("cba:lateness=-5")
