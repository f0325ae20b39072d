from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.base import PlansAhead
from penstock.policy.registry import make_policy
from penstock.policy.srea import Srea
from penstock.testing.loads import load, snapshot


def test_the_last_input_of_each_operator_counts_whatever_enters():
    loads = [load("a", {"in": 100}, execution_time_s=0.025), load("b", {"a": 40}, execution_time_s=0.1)]
    plan = Srea().plan(snapshot({"in": 900}, loads))
    assert plan.replicas == {"a": 3, "b": 4}
    assert plan.timetables == {"a": (3,), "b": (4,)}


def test_rates_are_per_second_of_the_measured_interval_and_backlog_per_planned_one():
    """30 s measured, 10 s planned: 600 / 30 = 20/s came, 100 / 10 = 10/s wait, of 100 ms each."""
    loads = [load("a", {"in": 600}, backlog=100, execution_time_s=0.1)]
    plan = Srea().plan(snapshot({"in": 600}, loads, interval_s=30.0, td_s=10.0))
    assert plan.replicas == {"a": 3}
    assert plan.targets["a"].expected == pytest.approx(300)


def test_the_backlog_can_be_worked_off_over_several_intervals():
    loads = [load("a", {"in": 10}, backlog=40, execution_time_s=0.1)]
    assert Srea().plan(snapshot({"in": 10}, loads)).replicas == {"a": 5}
    assert Srea(catch_up=4).plan(snapshot({"in": 10}, loads)).replicas == {"a": 2}


def test_headroom():
    loads = [load("a", {"in": 70}, execution_time_s=0.1)]
    assert Srea().plan(snapshot({"in": 70}, loads)).replicas == {"a": 7}
    assert Srea(utilisation=0.7).plan(snapshot({"in": 70}, loads)).replicas == {"a": 10}


def test_the_pool_is_the_bound_and_is_said():
    plan = Srea().plan(snapshot({"in": 100}, [load("a", {"in": 100}, execution_time_s=0.1, pool=4)]))
    assert plan.replicas == {"a": 4}
    assert plan.targets["a"].reason == "100/s came, of 100 ms each: needs 4, 10 without the pool's bound of 4"


def test_it_needs_no_forecaster():
    assert not isinstance(Srea(), PlansAhead)
    seen = snapshot({"in": 10}, [load("a", {"in": 10}, execution_time_s=0.1)])
    assert Srea().plan(seen, Forecast("drift", {"a": (900.0,)})) == Srea().plan(seen)


def test_options():
    assert repr(make_policy("srea:catch_up=2,utilisation=0.8")) == "Srea(catch_up=2, utilisation=0.8)"
    with pytest.raises(InputError, match="policy 'srea': catch_up must be whole and at least 1; got 0"):
        Srea(catch_up=0)
    with pytest.raises(InputError, match="policy 'srea': utilisation must be above 0 and at most 1; got 2"):
        Srea(utilisation=2)
