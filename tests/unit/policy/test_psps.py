from __future__ import annotations

import math
from itertools import pairwise

import pytest

from penstock.errors import InputError
from penstock.forecast.base import Forecast
from penstock.metrics.shares import propagate
from penstock.policy.psps import Psps
from penstock.testing.loads import load, snapshot


def papers_example():
    """Table II of the SBAC-PAD paper, table 4 of the COMPAS paper; td = 1000 ms."""
    return snapshot(
        {"in": 100},
        [
            load("o1", {"in": 100}, 140, execution_time_s=0.0166, replicas=2),
            load("o2", {"o1": 117}, 120, backlog=7, execution_time_s=0.025, replicas=2),
            load("o3", {"o2": 90}, 90, backlog=20, execution_time_s=0.1, replicas=2),
        ],
    )


def test_the_papers_example_to_the_digit():
    plan = Psps().plan(papers_example())
    assert plan.replicas == {"o1": 2, "o2": 3, "o3": 9}
    expected = [target.expected for target in plan.targets.values()]
    assert expected == pytest.approx([100, 90.571, 82.679], abs=5e-4)


def test_the_papers_shares_and_new_events():
    edges = {"o1": {"in": 1.0}, "o2": {"o1": 117 / 140}, "o3": {"o2": 90 / 120}}
    shares = propagate({"in": 1.0}, edges)
    assert [shares[name] for name in edges] == pytest.approx([1.0, 0.836, 0.627], abs=5e-4)
    new = propagate({"in": 100}, edges)
    assert [new[name] for name in edges] == pytest.approx([100, 83.571, 62.679], abs=5e-4)


def test_the_papers_diamond():
    loads = [
        load("o1", {"in": 100}, execution_time_s=0.01),
        load("o2", {"o1": 70}, execution_time_s=0.01),
        load("o3", {"o1": 30}, execution_time_s=0.01),
        load("o4", {"o2": 28, "o3": 30}, execution_time_s=0.1),
    ]
    plan = Psps().plan(snapshot({"in": 100}, loads))
    assert plan.targets["o4"].expected == pytest.approx(58)
    assert plan.targets["o4"].replicas == 6
    assert "0.58 of 100 entering" in plan.targets["o4"].reason


def test_the_three_operators_of_figure_3_differ_by_execution_time_only():
    loads = [load(f"o{n}", {"in": 100}, execution_time_s=et) for n, et in ((1, 0.02), (2, 0.01), (3, 0.04))]
    assert Psps().plan(snapshot({"in": 100}, loads)).replicas == {"o1": 2, "o2": 1, "o3": 4}


def test_predictions_of_several_sources_add_up():
    loads = [
        load("a", {"x": 60}, execution_time_s=0.01),
        load("b", {"y": 40}, execution_time_s=0.01),
        load("both", {"a": 30, "b": 40, "x": 60}, execution_time_s=0.1),
    ]
    plan = Psps().plan(snapshot({"x": 60, "y": 40}, loads))
    assert plan.targets["both"].expected == pytest.approx(60 * (0.5 + 1) + 40)
    assert plan.targets["both"].replicas == 13


def test_a_predecessor_that_processed_nothing_keeps_the_last_known_share():
    policy = Psps()
    tail = {"execution_time_s": 0.1}
    policy.plan(snapshot({"in": 100}, [load("a", {"in": 100}), load("b", {"a": 50}, **tail)]))
    stuck = [load("a", {"in": 200}, 0), load("b", {"a": 0}, **tail)]
    assert policy.plan(snapshot({"in": 200}, stuck)).targets["b"].expected == pytest.approx(100)


def test_at_the_start_the_declared_selectivity_is_the_share():
    loads = [load("a", {"in": 0}, 0), load("b", {"a": 0}, 0, declared_shares={"a": 5.0}, execution_time_s=0.01)]
    forecast = Forecast("given", {"in": (100.0,)})
    assert Psps(use_forecast=True).plan(snapshot({"in": 0}, loads), forecast).replicas["b"] == 5


