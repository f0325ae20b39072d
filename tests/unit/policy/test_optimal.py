from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.optimal import Optimal
from penstock.policy.registry import make_policy
from penstock.testing.loads import load, snapshot


def planned(policy, rates, replicas=1, **more):
    """The plan for one operator of 100 ms, so that 10 events a second take a replica."""
    seen = snapshot({"in": 10}, [load("a", {"in": 10}, execution_time_s=0.1, replicas=replicas, **more)])
    return policy.plan(seen, Forecast("drift", {"a": tuple(map(float, rates))}))


def test_follows_the_need_where_nothing_else_pays():
    plan = planned(Optimal(horizon=4), (10, 30, 30, 20))
    assert plan.timetables["a"] == (1, 3, 3, 2)
    assert plan.targets["a"].reason.endswith("needs 1 (1 to 3 in that time)")


def test_keeps_replicas_through_a_dip_that_cba_would_not_see():
    """SPEA, and so CBA, has the 4 one interval earlier anyway; the optimum weighs the whole dip of two intervals."""
    plan = planned(make_policy("optimal:3,replica=4000"), (10, 10, 40), replicas=4)
    assert plan.timetables["a"] == (4, 4, 4)
    assert plan.targets["a"].reason.endswith("keeps 4 through the dip (saves 6,200)")


def test_a_change_that_is_put_off():
    """To stop one replica for the last interval costs more than to let it run."""
    plan = planned(Optimal(horizon=1, replica=4000), (10,), replicas=2)
    assert plan.timetables["a"] == (2,)
    assert plan.targets["a"].reason.endswith("needs 1; keeps 2 for longer (saves 1,100)")


def test_with_a_delay_it_orders_in_time():
    plan = planned(Optimal(horizon=4, delay=2), (10, 10, 10, 40))
    assert plan.timetables["a"] == (1, 4, 4, 4)
    assert "saves" not in plan.targets["a"].reason


def test_short_where_that_is_cheaper():
    """One replica's work of the first interval is done in the second."""
    plan = planned(Optimal(horizon=2, lateness=10_000), (30, 10))
    assert plan.timetables["a"] == (2, 2)
    assert plan.targets["a"].reason.endswith("needs 3 (1 to 3 in that time); takes 2, 1 short (saves 5,100)")


def test_what_the_pool_cannot_do_is_planned_for_later():
    assert planned(Optimal(horizon=4), (90, 10, 10, 10), pool=4).timetables["a"] == (4, 4, 3, 1)


def test_lateness_counts_what_the_pool_can_give():
    plan = planned(Optimal(horizon=2, lateness=1e6), (90, 90), pool=4)
    assert plan.timetables["a"] == (4, 4)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"delay": -1}, "policy 'optimal': delay must be whole and at least 0; got -1"),
        ({"delay": 3, "lateness": 1}, "limits: delay must be at most 2 where lateness has a price; got 3"),
        ({"lateness": "high"}, "prices: lateness must be a number from 0 to 1e\\+12; got 'high'"),
        ({"up": -1}, "prices: up must be a number from 0"),
    ],
)
def test_options_that_cannot_be(option, message):
    with pytest.raises(InputError, match=message):
        Optimal(**option)
