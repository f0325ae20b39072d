"""SPEA, and what all policies that plan ahead have in common."""

from __future__ import annotations

import math

import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.policy.base import PlansAhead
from penstock.policy.cba import Cba
from penstock.policy.optimal import Optimal
from penstock.policy.registry import make_policy
from penstock.policy.spea import Spea
from penstock.testing.loads import load, snapshot

PLANNING = [Spea, Cba, Optimal]


def chain(**more):
    """10 events a second enter, a lets half of them through; 100 ms each."""
    return [
        load("a", {"in": 10}, execution_time_s=0.1, **more),
        load("b", {"a": 5}, execution_time_s=0.1),
    ]


def of(*rates, **more):
    return Forecast("drift", {"a": rates, **more})


def test_replicas_are_there_one_interval_early():
    plan = Spea(horizon=4).plan(snapshot({"in": 10}, chain()), of(10.0, 30.0, 20.0, 10.0, b=(5.0,) * 4))
    assert plan.timetables == {"a": (3, 3, 2, 1), "b": (1, 1, 1, 1)}
    assert plan.replicas == {"a": 3, "b": 1}
    assert plan.notes == ()


def test_what_is_expected_next_with_the_backlog():
    plan = Spea(horizon=2).plan(snapshot({"in": 10}, chain(backlog=20)), of(10.0, 10.0, b=(5.0, 5.0)))
    assert plan.timetables["a"] == (3, 1)
    assert plan.targets["a"].expected == pytest.approx(30)
    assert plan.targets["a"].reason == (
        "expects 10/s next and 20/s backlog, at most 10/s in 2 intervals, of 100 ms each: needs 3 (1 to 3 in that time)"
    )


@pytest.mark.parametrize("policy", PLANNING)
class TestEveryPlanningPolicy:
    def test_tells_the_analyzer_how_far_ahead(self, policy):
        assert isinstance(policy(), PlansAhead)
        assert (policy().horizon, policy(horizon=48).horizon) == (12, 48)

    def test_an_operators_own_forecast_or_the_sources_times_the_shares(self, policy):
        forecast = Forecast("drift", {"in": (40.0, 40.0), "a": (20.0, 20.0), "b": (30.0, 30.0)})
        seen = snapshot({"in": 10}, chain())
        assert policy(horizon=2).plan(seen, forecast).timetables == {"a": (2, 2), "b": (3, 3)}
        by_sources = policy(horizon=2, predict="sources").plan(seen, forecast)
        assert by_sources.timetables == {"a": (4, 4), "b": (2, 2)}

    @pytest.mark.parametrize("forecast", [None, Forecast("drift", {}), Forecast("drift", {"a": (), "b": (math.nan,)})])
    def test_without_a_forecast_the_last_rate_goes_on(self, policy, forecast):
        plan = policy(horizon=3).plan(snapshot({"in": 10}, chain()), forecast)
        assert plan.timetables == {"a": (1, 1, 1), "b": (1, 1, 1)}
        assert plan.notes == ("no forecast for 2 operators yet, 'a' the first: their last rates go on",)

    def test_one_series_without_a_forecast(self, policy):
        plan = policy(horizon=2).plan(snapshot({"in": 10}, chain()), of(10.0, 10.0))
        assert plan.notes == ("no forecast for operator 'b' yet: its last rate goes on",)
        plan = policy(horizon=2, predict="sources").plan(snapshot({"in": 10}, chain()), of(10.0, 10.0))
        assert plan.notes == ("no forecast for source 'in' yet: its last rate goes on",)

    def test_a_forecast_that_is_too_short_or_breaks_off_holds_its_last_rate(self, policy):
        for rates in ((40.0,), (40.0, math.nan, 10.0), (40.0, -1.0), (40.0, math.inf)):
            plan = policy(horizon=3).plan(snapshot({"in": 10}, chain()), of(*rates, b=(5.0,)))
            assert plan.timetables["a"] == (4, 4, 4)

    def test_the_backlog_over_several_intervals(self, policy):
        plan = policy(horizon=4, catch_up=2).plan(snapshot({"in": 10}, chain(backlog=40)), of(10.0, 10.0, 10.0, 10.0))
        assert plan.timetables["a"] == (3, 3, 1, 1)

    def test_headroom(self, policy):
        assert policy(horizon=1, utilisation=0.25).plan(snapshot({"in": 10}, chain()), of(10.0)).replicas["a"] == 4

    def test_the_pool_is_the_bound_and_is_said(self, policy):
        plan = policy(horizon=2).plan(snapshot({"in": 10}, chain(pool=4)), of(90.0, 10.0))
        assert plan.timetables["a"][0] == 4
        assert "needs 4 (1 to 4 in that time), 9 without the pool's bound of 4" in plan.targets["a"].reason

    def test_a_pool_that_has_shrunk(self, policy):
        plan = policy(horizon=2).plan(snapshot({"in": 10}, chain(pool=2, replicas=6)), of(60.0, 60.0))
        assert plan.timetables["a"] == (2, 2)

    def test_unknown_execution_time_keeps_what_is_there(self, policy):
        seen = snapshot({"in": 10}, [load("a", {"in": 10}, replicas=3)])
        plan = policy().plan(seen, of(*[90.0] * 12))
        assert (plan.replicas, plan.timetables) == ({"a": 3}, {})
        assert plan.targets["a"].reason == "keeps 3: its execution time is not measured yet"

    def test_an_operator_that_is_not_to_be_trusted_keeps_what_is_there(self, policy):
        loads = chain(replicas=5)
        plan = policy(horizon=2).plan(snapshot({"in": 10}, loads, incomplete={"a": "stale"}), of(90.0, 90.0))
        assert plan.replicas["a"] == 5
        assert list(plan.timetables) == ["b"]

    def test_an_interval_of_no_length_keeps_everything(self, policy):
        plan = policy().plan(snapshot({"in": 10}, chain(replicas=5), interval_s=0.0), of(90.0))
        assert plan.replicas == {"a": 5, "b": 1}
        assert plan.targets["a"].reason == "keeps 5: an interval of 0 s"

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"horizon": 0}, "horizon must be whole and at least 1; got 0"),
            ({"predict": "stars"}, "predict must be one of operators, sources; got 'stars'"),
            ({"catch_up": 0}, "catch_up must be whole and at least 1; got 0"),
            ({"utilisation": 0}, "utilisation must be above 0 and at most 1; got 0"),
        ],
    )
    def test_options_that_cannot_be(self, policy, option, message):
        with pytest.raises(InputError, match=f"policy '{policy.name}': {message}"):
            policy(**option)

    def test_options_in_the_text(self, policy):
        made = make_policy(f"{policy.name}:24,predict=sources,utilisation=0.8")
        assert isinstance(made, policy)
        assert (made.horizon, made.predict, made.utilisation) == (24, "sources", 0.8)