def test_shares_are_not_learnt_from_incomplete_operators():
    policy = Psps()
    good = [load("a", {"in": 100}), load("b", {"a": 100}, execution_time_s=0.1)]
    policy.plan(snapshot({"in": 100}, good))
    bad = [load("a", {"in": 100}), load("b", {"a": 1}, execution_time_s=0.1)]
    plan = policy.plan(snapshot({"in": 100}, bad, incomplete={"b": "processed went back"}))
    assert plan.targets["b"].expected == pytest.approx(100)


def test_a_source_with_bad_numbers_counts_with_its_last_good_ones():
    policy = Psps()
    policy.plan(snapshot({"in": 100}, [load("a", {"in": 100}, execution_time_s=0.1)]))
    full = snapshot({"in": 5000}, [load("a", {"in": 100}, execution_time_s=0.1)], incomplete={"in": "went back"})
    assert policy.plan(full).replicas == {"a": 10}


def test_an_unknown_execution_time_keeps_the_replicas_and_says_so():
    plan = Psps().plan(snapshot({"in": 100}, [load("a", {"in": 100}, replicas=3)]))
    assert plan.replicas == {"a": 3}
    assert "unknown execution time: keeps 3" in plan.targets["a"].reason


def test_predecessor_backlog_counts_down_the_whole_chain():
    names = ["in", "a", "b", "c"]
    loads = [load(name, {before: 10}, execution_time_s=0.1) for before, name in pairwise(names)]
    loads[0] = load("a", {"in": 10}, backlog=40, execution_time_s=0.1)
    as_published = Psps().plan(snapshot({"in": 10}, loads))
    with_option = Psps(predecessor_backlog=True).plan(snapshot({"in": 10}, loads))
    assert as_published.replicas == {"a": 5, "b": 1, "c": 1}
    assert with_option.replicas == {"a": 5, "b": 5, "c": 5}


def test_a_forecast_takes_the_place_of_the_last_value_only_when_asked_for():
    seen = snapshot({"in": 100}, [load("a", {"in": 100}, execution_time_s=0.1)])
    forecast = Forecast("given", {"in": (200.0,)})
    assert Psps().plan(seen, forecast).replicas == {"a": 10}
    assert Psps(use_forecast=True).plan(seen, forecast).replicas == {"a": 20}


def test_a_missing_forecast_is_said_and_the_last_value_taken():
    seen = snapshot({"in": 100}, [load("a", {"in": 100}, execution_time_s=0.1)])
    plan = Psps(use_forecast=True).plan(seen, Forecast("drift", {}, {"in": "has not learnt enough"}))
    assert plan.replicas == {"a": 10}
    assert plan.notes == ("no forecast for source 'in' yet: takes its last value",)


def test_a_longer_interval_is_brought_to_the_length_of_the_next():
    """A loop that was late by a second measured 3 s of input; the next interval has 2 s of it, and the backlog."""
    loads = [load("a", {"in": 300}, backlog=20, execution_time_s=0.1)]
    plan = Psps().plan(snapshot({"in": 300}, loads, interval_s=3.0, td_s=2.0))
    assert plan.targets["a"].expected == pytest.approx(220)
    assert plan.replicas == {"a": 11}


def test_a_product_a_hair_above_a_whole_number_is_that_number():
    assert 100 * 0.07 > 7
    assert Psps().plan(snapshot({"in": 100}, [load("a", {"in": 100}, execution_time_s=0.07)])).replicas == {"a": 7}


def test_td_that_does_not_exceed_the_time_through_the_topology_is_noted():
    loads = [load("a", {"in": 1}, execution_time_s=0.6), load("b", {"a": 1}, execution_time_s=0.5)]
    (note,) = Psps().plan(snapshot({"in": 1}, loads)).notes
    assert note == "td of 1 s does not exceed the 1.1 s of one event through the topology"


def test_no_input_leaves_one_replica():
    plan = Psps().plan(snapshot({"in": 0}, [load("a", {"in": 0}, execution_time_s=0.1, replicas=5)]))
    assert plan.replicas == {"a": 1}
    assert not math.isnan(plan.targets["a"].expected)


def test_an_option_must_be_true_or_false():
    with pytest.raises(InputError, match="predecessor_backlog must be true or false; got 'yes'"):
        Psps(predecessor_backlog="yes")
